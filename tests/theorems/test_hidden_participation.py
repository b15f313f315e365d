"""Hidden participation against enumeration, against a flow, against exact chains; and what it is worth."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

import lastiterate as li
from lastiterate.auditing.chain import Chain
from lastiterate.curves.hidden_participation import hidden_participation
from lastiterate.facts import fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.payment_law import minorant_law
from lastiterate.theorems.participation import HIDDEN_PARTICIPATION, windows_of
from processes import process, reasons

EPSILONS = np.append(0.0, np.geomspace(0.003, 12.0, 20))


def cost(turns: tuple[int, ...], factor: float) -> float:
    """μ² of pushes of 1 at these turns, noise 1, by pooling blocks; nothing is left at the end."""
    blocks: list[tuple[float, float, float]] = []
    for turn in turns:
        blocks.append((float(turn), 1.0, factor))
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-1][2] * blocks[-2][1]:
            (push, noise, kept), (more, further, shrunk) = blocks.pop(-2), blocks.pop()
            blocks.append((push * shrunk + more, noise * shrunk**2 + further, kept * shrunk))
    return sum(push**2 / noise for push, noise, _ in blocks)


def enumerated(steps: int, rate: float, factor: float) -> tuple[Floats, Floats, Floats]:
    """For every set of turns: how many, μ², probability."""
    sets = list(product((0, 1), repeat=steps))
    sizes = np.array([sum(one) for one in sets], float)
    return sizes, np.array([cost(one, factor) for one in sets]), rate**sizes * (1 - rate) ** (steps - sizes)


def theta(levels: Floats, mus: Floats) -> Floats:
    shifts = np.maximum(mus, 1e-12)
    return np.asarray(norm.sf(levels / shifts - shifts / 2) - np.exp(levels + norm.logsf(levels / shifts + shifts / 2)))


def levels_for(epsilon: float, mus: Floats, weights: Floats) -> Floats:
    """ε(V) = μ(q − μ/2), as far as it increases, with q such that e^ε is the mean of e^{ε(V)}."""
    low, high = 0.0, 60.0
    for _ in range(80):
        q = (low + high) / 2
        levels = np.where(mus < q, mus * (q - mus / 2), q * q / 2)
        low, high = (low, q) if weights @ np.exp(levels) > math.exp(epsilon) else (q, high)
    return np.where(mus < low, mus * (low - mus / 2), low * low / 2)


@pytest.mark.parametrize(
    ("steps", "rate", "factor"), [(1, 0.3, 1.0), (9, 0.3, 1.0), (11, 0.1, 0.9), (9, 0.6, 0.5), (6, 1.0, 1.0)]
)
def test_the_law_of_the_costs_lies_above_the_enumerated_one(steps: int, rate: float, factor: float) -> None:
    _, costs, weights = enumerated(steps, rate, factor)
    law = minorant_law(steps, rate, factor)
    for at in np.linspace(0.0, float(costs.max()), 200):
        exact, found = weights[costs > at + 1e-9].sum(), law.weights[law.costs > at].sum() + law.lost
        assert found >= exact * (1 - 1e-12)
    if factor == 1:
        assert law.costs @ law.weights == pytest.approx(costs @ weights, rel=5e-3)


@pytest.mark.parametrize("steps", [300, 1500])
def test_long_laws_lie_above_drawn_ones_and_near_them(steps: int) -> None:
    drawn = np.random.default_rng(7).random((400, steps)) < 0.02
    mean = float(np.mean([cost(tuple(row), 1.0) for row in drawn.astype(int).tolist()]))
    law = minorant_law(steps, 0.02, 1.0)
    assert 0.9 * mean <= law.costs @ law.weights <= 1.25 * mean
    assert 1 <= law.weights.sum() <= 1 + 1e-6


def test_the_profile_is_what_all_sets_give() -> None:
    """Every set of turns written out; the recipe of the reference takes ε(V) by the number of turns, and is worse.

    Reference: theorems by enumeration of all 2^8 sets, ε_n = m_n(q − m_n/2), m_n the mean of μ(V) given n turns,
    δ = 1e-5, rate 0.2, sensitivity = noise: 7.726084442987387.
    """
    sizes, costs, weights = enumerated(8, 0.2, 1.0)
    mus = np.sqrt(costs)
    means = np.array([mus[sizes == count].mean() for count in range(9)])[sizes.astype(int)]
    by_count = weights @ theta(levels_for(7.726084442987387, means, weights), mus)
    assert by_count == pytest.approx(1e-5, rel=1e-6)
    law = minorant_law(8, 0.2, 1.0)
    found = hidden_participation(np.sqrt(law.costs), law.weights, law.lost)
    for epsilon in (0.1, 1.0, 3.0, 5.0):
        exact = weights @ theta(levels_for(epsilon, mus, weights), mus)
        assert exact <= found.delta(epsilon) <= 1.1 * exact
    assert 5.1 < found.epsilon(1e-5) < 5.25


def test_what_hard_sets_take_flows_up_from_their_subsets() -> None:
    """The step of the proof: y(V) that grows with V and has mean e^ε can be carried from the subsets of each V."""
    sets = list(product((0, 1), repeat=4))
    _, costs, weights = enumerated(4, 0.3, 1.0)
    shares = np.exp(levels_for(1.2, 1.5 * np.sqrt(costs), weights))
    arcs = [
        (a, b)
        for a, one in enumerate(sets)
        for b, two in enumerate(sets)
        if all(x <= y for x, y in zip(one, two, strict=True))
    ]
    given, taken = np.zeros((16, len(arcs))), np.zeros((16, len(arcs)))
    for index, (source, target) in enumerate(arcs):
        given[source, index] = taken[target, index] = 1.0
    solved = linprog(
        np.zeros(len(arcs)), A_ub=given, b_ub=weights * math.exp(1.2) * (1 + 1e-9), A_eq=taken, b_eq=weights * shares
    )
    assert solved.status == 0


@pytest.mark.parametrize(
    ("steps", "rate", "push", "factor"),
    [(3, 0.5, 1.0, 1.0), (8, 0.2, 2.0, 1.0), (12, 0.1, 3.0, 0.9), (6, 0.8, 0.5, 0.7)],
)
def test_it_lies_above_exact_chains(steps: int, rate: float, push: float, factor: float) -> None:
    """The others hold the iterate in the middle, or let it go; the record pushes."""
    for width in (0.5, 3.0, 20.0):

        def held(x: Floats, width: float = width) -> Floats:
            return factor * np.clip(x, -width, width) - push / 2

        def pushed(x: Floats, width: float = width) -> Floats:
            return held(x, width) + push

        half = 8.0 + 3 * push
        chain = Chain(held, pushed, held, np.ones(steps), np.full(steps, rate), -half, half, cells=150)
        exact, error = chain.delta_with_error(EPSILONS)
        batches = li.FixedSize(records=10, batch_size=round(10 * rate))
        given = process(batches, steps, sensitivity=push, noise=1.0, lipschitz=factor)
        assert (np.asarray(HIDDEN_PARTICIPATION.notion(given).delta(EPSILONS)) >= exact - error - 1e-13).all()


def test_what_it_is_worth() -> None:
    given = process(li.FixedSize(records=1000, batch_size=50), 2000, sensitivity=0.5, noise=1.0, lipschitz=1.0)
    composed = next(one for one in li.theorems.ALL if one.name == "bok2024/random/composition").notion(given)
    assert composed.epsilon(1e-6) == pytest.approx(7.0853, abs=1e-3)
    assert HIDDEN_PARTICIPATION.notion(given).epsilon(1e-6) < 6.1


def test_releases_cut_windows() -> None:
    batches = li.FixedSize(records=100, batch_size=5)
    whole = process(batches, 90, sensitivity=1.5, noise=1.0, lipschitz=1.0)
    cut = process(batches, 90, sensitivity=1.5, noise=1.0, lipschitz=1.0, releases=(30, 60))
    assert windows_of(cut, 30).epsilon(1e-6) == windows_of(whole, 30).epsilon(1e-6)
    assert HIDDEN_PARTICIPATION.notion(cut).epsilon(1e-6) > HIDDEN_PARTICIPATION.notion(whole).epsilon(1e-6)


def test_poisson_sums_are_left_to_composition() -> None:
    given = process(li.Poisson(records=100, rate=0.1), 5, lipschitz=1.0)
    assert reasons(HIDDEN_PARTICIPATION, given) == (fact("poisson_replaced"),)
