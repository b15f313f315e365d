"""Neighbours that contribute nothing: every theorem that claims to hold for them meets exact runs, in both orders."""

from __future__ import annotations

import copy
import json
import math
import runpy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from alone import by_theorem
from lastiterate.auditing.chain import Chain, iid_hazard
from lastiterate.certificate.verify import verify
from lastiterate.curves.adjacency import Adjacency
from lastiterate.digits import above
from lastiterate.facts import fact
from lastiterate.testing.exact_laws import beside
from lastiterate.testing.examples import instances
from lastiterate.theorems.block_mixing import blocks_of
from lastiterate.theorems.epochs import hidden_epoch, whole_epoch
from lastiterate.theorems.participation import participation_window
from lastiterate.theorems.reflection import reflected_profile
from lastiterate.theorems.shift_engine import HIDDEN_PLACE
from lastiterate.theorems.window_tail import window_of
from processes import process
from raising import raises

TOOL = Path(__file__).parents[2] / "tools" / "check_certificate.py"
OTHERS = (li.ZERO_OUT, li.ADD_OR_REMOVE_ONE)
LOGISTIC = li.losses.logistic(feature_norm=1.0)
_POISSON = li.Poisson(records=100, rate=0.2)
_SUMMED = (
    process(_POISSON, 3, diameter=1.0, drift=2.0),
    process(_POISSON, 3, lipschitz=0.9),
    process(_POISSON, 3, 0.3, diameter=math.inf, drift=1.0, retain=0.2, dimension=1),
)
# The others are about batches that no record can be added to.
ADDED_TO = [
    one
    for one in li.theorems.ALL
    if not all(one.failures(replace(given, adjacency=li.ADD_OR_REMOVE_ONE)) for given in _SUMMED)
]


def asked() -> list[Any]:
    pairs = [(one, li.ZERO_OUT) for one in li.theorems.ALL if li.ZERO_OUT in one.adjacencies]
    pairs += [(one, li.ADD_OR_REMOVE_ONE) for one in ADDED_TO]
    return [pytest.param(*pair, id=f"{pair[0].name}-{pair[1].name}") for pair in pairs]


@pytest.mark.parametrize(("theorem", "adjacency"), asked())
def test_it_lies_above_exact_instances(theorem: li.theorems.Theorem, adjacency: Adjacency) -> None:
    for seed, instance in instances(theorem, 1, adjacency, small=True):
        answer = theorem.apply(instance.process)
        if isinstance(answer, li.theorems.Guarantee):
            assert answer.notion.adjacency is adjacency
            assert beside(answer, instance, f"seed {seed}")[2] == ""


def test_all_theorems_say_which_neighbours_they_are_about() -> None:
    for theorem in li.theorems.ALL:
        assert li.REPLACE_ONE in theorem.adjacencies or theorem.name.startswith("balls-and-bins")
    assert {one.name for one in ADDED_TO} > {
        "window-tail",
        "block-mixing",
        "bok2024/random/composition",
        "hidden-participation",
    }


def test_batches_of_fixed_size_are_not_halved() -> None:
    """All others push by −C, the record by +C, p = 0.01, noise C, ε = 1: δ = 1.7e-4, where half the push says 2.7e-9."""
    loss, batches = li.losses.network(clip=1.0), li.FixedSize(records=1000, batch_size=10)
    run = li.Run(loss, batches, 0.1, li.OnGradientSum(multiplier=1.0, clip=1.0), 1, adjacency=li.ZERO_OUT)
    deltas = [guarantee.notion.delta(1.0) for guarantee in li.account(run, 1e-5).guarantees]
    x = np.linspace(-8.0, 12.0, 200_001)
    law = {mean: np.exp(-np.square(x - mean) / 2) / math.sqrt(2 * math.pi) for mean in (0.0, 1.0, 2.0)}
    present, absent = 0.99 * law[0.0] + 0.01 * law[2.0], 0.99 * law[0.0] + 0.01 * law[1.0]
    exact = float(np.maximum(present - math.e * absent, 0.0).sum() * (x[1] - x[0]))
    halved = li.notions.subsampled_gaussian(
        mu=1.0, inclusion=0.01, sampling=li.notions.FIXED_SIZE, adjacency=li.ZERO_OUT
    )
    assert exact == pytest.approx(1.69e-4, rel=1e-2)
    assert halved.delta(1.0) == pytest.approx(2.7e-9, rel=2e-2)
    assert min(deltas) == pytest.approx(exact, rel=1e-5)
    assert min(deltas) >= exact * (1 - 1e-9)
    lower = li.lower_bound(run, 1e-4).epsilon
    assert 0.999 * li.account(run, 1e-4).epsilon <= lower <= li.account(run, 1e-4).epsilon


