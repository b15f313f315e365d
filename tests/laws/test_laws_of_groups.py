"""Several records of one person: every theorem lies above exact runs in which all of them differ."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import lastiterate as li
from alone import by_theorem
from lastiterate.accounting.account import account_by
from lastiterate.auditing.instances import Instance, random_instance
from lastiterate.auditing.quadratic import exact_mu_of, steps_of
from lastiterate.runs.batches import Turns
from lastiterate.testing.exact_laws import beside
from lastiterate.theorems.groups import _density
from lastiterate.theorems.shift_engine import RANDOM_ORDER, SHIFT_ENGINE
from processes import process

DELTA = 1e-5
KNOWN = (Turns.EVERY_STEP, Turns.FIXED_ORDER)


def runs_of_groups(count: int) -> list[tuple[int, Instance]]:
    """Chains in which k records of one batch push together, and their processes, which know the push of one of them."""
    found: list[tuple[int, Instance]] = []
    for seed in range(1000):
        source = np.random.default_rng(seed)
        instance, size = random_instance(source, most_steps=30), int(source.integers(2, 5))
        given = instance.process
        if given.batches.turns in KNOWN:
            one = {name: getattr(given, name) / size for name in ("sensitivity", "sampled")}
            smooth: Any = "several records push at once"
            found.append((seed, Instance(replace(given, **one, group=size, smooth=smooth), instance.chain)))
        if len(found) == count:
            break
    return found


def test_every_theorem_lies_above_chains_of_groups() -> None:
    """The slowest of them on the first few alone."""
    slow, compared = ("reflection", "block-mixing"), set()
    for index, (seed, instance) in enumerate(runs_of_groups(12)):
        for theorem in li.theorems.ALL:
            if theorem.name in slow and index >= 4:
                continue
            answer = theorem.apply(instance.process)
            if isinstance(answer, li.theorems.Guarantee):
                assert beside(answer, instance, f"seed {seed}, {theorem.name}")[2] == ""
                compared.add((seed, theorem.name))
    assert len(compared) > 30
    assert {name for _, name in compared} > {"shift-engine", *slow}


@pytest.mark.parametrize("seed", range(8))
def test_named_records_lie_above_quadratic_losses(seed: int) -> None:
    """The last batch is smaller, and its sum divided by its own size or as all others; full batches are exact."""
    source = np.random.default_rng(seed)
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.0, gradient_norm=0.5)
    run = li.Run(
        loss,
        li.Cyclic(records=60, batch_size=11, last="smaller"),
        source.uniform(0.1, 1.5, 20).tolist(),
        li.OnGradientSum(multiplier=3.0, clip=1.0) if seed % 2 else li.OnMeanGradient(std=0.3),
        20,
        weight_decay=float(source.choice([0.0, 0.2])),
    )
    group = sorted({*source.choice(60, int(source.integers(1, 7)), replace=False).tolist(), 58, 59})
    releases = [7] if seed % 3 == 0 else []
    said = account_by([SHIFT_ENGINE], run, DELTA, releases, group).mu
    counts = np.resize(np.bincount(np.array(group) // 11, minlength=6), 20)
    exact = [exact_mu_of(steps_of(run, hessian), counts, tuple(releases)) for hessian in (0.0, 0.3, 1.0)]
    assert said is not None
    assert max(exact) <= said * (1 + 1e-9)
    assert said <= len(group) * (by_theorem("shift-engine", run, DELTA, releases).mu or 0) * (1 + 1e-9)
    full = replace(run, batches=li.FullBatch(records=60), step_size=0.5, noise=li.OnMeanGradient(std=0.3))
    best = exact_mu_of(steps_of(full, 0.0), np.full(20, len(group)))
    assert account_by([SHIFT_ENGINE], full, DELTA, group=group).mu == pytest.approx(best, rel=1e-9)


def of_random_order(weights: list[float], size: int, every: list[int], epsilon: float) -> float:
    """δ of N(0, 1) against the mean over orders of N(push at the places of `size` records, 1), in the worse order.

    `every`: how many records are at each place.
    """
    slots = np.repeat(weights, every)
    sums = np.array([sum(one) for one in permutations(slots, size)])
    x = np.linspace(-10.0, 10.0 + float(sums.max()), 20_001)
    law = np.diff(ndtr(x))
    values, counts = np.unique(sums, return_counts=True)
    other = sum(c * np.diff(ndtr(x - v)) for v, c in zip(values, counts, strict=True)) / len(sums)
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) for p, q in ((law, other), (other, law)))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("each_epoch", [True, False])
@pytest.mark.parametrize(("last", "farther"), [(3, 1.0), (1, 1.0), (1, 3.0)])
def test_records_in_a_secret_order_lie_above_the_mixture_over_orders(
    size: int, each_epoch: bool, last: int, farther: float
) -> None:
    """One epoch of linear steps that contract: what is left of a push at each place, over the noise of all steps.

    In a smaller last batch there are fewer records, which push `farther` if their sum is divided by their number.
    """
    places, factor, push = 3, 0.5, 2.0
    left, pushes = factor ** np.arange(places)[::-1], push * np.array([1.0, 1.0, farther])
    weights = (pushes * left / math.sqrt(float(np.square(left).sum()))).tolist()
    batches = li.Shuffled(records=6 + last, batch_size=3, each_epoch=each_epoch, last="smaller")
    given = replace(process(batches, places, pushes, lipschitz=factor), group=size)
    notion = RANDOM_ORDER.apply(given).notion  # type: ignore[union-attr]
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        exact = of_random_order(weights, size, [3, 3, last], epsilon)
        assert exact <= notion.delta(epsilon) * (1 + 1e-9)


def test_the_density_of_places_without_putting_back() -> None:
    """Of n places, any k in order are taken with probability 1/(n·(n − 1)⋯(n − k + 1)), not n^−k."""
    for records in (8, 7):
        batches = li.Shuffled(records=records, batch_size=2, last="smaller")
        for size in (2, 3, 7):
            density = _density(replace(process(batches, 4, 1.0), group=size))
            assert density / records**size == pytest.approx(1 / math.perm(records, size), rel=1e-9)
            assert density / records**size > 1 / math.perm(records, size)


def test_places_of_several_records_are_not_all_bad() -> None:
    batches = li.Shuffled(records=1000, batch_size=50)
    one = process(batches, 20, 1.0, lipschitz=0.8)
    four = replace(one, group=4)
    sharp = RANDOM_ORDER.apply(four).notion  # type: ignore[union-attr]
    plain = RANDOM_ORDER.apply(one).notion.group(4)  # type: ignore[union-attr]
    assert sharp.epsilon(DELTA) < 0.9 * plain.epsilon(DELTA)


@pytest.mark.parametrize("batches", [li.FullBatch(records=10), li.Cyclic(records=20, batch_size=10)])
def test_data_sets_without_several_records_are_less_curved(batches: li.batches.Batches) -> None:
    """Strong convexity inside the records: of ten, up to four contribute none of it."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.5, gradient_norm=1.0)
    run = li.Run(loss, batches, 0.2, li.OnMeanGradient(std=1.0), 4, adjacency=li.ZERO_OUT)
    for records, share in ((1, 0.9), (4, 0.6), (10, 0.0)):
        assert replace(run, user_records=records).process.lipschitz[0] == pytest.approx(1 - 0.2 * 0.5 * share)
    replaced = replace(run, adjacency=li.REPLACE_ONE, user_records=4)
    assert replaced.process.lipschitz[0] == pytest.approx(1 - 0.2 * 0.5)


def test_several_records_more_make_batches_larger() -> None:
    loss = li.losses.general(smoothness=1.0, weak_convexity=1.0, gradient_norm=1.0)
    batches, adjacency = li.Poisson(records=10, rate=0.5), li.ADD_OR_REMOVE_ONE
    run = li.Run(loss, batches, 0.2, li.OnMeanGradient(std=1.0), 4, adjacency=adjacency, user_records=3)
    assert run.process.lipschitz[0] == pytest.approx(1 + 0.2 * 13 / 5)
    assert run.process.group == 3
