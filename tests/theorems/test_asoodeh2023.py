"""Asoodeh and Diaz 2023: their numbers, their counterexamples, and what is sharper."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

import lastiterate as li
from lastiterate.facts import fact
from lastiterate.mixing.contraction import contracted, curved_contraction, linear_contraction
from lastiterate.reproduction.instances import two_wells
from lastiterate.theorems.block_mixing import BLOCK_MIXING
from lastiterate.theorems.papers.asoodeh2023 import (
    CURVED,
    PROJECTED,
    REGULARISED,
    closed_limit_epsilon,
    limit_epsilon,
    printed_ratio,
)
from processes import process, reasons

# Fig. 1: D = 3, C = 2, η = 0.01, σ = 1, b = 1 of n = 1000
FIGURE_1 = {"sensitivity": 0.04, "drift": 0.04, "lipschitz": math.inf, "diameter": 3.0}
ONE_OF_1000 = li.FixedSize(records=1000, batch_size=1)


def theta(epsilon: float, ratio: float) -> float:
    return float(ndtr(ratio / 2 - epsilon / ratio) - math.exp(epsilon) * ndtr(-epsilon / ratio - ratio / 2))


def test_figure_1_for_any_number_of_steps() -> None:
    """Errata E0.3: 3.647 by Theorem 1 (its limit (22)), 0.580 by the exact curve, δ = 1.24e-4 at ε = 0 or less by blocks."""
    given = process(ONE_OF_1000, 10**9, **FIGURE_1)
    assert PROJECTED.apply(given).epsilon(1e-3) == pytest.approx(3.647, abs=5e-4)  # type: ignore[union-attr]
    assert limit_epsilon(given, 1e-3) == pytest.approx(3.647, abs=5e-4)
    assert closed_limit_epsilon(given, 1e-3) >= limit_epsilon(given, 1e-3)
    assert CURVED.apply(given).epsilon(1e-3) == pytest.approx(0.580, abs=5e-4)  # type: ignore[union-attr]
    mixed = BLOCK_MIXING.apply(given).notion  # type: ignore[union-attr]
    assert mixed.delta(0.0) <= 1.3e-4
    assert mixed.delta(0.02) <= 2e-8


@pytest.mark.parametrize("steps", [1, 2, 7, 1000])
def test_the_linear_bound_is_its_recursion(steps: int) -> None:
    epsilon, ratio, rate = 0.7, 2.0, 0.1
    reached = 0.0
    for _ in range(steps):
        reached = theta(epsilon, ratio) * ((1 - rate) * reached + rate)
    assert linear_contraction(np.array([epsilon]), ratio, rate, steps)[0] == pytest.approx(reached, rel=1e-9)


def test_the_curve_is_never_above_its_chord_and_grows_with_steps() -> None:
    epsilons = np.array([0.0, 0.1, 1.0, 3.0])
    for ratio in (0.3, 2.0, 6.0):
        for rate in (0.001, 0.3, 1.0):
            values = [curved_contraction(epsilons, ratio, rate, steps) for steps in (1, 10, 100, 10**9)]
            for steps, curved in zip((1, 10, 100, 10**9), values, strict=True):
                assert (curved <= linear_contraction(epsilons, ratio, rate, steps) * (1 + 1e-9)).all()
            assert all((a <= b * (1 + 1e-9)).all() for a, b in itertools.pairwise(values))


def test_the_curve_is_convex_and_is_the_gaussian_gap_at_one() -> None:
    epsilons = np.full(101, 0.5)
    curve = contracted(np.linspace(0, 1, 101), epsilons, 2.0)
    assert curve[0] == 0
    assert curve[-1] == pytest.approx(theta(0.5, 2.0), rel=1e-9)
    assert (np.diff(curve, 2) >= -1e-12).all()


def test_theorem_3_as_printed_is_refuted_by_one_step() -> None:
    """Errata E0.1: T = 1, b = 1 of n = 100, σ = 1, ηC = 5, ε = 10: the others push to −5, the record to 5 or to −5."""
    grid = np.linspace(-15, 15, 200_001)
    normal = np.exp(-((grid[:, None] - np.array([5.0, -5.0])) ** 2) / 2) / math.sqrt(2 * math.pi)
    gap = 0.01 * normal[:, 0] + 0.99 * normal[:, 1] - math.exp(10) * normal[:, 1]
    exact = float(np.maximum(gap, 0).sum() * (grid[1] - grid[0]))
    assert exact == pytest.approx(0.0099968, abs=2e-7)
    given = process(
        li.FixedSize(records=100, batch_size=1),
        1,
        sensitivity=10.0,
        drift=10.0,
        lipschitz=math.inf,
        retain=0.5,
        dimension=1,
    )
    printed = 0.01 * theta(10.0, 5.0)
    assert printed < exact * 0.7
    assert REGULARISED.apply(given).notion.delta(10.0) >= exact  # type: ignore[union-attr]


def test_two_wells_are_below_theorem_3_corrected() -> None:
    """Errata E0.1: exact 0.688 at ε = 0, printed 0.210, corrected 0.714."""
    batches = li.FixedSize(records=10, batch_size=1)
    given = process(batches, 200, sensitivity=4.0, drift=4.0, lipschitz=math.inf, retain=0.01, dimension=1)
    corrected = REGULARISED.apply(given).notion.delta(0.0)  # type: ignore[union-attr]
    assert two_wells(0.99, 2.0, 0.1, 200).delta(np.zeros(1))[0] <= corrected == pytest.approx(0.714, abs=1e-3)


def test_full_batches_have_a_bound() -> None:
    """Errata E0.2: the printed factor b/(n − b) is infinite there."""
    given = process(li.FullBatch(10), 5, sensitivity=0.1, drift=0.4, lipschitz=math.inf, retain=0.1, dimension=1)
    assert REGULARISED.apply(given).notion.delta(1.0) < 0.5  # type: ignore[union-attr]


def test_a_decay_above_two_moves_iterates_apart() -> None:
    """x ← −20x + … on an interval: two states may be twenty diameters apart before the noise."""
    run = li.Run(
        li.losses.network(clip=1.0),
        li.FullBatch(records=1),
        1.0,
        li.OnIterate(std=1.0),
        2,
        li.parts.ConvexSet(diameter=0.1),
        weight_decay=21.0,
    )
    assert printed_ratio(run.process) == pytest.approx(20 * 0.1 + 2.0)


@pytest.mark.parametrize("dimension", [10**4, 10**8, 10**12])
def test_one_step_with_full_decay_is_a_gaussian_mechanism_in_any_dimension(dimension: int) -> None:
    """The radius of the noise is no part of it, and must cancel without rounding the rest away."""
    batches = li.FullBatch(records=1)
    for ratio in (0.003, 0.2):
        given = process(batches, 1, sensitivity=ratio, drift=ratio, lipschitz=math.inf, retain=0.0, dimension=dimension)
        exact = li.notions.GaussianDP(ratio).delta(ratio)
        assert REGULARISED.apply(given).notion.delta(ratio) >= exact  # type: ignore[union-attr]


def test_tiny_rates_are_not_rounded_away() -> None:
    """1 − (1 − p)^T at ε = 0 and a hopeless ratio, for p = 1/n and many steps, against 40 digits."""
    source = np.random.default_rng(0)
    with mpmath.workdps(40):
        for _ in range(200):
            records, steps = int(10 ** source.uniform(8, 12)), int(10 ** source.uniform(8, 12))
            exact = 1 - (1 - mpmath.mpf(1) / records) ** steps
            assert linear_contraction(np.zeros(1), 60.0, 1 / records, steps)[0] >= exact


def test_the_refusals_name_what_is_missing() -> None:
    unknown = process(ONE_OF_1000, 10, sensitivity=0.1, drift=0.1, lipschitz=math.inf, retain=0.9)
    assert reasons(REGULARISED, unknown) == (fact("lacks", what="dimension"),)
    without_decay = process(ONE_OF_1000, 10, drift=0.1, dimension=3)
    assert reasons(REGULARISED, without_decay) == (fact("lacks", what="weight_decay"),)
    passes = process(li.Cyclic(records=10, batch_size=1), 10, diameter=1.0, drift=0.1)
    assert reasons(PROJECTED, passes) == (fact("not_covered", feature="fixed_order"),)
    assert reasons(PROJECTED, process(ONE_OF_1000, 10, diameter=1.0)) == (fact("lacks", what="clipped_gradients"),)