def hidden_exactly(push: float, factor: float, places: int, epsilons: np.ndarray) -> np.ndarray:
    """One epoch of linear steps, the others push the other way: two mixtures over the places, in the worse order."""
    weights = factor ** np.arange(places)
    unit = push * weights / math.sqrt(float(np.square(weights).sum()))
    x = np.linspace(-12.0, 12.0 + 2 * float(unit.max()), 40_001)
    laws = [np.exp(-np.square(x[:, None] - times * unit) / 2).mean(axis=1) for times in (2.0, 1.0)]
    one, two = (law * (x[1] - x[0]) / math.sqrt(2 * math.pi) for law in laws)
    found = [[np.maximum(p - math.exp(e) * q, 0).sum() for e in epsilons] for p, q in ((one, two), (two, one))]
    return np.max(found, axis=0)


@pytest.mark.parametrize(("push", "factor", "places"), [(2.0, 0.1, 20), (4.0, 0.01, 30), (3.0, 0.3, 20)])
def test_a_hidden_place_is_twice_as_far_from_others(push: float, factor: float, places: int) -> None:
    """With one push at each place the bound would be a part of the truth."""
    epsilons = np.array([0.5, 1.0, 2.0, 4.0, 6.0])
    for each_epoch in (True, False):
        batches = li.Shuffled(records=10 * places, batch_size=10, each_epoch=each_epoch)
        given = replace(process(batches, places, push, lipschitz=factor), adjacency=li.ZERO_OUT)
        said = np.asarray(HIDDEN_PLACE.apply(given).notion.delta(epsilons))  # type: ignore[union-attr]
        exact = hidden_exactly(push, factor, places, epsilons)
        assert (said >= exact * (1 - 1e-9)).all()
        assert (said <= 1.6 * exact).all()
        assert (hidden_epoch(given, whole_epoch(given)).delta(epsilons) >= exact * (1 - 1e-9)).all()


@pytest.mark.parametrize("each_epoch", [True, False])
def test_so_it_is_on_a_wide_domain(each_epoch: bool) -> None:
    epsilons, push, factor, places = np.array([0.5, 1.0, 2.0]), 2.0, 0.01, 8
    batches = li.Shuffled(records=10 * places, batch_size=10, each_epoch=each_epoch)
    given = replace(process(batches, places, push, lipschitz=factor, diameter=14.0), adjacency=li.ZERO_OUT)
    exact = hidden_exactly(push, factor, places, epsilons)
    assert (reflected_profile(given).delta(epsilons) >= exact * (1 - 1e-3)).all()


