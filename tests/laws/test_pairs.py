"""Every two features of runs together: no theorem claims less than the exact law of what a small run releases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lastiterate as li
from lastiterate.testing import small_runs
from lastiterate.testing.pairs import (
    DELTA,
    FEATURES,
    IMPOSSIBLE,
    PAIRS,
    UNKNOWN,
    USUAL,
    Case,
    ComparedBound,
    NoSuchRun,
    Pair,
    around,
    compared,
    constructed,
    covering,
    drawn,
    pairs_of,
)
from lastiterate.testing.small_runs import DensityChain, Gradient, NoExactLaw, SmallRun

AROUND = 60  # runs with few unusual features, beside those in which all pairs meet


def violations(case: Case, deltas: tuple[float, ...]) -> Iterator[tuple[ComparedBound, dict[str, str]]]:
    unusual = {name: value for name, value in case.features.items() if value != USUAL[name]}
    yield from ((one, unusual) for one in compared(case, li.theorems.ALL, deltas) if one.violated)


def test_no_theorem_is_below_the_exact_law_wherever_two_features_meet() -> None:
    met: set[Pair] = set()
    found = []
    for case in covering(np.random.default_rng(0)):
        met.update(pairs_of(case.features))
        found += list(violations(case, (DELTA,)))
    assert set(PAIRS) - met == IMPOSSIBLE | UNKNOWN
    assert found == []


def test_no_theorem_is_below_the_exact_law_where_few_features_are_unusual() -> None:
    source = np.random.default_rng(1)
    pairs = source.permutation(len(PAIRS)).tolist()
    cases = (constructed(around(PAIRS[place], source), source, 8) for place in pairs[:AROUND])
    assert [one for case in cases if case for one in violations(case, (DELTA,))] == []


@pytest.mark.parametrize(
    ("each_epoch", "steps", "exact"), [(False, 2, 8.601), (True, 1, 9.990)], ids=["one order", "new orders"]
)
def test_momentum_with_a_smaller_last_batch(each_epoch: bool, steps: int, exact: float) -> None:
    """The last batch has one record of 201: the others are at the first place with probability 200/201, not 1/2."""
    batches = li.Shuffled(records=201, batch_size=200, last="smaller", each_epoch=each_epoch)
    noise, loss = li.OnGradientSum(multiplier=1.0, clip=1.0), li.losses.huber(feature_norm=1.0)
    run = li.Run(loss, batches, 1e-6, noise, steps, optimizer=li.SGD(momentum=0.9))
    push, other = Gradient(1.0), Gradient(-1.0)
    small = SmallRun(run, (), 0.0, (0,), 200, push, other, other, (1.0,) * steps)
    assert (
        small.law.delta(np.array([exact - 2e-3]), swapped=False)
        > 1e-5
        > small.law.delta(np.array([exact + 2e-3]), False)
    )
    assert [one.theorem for one in compared(Case(USUAL, small, ()), li.theorems.ALL) if one.violated] == []


@pytest.mark.parametrize("pair", sorted(IMPOSSIBLE | UNKNOWN), ids=str)
def test_a_pair_is_left_out_because_no_run_has_it_or_no_law_is_known(pair: Pair) -> None:
    source, features = np.random.default_rng(2), {**USUAL, "batches": "cyclic", **dict(pair)}
    for _ in range(20):
        with pytest.raises(NoExactLaw if pair in UNKNOWN else (NoSuchRun, li.errors.InvalidInput)):
            drawn(features, source).small.law  # noqa: B018


def affine_cases() -> list[Case]:
    source = np.random.default_rng(3)
    kinds = [name for name in FEATURES["batches"] if name != "balls and bins"]
    wanted = [{"batches": name, "loss": "strongly convex", "decay": "weight decay"} for name in kinds]
    found = [constructed({**USUAL, **features}, source) for features in wanted]
    return [case for case in found if case is not None]


def test_the_chain_and_the_joint_gaussians_agree() -> None:
    """The same cells of the last iterate, once by quadrature and once from the mean and the variance of each order."""
    cases = affine_cases()
    assert len(cases) == 13
    for case in cases:
        chain = DensityChain(case.small)
        for masses, mine in zip(chain.masses, (case.small.record, case.small.neighbour), strict=True):
            shares, rows = zip(*small_runs.components(case.small, mine), strict=True)
            means, spreads = np.array(rows)[:, 0, 0], np.linalg.norm(np.array(rows)[:, 0, 1:], axis=1)
            exact = small_runs.between((chain.edges[-1][:, None] - means) / spreads) @ np.array(shares)
            assert masses == pytest.approx(exact, rel=small_runs.QUADRATURE_ERROR, abs=1e-18)


def test_one_step_is_the_gaussian_mechanism() -> None:
    run = li.Run(li.losses.huber(feature_norm=1.0), li.FullBatch(records=1), 0.3, li.OnMeanGradient(std=1.0), 1)
    small = SmallRun(run, (), 0.0, (0,), 0, Gradient(1.0), Gradient(-1.0), Gradient(), (1.0,))
    epsilons = np.array([0.0, 0.5, 2.0, 6.0])
    exact = np.asarray(li.notions.GaussianDP(2.0).delta(epsilons))
    for swapped in (False, True):
        found = small.law.delta(epsilons, swapped)
        assert (found <= exact * (1 + 1e-12)).all()
        assert found == pytest.approx(exact, rel=1e-4)
    beside = replace(small, run=replace(run, prior_mu=1.5)).law.delta(epsilons, False)
    assert beside == pytest.approx(np.asarray(li.notions.GaussianDP(2.5).delta(epsilons)), rel=2e-2)


def test_the_reference_reads_runs_and_nothing_that_theorems_see() -> None:
    tree = ast.parse(Path(small_runs.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    ours = {name for name in imported if name.startswith("lastiterate")}
    assert ours == {"lastiterate.runs.run", "lastiterate.numerics.arrays"}
    assert not {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & {"process", "inclusion"}
