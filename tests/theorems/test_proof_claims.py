"""Claims of docs/proofs.md that are about numbers, each against an independent computation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi

import lastiterate as li
from lastiterate.facts import fact
from lastiterate.kernel.prepaid import longest
from lastiterate.shift.optimise import best_schedule
from lastiterate.theorems.papers.bok2024 import CONTRACTING_FULL
from lastiterate.theorems.papers.langevin import FULL_BATCH, PASSES
from lastiterate.theorems.shift_engine import own_mus
from processes import process, reasons, steps_of

GRID = np.linspace(-14.0, 14.0, 28_001)


def normal(mean: float) -> np.ndarray:
    return np.exp(-((GRID - mean) ** 2) / 2) / math.sqrt(2 * math.pi)


def hockey_stick(one: np.ndarray, two: np.ndarray, factor: float) -> float:
    return float(np.maximum(one - factor * two, 0.0).sum() * (GRID[1] - GRID[0]))


@pytest.mark.parametrize("rate", [0.05, 0.4, 1.0])
@pytest.mark.parametrize("gamma", [1.0, 1.3, 4.0])
def test_beta_of_the_poisson_proof(rate: float, gamma: float) -> None:
    """E_γ of the mixtures is q·E_γ'(N_v ‖ (1 − β)N₀ + βN_v') with β = γ/γ'; γ'/γ would not even be a probability."""
    raised = 1 + (gamma - 1) / rate
    beta = gamma / raised
    assert 0 < beta <= 1
    for v, other in ((1.0, -1.0), (1.0, 0.5), (-0.3, 0.9)):
        mixed = hockey_stick(
            (1 - rate) * normal(0) + rate * normal(v), (1 - rate) * normal(0) + rate * normal(other), gamma
        )
        inner = hockey_stick(normal(v), (1 - beta) * normal(0) + beta * normal(other), raised)
        assert mixed == pytest.approx(rate * inner, abs=1e-12)


def mu_of(turns: list[int], steps: int, factor: float, diameter: float) -> float:
    pushes = np.zeros(steps)
    pushes[turns] = 1.0
    return best_schedule(steps_of(pushes, 1.0, factor, diameter))[0]


@pytest.mark.parametrize("factor", [0.3, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("diameter", [math.inf, 2.0])
def test_a_later_place_in_the_last_epoch_is_no_better(factor: float, diameter: float) -> None:
    """Four epochs of six steps; the earlier turns stay at the ends of their epochs."""
    mus = [mu_of([5, 11, 17, 18 + place], 24, factor, diameter) for place in range(6)]
    assert all(one <= two * (1 + 1e-12) for one, two in itertools.pairwise(mus))
    assert mus[0] < mus[-1]


def test_an_earlier_place_may_be_worse_where_steps_move_iterates_apart() -> None:
    mus = [mu_of([5, 11, 17, 18 + place], 24, 1.6, math.inf) for place in range(6)]
    assert min(mus) < mus[0]


def test_smaller_pushes_are_no_worse() -> None:
    source = np.random.default_rng(5)
    for _ in range(60):
        pushes, noise = source.uniform(0, 1, 10), source.uniform(0.3, 2, 10)
        factors = source.uniform(0, 1.4, 10)
        fewer = pushes * source.uniform(0, 1, 10)
        more, less = (best_schedule(steps_of(one, noise, factors))[0] for one in (pushes, fewer))
        assert less <= more * (1 + 1e-9)


def test_passes_in_one_order_are_proved_with_something_to_spare() -> None:
    """What the proof gives lies between the engine, which is the best of all schedules, and the formula of the paper."""
    for every in (2, 3, 4, 7, 10):
        for epochs in (1, 2, 5, 30):
            for factor in (0.0, 0.5, 0.9, 0.999):
                given = process(li.Cyclic(records=every, batch_size=1), every * epochs, lipschitz=factor)
                formula = 2 * PASSES.apply(given).notion.rho  # type: ignore[union-attr]
                part, rest = every // 2, every - every // 2
                hidden = factor ** (2 * part - 2) / sum(factor ** (2 * i) for i in range(part))
                proved = 1 + hidden * sum(factor ** (2 * rest * i) for i in range(1, epochs))
                assert own_mus(given).max() ** 2 <= proved * (1 + 1e-9)
                assert proved <= formula


def test_the_formula_for_passes_would_be_false_for_one_batch() -> None:
    factor, steps = 0.9, 200
    given = process(li.FullBatch(records=1), steps, lipschitz=factor)
    exact = CONTRACTING_FULL.apply(given).notion.mu ** 2  # type: ignore[union-attr]
    continued = 1 + (1 - factor ** (2 * (steps - 1))) / (1 - factor**2)
    assert exact == pytest.approx(19.0, rel=1e-6)
    assert continued == pytest.approx(6.263, abs=1e-3)
    alone = process(li.Cyclic(records=1, batch_size=1), steps, lipschitz=factor)
    assert reasons(PASSES, alone) == (fact("not_two_batches"),)


def test_chourasia_is_never_below_bok() -> None:
    for factor in (0.0, *(1 - np.geomspace(1, 1e-9, 40)[1:])):
        for steps in np.unique(np.geomspace(1, 10**7, 40).astype(int)).tolist():
            given = process(li.FullBatch(records=1), steps, sensitivity=0.3, lipschitz=float(factor))
            exact = CONTRACTING_FULL.apply(given).notion.mu ** 2 / 2  # type: ignore[union-attr]
            assert exact <= FULL_BATCH.apply(given).notion.rho  # type: ignore[union-attr]
            rate = (1 - float(factor)) * steps
            assert exact <= min(rate, 2.0) / (1 - factor) * 0.3**2 / 2 * (1 + 1e-9)


@pytest.mark.parametrize("probability", [1 / 6, 1e-2, 1e-6, 1e-15, 1e-100])
def test_twice_the_directions_are_at_most_twice_as_long(probability: float) -> None:
    """κ_{2k} ≤ 2κ_k, the quantiles of χ, and what the kernel takes for them."""
    ranks = np.unique(np.geomspace(1, 1e5, 200).astype(int))
    assert (chi.isf(probability, 2 * ranks) <= 2 * chi.isf(probability, ranks)).all()
    assert all(chi.isf(probability, 2 * rank) <= 2 * longest(rank, probability) for rank in ranks.tolist())