@pytest.mark.parametrize("others", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("diameter", [1.0, math.inf])
@pytest.mark.parametrize("poisson", [True, False])
def test_windows_and_blocks_cover_both_orders(others: float, diameter: float, poisson: bool) -> None:
    if poisson and others:
        return
    steps, push, rate, width = 6, 0.8, 0.3, min(diameter, 60.0)
    moves = [(lambda move: lambda x: 0.7 * x + move)(push * one) for one in (others, 1.0, 0.0)]
    chain = Chain(*moves, np.ones(steps), iid_hazard(rate, steps), -width / 2, width / 2, cells=240)
    epsilons = np.array([0.0, 0.1, 0.3, 0.7, 1.2, 2.0])
    exact, error = chain.delta_with_error(epsilons)
    batches = li.Poisson(records=10, rate=0.3) if poisson else li.FixedSize(records=10, batch_size=3)
    plain = process(batches, steps, push, lipschitz=0.7, diameter=diameter)
    sampled = plain.sampled if poisson else 2 * plain.sampled
    given = replace(plain, adjacency=li.ZERO_OUT, sampled=sampled)
    for length in (1, 2, 6):
        assert (window_of(given, length).delta(epsilons) >= exact - error - 1e-13).all()
        if math.isfinite(diameter):
            assert (blocks_of(given, length).delta(epsilons) >= exact - error - 1e-13).all()


@pytest.mark.parametrize(
    ("push", "rate", "steps", "factor"), [(1.0, 0.3, 6, 1.0), (2.0, 0.1, 8, 0.9), (3.0, 0.05, 5, 0.5)]
)
def test_hidden_participation_of_a_record_that_is_there_or_not(
    push: float, rate: float, steps: int, factor: float
) -> None:
    """Linear steps: the law is a mixture over the sets of steps, which are gone through one by one."""
    epsilons = np.array([0.1, 0.5, 1.0, 2.0, 4.0])
    weights = factor ** np.arange(steps)
    sets = np.array(list(product((0, 1), repeat=steps)))
    means = push * (sets @ weights) / math.sqrt(float(np.square(weights).sum()))
    chances = np.prod(np.where(sets, rate, 1 - rate), axis=1)
    x = np.linspace(-9.0, 9.0 + float(means.max()), 8001)
    unit = (x[1] - x[0]) / math.sqrt(2 * math.pi)
    present, absent = np.exp(-np.square(x[:, None] - means) / 2) @ chances * unit, np.exp(-np.square(x) / 2) * unit
    pairs = ((present, absent), (absent, present))
    exact = np.max([[np.maximum(p - math.exp(e) * q, 0).sum() for e in epsilons] for p, q in pairs], axis=0)
    given = replace(process(_POISSON, steps, push, lipschitz=factor), adjacency=li.ADD_OR_REMOVE_ONE)
    given = replace(given, batches=li.Poisson(records=100, rate=rate))
    said = np.asarray(participation_window(given, steps).delta(epsilons))
    assert (said >= exact * (1 - 1e-6)).all()
    composed = li.notions.subsampled_gaussian(mu=push, inclusion=rate).compose(steps)
    assert push < 2 or said[-1] < float(composed.delta(4.0))


def run_with(batches: Any, adjacency: Adjacency, loss: Any = LOGISTIC, **more: Any) -> li.Run:
    return li.Run(loss, batches, 0.2, li.OnMeanGradient(std=0.3), 12, adjacency=adjacency, **more)


BATCHES = (
    li.FullBatch(records=24),
    li.Cyclic(records=24, batch_size=6),
    li.Shuffled(records=24, batch_size=6),
    li.Shuffled(records=24, batch_size=6, each_epoch=False),
    li.FixedSize(records=24, batch_size=6),
    li.Poisson(records=24, rate=0.25),
)


@pytest.mark.parametrize(
    ("batches", "adjacency"),
    [(one, adjacency) for one, adjacency in product(BATCHES, OTHERS) if adjacency in one.adjacencies],
    ids=repr,
)
def test_a_run_lies_above_its_instances_and_its_certificate_is_accepted(batches: Any, adjacency: Adjacency) -> None:
    run = run_with(batches, adjacency)
    report = li.account(run, 1e-5)
    assert 0.5 * report.epsilon <= report.lower_bound.epsilon <= report.epsilon * (1 + 1e-9)
    assert report.epsilon < li.account(run_with(batches, li.REPLACE_ONE), 1e-5).epsilon
    verdict = verify(json.loads(json.dumps(report.certificate)), run)
    assert verdict.accepted
    assert verdict.unit == report.unit == adjacency.unit()
    assert verdict.unit == fact("neighbours", adjacency=adjacency.name.lower(), user_records=1, records=())
    assert str(report).startswith(f"epsilon = {above(report.epsilon, 6)} at delta = 1e-05 ({adjacency.unit()}")
    assert str(report).splitlines()[0].endswith(")" if report.mu is None else f", mu = {above(report.mu, 6)})")


def judged(certificate: dict[str, Any]) -> str:
    """By the second checker: the reason why it is rejected, or nothing."""
    return str(runpy.run_path(str(TOOL))["judged"](certificate))


def test_no_certificate_is_about_other_neighbours_than_its_run() -> None:
    """Nor is it accepted with half of its pairs: at either of two places the record may push farther."""
    batches = li.Shuffled(records=120, batch_size=10)
    run = li.Run(LOGISTIC, batches, 0.3, li.OnMeanGradient(std=0.3), 12, adjacency=li.ZERO_OUT)
    certificate = by_theorem(HIDDEN_PLACE.name, run, 1e-3).certificate
    assert verify(certificate).accepted
    assert judged(certificate) == ""
    assert certificate["proof"]["turns"]["exchange"] == 2.0
    once, other, half, replaced = (copy.deepcopy(certificate) for _ in range(4))
    del once["proof"]["turns"]["exchange"]
    del other["run"]["adjacency"]
    replaced["claim"]["unit"]["adjacency"] = "replace_one"
    pairs = half["proof"]["hidden"]["pairs"]
    half["proof"]["hidden"]["pairs"] = [one for one in pairs if one["places"][0] < one["places"][1]]
    assert len(pairs) == 12 * 11
    for wrong in (once, other, half, replaced):
        assert not verify(wrong).accepted
    assert judged(half)


def test_the_side_without_the_record_has_less_curvature() -> None:
    """Strong convexity inside the records: one of ten contributes none of it."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.5, gradient_norm=1.0)
    for batches in (li.FullBatch(records=10), li.Cyclic(records=20, batch_size=10), li.Poisson(records=10, rate=1.0)):
        one, two = (run_with(batches, one, loss).process.lipschitz[0] for one in (li.REPLACE_ONE, li.ZERO_OUT))
        assert one == pytest.approx(1 - 0.2 * 0.5)
        assert two == pytest.approx(1 - 0.2 * 0.45)


def test_a_record_more_makes_batches_larger() -> None:
    loss = li.losses.general(smoothness=1.0, weak_convexity=1.0, gradient_norm=1.0)
    most = [
        run_with(li.Poisson(records=10, rate=0.5), one, loss).process for one in (li.ZERO_OUT, li.ADD_OR_REMOVE_ONE)
    ]
    assert most[0].lipschitz[0] == pytest.approx(1 + 0.2 * 10 / 5)
    assert most[1].lipschitz[0] == pytest.approx(1 + 0.2 * 11 / 5)
    assert most[1].drift[0] == pytest.approx(2 * 0.2 * 11 / 5)


def test_replacing_a_record_is_taking_one_away_and_putting_one_in() -> None:
    full = li.account(run_with(li.FullBatch(records=24), li.ZERO_OUT), 1e-5)
    direct = li.account(run_with(li.FullBatch(records=24), li.REPLACE_ONE), 1e-5)
    assert full.under(li.ZERO_OUT).epsilon(1e-5) == full.epsilon
    assert full.under(li.REPLACE_ONE).epsilon(1e-5) == pytest.approx(direct.epsilon, rel=1e-9)
    poisson = [
        li.account(run_with(li.Poisson(records=24, rate=0.25), one), 1e-5)
        for one in (li.ADD_OR_REMOVE_ONE, li.REPLACE_ONE)
    ]
    converted = poisson[0].under(li.REPLACE_ONE)
    assert converted.adjacency is li.REPLACE_ONE
    assert poisson[1].lower_bound.epsilon < converted.epsilon(1e-5) < 3 * poisson[1].epsilon
    with raises("adjacency_not_implied", kind=li.errors.Incompatible):
        direct.under(li.ZERO_OUT)
