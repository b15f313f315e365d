"""Reflection: each piece against its definition, the recursion against finite kernels, runs against chains."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.tightness.against_reflection import compared
from scipy.optimize import brentq
from scipy.stats import norm

import lastiterate as li
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.facts import fact
from lastiterate.mixing.contraction import reflected
from lastiterate.mixing.distances import HiddenTables, Scale, Step
from lastiterate.mixing.layers import Layers
from lastiterate.theorems.block_mixing import BLOCK_MIXING
from lastiterate.theorems.bounded_steps import Bounded, PlaceTables
from lastiterate.theorems.reflection import REFLECTION
from processes import process, reasons

ROWS = np.linspace(0.0, 3.0, 13)
SCALE = Scale(ROWS, 9.0 * np.linspace(0.0, 1.0, 61) ** 1.5, np.array([0.0, 0.3, 1.5]))


@pytest.mark.parametrize("level", [0.0, 0.3, 1.5])
@pytest.mark.parametrize("distance", [0.4, 1.0, 2.6])
def test_what_is_left_lands_where_its_quantiles_say(level: float, distance: float) -> None:
    """U and V are inverted by a root finder, and the probability of each distance integrated."""
    found = reflected(np.array([level]), np.array([distance]), ROWS)
    apart = li.notions.GaussianDP(distance).delta(level)
    assert found.apart[0, 0] == pytest.approx(apart, rel=1e-9)
    assert found.lift[0, 0] == pytest.approx(np.log1p(np.expm1(level) / apart) - level, rel=1e-9)
    rest, middle = np.expm1(level) + apart, distance / 2 - level / distance

    def first(y: float) -> float:
        return float(norm.cdf(y) - np.exp(level) * norm.cdf(y - distance)) / apart

    def second(z: float) -> float:
        return float(np.exp(level) * norm.sf(z - distance) - norm.sf(z)) / rest

    beyond = 1 - np.cumsum(found.landing[0, 0])
    for row, chance in zip(ROWS[1:-1].tolist(), beyond[1:-1].tolist(), strict=True):
        at = brentq(lambda y, row=row: first(y) - second(y + row), middle - row, middle)
        assert first(at) * (1 - 1e-9) <= chance <= first(at) + 2e-4


@pytest.mark.parametrize("payment", [0.1, 0.7, 2.5])
def test_a_payment_takes_the_mean_over_the_noise(payment: float) -> None:
    table = np.exp(-SCALE.levels)[None, :] * 0.3
    hinges, rest = SCALE.hinges(table)
    found = hinges @ SCALE.paid(payment) + rest[:, None]
    noise = np.linspace(-12.0, 12.0, 200_001)
    for index in (0, 10, 30):
        levels = SCALE.levels[index] + payment * noise - payment**2 / 2
        exact = np.trapezoid(norm.pdf(noise) * SCALE.along(table[0], levels), noise)
        assert exact * (1 - 1e-6) <= found[0, index] <= exact * (1 + 1e-3)


def test_one_step_is_the_normal_gap_and_two_lie_between_it_and_the_sum() -> None:
    step = Step(SCALE, ROWS + 0.5, 0.5)
    assert step.last == pytest.approx(
        np.array([li.notions.GaussianDP(r + 0.5).delta(SCALE.levels) for r in ROWS]), rel=1e-9
    )
    twice = step.before(step.last)
    assert (np.diff(twice, axis=0) >= 0).all()
    assert (twice[0] <= li.notions.GaussianDP(0.5 * 2**0.5).delta(SCALE.levels) * 1.1)[:30].all()
    assert (twice[0] >= step.last[0] * (1 - 1e-9)).all()


def hockey_stick(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(first - np.exp(epsilon) * second, 0.0).sum())


@pytest.mark.parametrize("seed", range(12))
def test_layers_lie_above_finite_kernels(seed: int) -> None:
    """Random laws and kernels on six states: h, d and M by their definitions, both orders."""
    source = np.random.default_rng(seed)
    laws = source.dirichlet(np.full(6, 0.7), 2)
    kernel = source.dirichlet(np.ones(6), 6)
    other = 0.8 * kernel + 0.2 * source.dirichlet(np.ones(6), 6)
    grid, far = np.linspace(0.0, 3.0, 31), np.linspace(0.0, 12.0, 121)

    def worst(pairs: list[tuple[np.ndarray, np.ndarray]], epsilons: np.ndarray) -> np.ndarray:
        both = pairs + [(b, a) for a, b in pairs]
        return np.array([max(hockey_stick(a, b, e) for a, b in both) for e in epsilons.tolist()])

    before = worst([(laws[0], laws[1])], grid)
    common = worst([(kernel[i], other[i]) for i in range(6)], grid)
    apart = worst([(kernel[i], other[j]) for i in range(6) for j in range(6)], far)
    after = Layers(grid, common, far, apart).after(before)
    exact = np.maximum(
        worst([(laws[0] @ kernel, laws[1] @ other)], grid), worst([(laws[0] @ other, laws[1] @ kernel)], grid)
    )
    assert (after >= exact * (1 - 1e-12)).all()


def test_layers_of_two_normal_steps_are_their_composition() -> None:
    """Nothing is forgotten (M = 1): both steps are seen, and together they are √2-GDP."""
    grid = np.linspace(0.0, 8.0, 121)
    alone = li.notions.GaussianDP(1.0).delta(grid)
    after = Layers(grid, alone, np.array([0.0, 50.0]), np.ones(2)).after(alone)
    exact = li.notions.GaussianDP(2**0.5).delta(grid)
    assert (after >= exact * (1 - 1e-9)).all()
    assert (after <= exact * 1.1)[60:].all()


def test_hidden_tables_do_what_hidden_places_do() -> None:
    mus, weights = np.array([0.2, 0.4, 0.9]), np.full(3, 1 / 3)
    pairs = np.hypot(mus[:, None], mus)
    exact = HiddenPlaceDP(mus=mus, pair_mus=pairs, weights=weights)
    scale = Scale(ROWS, np.linspace(0.0, 8.0, 401), SCALE.cuts)

    def tables(values: np.ndarray) -> np.ndarray:
        return np.array([li.notions.GaussianDP(mu).delta(scale.levels) for mu in values])

    found = HiddenTables(scale, weights, tables(mus), np.array([tables(pairs[2])]))
    epsilons = np.array([0.1, 0.5, 1.0, 2.0])
    assert found.delta(epsilons) == pytest.approx(exact.delta(epsilons), rel=0.05)


@pytest.mark.parametrize("seed", [3, 5, 11, 14])
def test_exact_chains_with_bent_maps_lie_below(seed: int) -> None:
    assert (compared(seed) <= 1).all()


# theorems.md §21, "A + B + C" and the largest exact instance that was found; δ = 1e-6, any number of steps.
SHUFFLED, ONCE = li.Shuffled(records=10, batch_size=1), li.Shuffled(records=10, batch_size=1, each_epoch=False)
FIXED, FULL = li.FixedSize(records=10, batch_size=1), li.FullBatch(records=10)


@pytest.mark.parametrize(
    ("batches", "push", "diameter", "most", "exact"),
    [
        (FULL, 0.1, 1.0, 0.64, 0.57),
        (FULL, 0.1, 3.0, 1.52, 0.96),
        (FULL, 0.1, 10.0, 4.66, 2.12),
        (SHUFFLED, 0.5, 0.6, 0.60, 0.504),
        (SHUFFLED, 0.5, 1.0, 0.80, 0.503),
        (SHUFFLED, 0.5, 3.0, 1.57, 0.546),
        (ONCE, 0.5, 1.0, 0.80, 0.503),
        (FIXED, 0.5, 3.0, 1.12, 0.600),
    ],
)
def test_numbers_of_the_theory(batches: object, push: float, diameter: float, most: float, exact: float) -> None:
    given = process(batches, 10**4, sensitivity=push, diameter=diameter)
    found = REFLECTION.apply(given).epsilon(1e-6)  # type: ignore[union-attr]
    assert exact <= found <= most
    assert found < BLOCK_MIXING.apply(given).epsilon(1e-6)  # type: ignore[union-attr]


def test_a_domain_that_is_too_wide_is_refused_with_its_width() -> None:
    given = process(FULL, 10, sensitivity=0.1, diameter=40.0)
    assert reasons(REFLECTION, given) == (fact("domain_too_wide", at_most=16.0, times_noise=40.0),)


def test_a_push_that_nothing_hides_and_epochs_that_are_too_long_are_refused_with_numbers() -> None:
    pushed = process(FULL, 10, sensitivity=20.0, diameter=1.0)
    assert reasons(REFLECTION, pushed) == (fact("sensitivity_too_large", at_most=12.0, times_noise=20.0),)
    assert REFLECTION.apply(process(FULL, 10, sensitivity=12.0, diameter=1.0)).epsilon(1e-6) > 100  # type: ignore[union-attr]
    long = process(li.Shuffled(records=500, batch_size=1), 500, sensitivity=0.1, diameter=10.0)
    (reason,) = reasons(REFLECTION, long)
    assert (reason.code, dict(reason.values)["batches"]) == ("too_many_batches_on_domain", 500)


@pytest.mark.parametrize(
    ("push", "lipschitz", "drift", "diameter"),
    [(0.4, 0.9, np.inf, 1.0), (0.4, 1.0, np.inf, 1.0), (0.4, 3.0, 0.5, 1.0), (5.0, 1e6, 5.0, 5e-5)],
)
def test_a_settled_table_covers_any_number_of_steps_before_it(
    push: float, lipschitz: float, drift: float, diameter: float
) -> None:
    """Row by row, against the tables that are computed step by step; where steps move iterates apart, rows may rise."""
    batches = li.Cyclic(records=40, batch_size=1)
    domain = Bounded(process(batches, 40, push, 1.0, lipschitz, diameter=diameter, drift=drift))
    table = domain.turn.last
    while not domain.settled(table):
        table = domain.free.before(table)
    step_by_step = worst = table
    for steps in range(1, 30):
        step_by_step = domain.free.before(step_by_step)
        worst = np.maximum(worst, step_by_step)
        assert (domain.carried(table, steps) >= step_by_step * (1 - 1e-9)).all()
    reused = PlaceTables(domain)._without(table)[-1]
    assert reused is not None
    assert (reused >= worst * (1 - 1e-9)).all()
    assert (reused[[0, -1]] == table[[0, -1]]).all()
