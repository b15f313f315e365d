"""Means over the actual size of a Poisson batch: exact steps by summing over all sizes, and what theorems make of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import lastiterate as li
from lastiterate.theorems.composition import RANDOM_COMPOSITION
from lastiterate.theorems.window_tail import WINDOW_TAIL


def run_of(records: int, rate: float, noise: float, steps: int, **others: object) -> li.Run:
    """Gradients of norm 1, step size 1."""
    loss = li.losses.network(clip=1.0)
    return li.Run(loss, li.parts.PoissonMean(records, rate), 1.0, li.OnIterate(std=noise), steps, **others)  # type: ignore[arg-type]


def exact_step(records: int, rate: float, noise: float, others: float, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """One step's law on a grid: the record's gradient is 1, its neighbour's −1, that of all others `others`.

    Cells do not depend on the data, so that what is found on them is a lower bound.
    """
    edges = np.linspace(-1 - 10 * noise, 1 + 10 * noise, cells + 1)
    laws = np.zeros((2, cells))
    for count, weight in enumerate(binom.pmf(np.arange(records), records - 1, rate).tolist()):
        if weight > 1e-20:
            without = np.diff(ndtr((edges + (others if count else 0.0)) / noise))
            for law, own in zip(laws, (1.0, -1.0), strict=True):
                mean = (count * others + own) / (count + 1)
                law += weight * ((1 - rate) * without + rate * np.diff(ndtr((edges + mean) / noise)))
    return laws[0], laws[1]


def hockey_stick(one: np.ndarray, two: np.ndarray, epsilon: float) -> float:
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((one, two), (two, one)))


@pytest.mark.parametrize(
    ("records", "rate", "noise"), [(400, 0.1, 0.2), (400, 0.1, 0.03), (12, 0.3, 0.5), (3, 0.5, 1.0)]
)
@pytest.mark.parametrize("others", [-1.0, 0.0])
def test_one_step_and_two_are_above_exact_ones(records: int, rate: float, noise: float, others: float) -> None:
    run = run_of(records, rate, noise, 1)
    ours, both = (RANDOM_COMPOSITION.notion(run.first(steps).process) for steps in (1, 2))
    fine, coarse = (exact_step(records, rate, noise, others, cells) for cells in (4000, 500))
    pair = [np.outer(law, law) for law in coarse]
    for epsilon in (0.0, 0.1, 0.6):
        assert hockey_stick(*fine, epsilon) <= float(ours.delta(epsilon)) + 1e-12
        assert hockey_stick(*pair, epsilon) <= float(both.delta(epsilon)) + 1e-12


def test_they_are_not_far_above() -> None:
    """400 records, rate 0.1, all others against the record: 79 % in ε at δ = 1e-5, by the smallest batch alone 0.1 %."""
    ours = RANDOM_COMPOSITION.notion(run_of(400, 0.1, 0.2, 1).process)
    exact = exact_step(400, 0.1, 0.2, -1.0, 4000)
    assert hockey_stick(*exact, 0.0) > 0.97 * float(ours.delta(0.0))
    assert hockey_stick(*exact, 0.78 * float(ours.epsilon(1e-5))) > 1e-5


@pytest.mark.parametrize(("records", "rate"), [(400, 0.1), (60_000, 0.025), (30, 0.9), (10_000_000, 0.5)])
@pytest.mark.parametrize("exception", [1e-4, 1e-12])
def test_no_batch_is_counted_as_larger_than_it_is(records: int, rate: float, exception: float) -> None:
    """Given the range, every size is at most as likely as said to be exceeded; beside scipy's binomial law."""
    batches, steps = li.parts.PoissonMean(records, rate), 100
    fewest, most = batches.others(math.log(exception / steps))
    given = run_of(records, rate, 1.0, steps).process.but_for(exception)
    assert given.sampled[0] == pytest.approx(2 / (fewest + 1))
    shares, probabilities = (np.array(one) for one in zip(*given.levels, strict=True))
    assert shares[0] == 1
    assert (np.diff(shares) < 0).all()
    assert math.fsum(probabilities) == pytest.approx(1.0, abs=1e-15)
    sizes = np.unique(np.linspace(fewest, most, 500).astype(int))
    inside = binom.cdf(most, records - 1, rate) - binom.cdf(fewest - 1, records - 1, rate)
    exact = (binom.cdf(sizes, records - 1, rate) - binom.cdf(fewest - 1, records - 1, rate)) / inside
    counted = (probabilities * (shares * (1 + 1e-12) >= (fewest + 1) / (sizes[:, None] + 1))).sum(axis=1)
    assert (counted >= exact * (1 - 1e-9)).all()


def test_the_record_that_is_alone_in_its_batch_is_compared_with_nothing() -> None:
    """Gradients up to 3 that change by 1 at most: an empty batch moves nothing, and the record alone moves by 3."""
    loss = li.losses.general(smoothness=1.0, gradient_sensitivity=1.0, clip=3.0)
    alone, seldom = (
        li.Run(loss, li.parts.PoissonMean(records, 0.2), 1.0, li.OnIterate(std=1.0), 1).process.but_for(1e-8)
        for records in (4, 400)
    )
    assert alone.sampled[0] == pytest.approx(3.0)
    assert seldom.sampled[0] == seldom.sensitivity[0] < 0.1


def test_the_last_iterate_profits_as_well() -> None:
    """The distance before a window and the window itself take a batch as it is drawn."""
    run = li.Run(
        li.losses.logistic(feature_norm=2.0, l2=0.05),
        li.parts.PoissonMean(400, 0.1),
        0.5,
        li.OnMeanGradient(std=0.3),
        200,
    )
    fixed = li.Run(run.loss, li.FixedSize(400, 40), 0.5, run.noise, 200)
    ours, theirs = (WINDOW_TAIL.notion(one.process).epsilon(1e-5) for one in (run, fixed))
    assert theirs * (1 - 1e-6) <= ours <= 1.3 * theirs
    report = li.account(run, delta=1e-5)
    assert report.best.theorem is WINDOW_TAIL
    assert li.verify(report.certificate, run).accepted
