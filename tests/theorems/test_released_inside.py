"""A checkpoint released inside an epoch of a new order: the record has one turn, before it or after it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import lastiterate as li
from lastiterate.numerics.arrays import Floats
from lastiterate.shift.optimise import best_schedule
from lastiterate.theorems.epochs import EPOCH_BY_EPOCH, HIDDEN_EPOCHS, epochs_of, mus_by_place, pair_mus_by_place
from processes import process, steps_of

EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
BATCHES = li.Shuffled(records=40, batch_size=10)


def exact_deltas(steps: int, release: int, factor: float, pushes: tuple[float, float]) -> Floats:
    """x ← factor·x + push + N(0, 1), new orders of four batches: both released iterates, over all places, on a grid."""
    powers = factor ** np.arange(steps - 1, -1, -1.0)
    early = np.where(np.arange(steps) < release, factor ** (release - 1.0 - np.arange(steps)), 0.0)
    loadings = np.stack([early, powers])
    whitened = np.linalg.solve(np.linalg.cholesky(loadings @ loadings.T), loadings)
    epochs = [list(range(first, min(first + 4, steps))) for first in range(0, steps, 4)]
    choices = [[(place,) for place in epoch] + [()] * (4 - len(epoch)) for epoch in epochs]
    turns = [sum(choice, ()) for choice in product(*choices)]
    axis = np.linspace(-9.0, 9.0, 361)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)

    def density(push: float) -> Floats:
        means = [whitened[:, list(one)].sum(axis=1) * push for one in turns]
        cells = [np.exp(-np.square(grid - mean).sum(axis=-1) / 2) for mean in means]
        return np.asarray(np.mean(cells, axis=0) / (2 * np.pi) * (axis[1] - axis[0]) ** 2)

    one, two = density(pushes[0]), density(pushes[1])
    orders = [[np.maximum(a - np.exp(e) * b, 0.0).sum() for e in EPSILONS] for a, b in ((one, two), (two, one))]
    return np.asarray(np.max(orders, axis=0))


@pytest.mark.parametrize("factor", [1.0, 0.7, 1.2])
@pytest.mark.parametrize(("steps", "release"), [(4, 1), (4, 3), (8, 6), (7, 5)])
@pytest.mark.parametrize("pushes", [(0.6, -0.6), (1.2, 0.0)])
def test_both_theorems_lie_above_two_released_gaussians(
    factor: float, steps: int, release: int, pushes: tuple[float, float]
) -> None:
    given = process(BATCHES, steps, sensitivity=1.2, noise=1.0, lipschitz=factor, releases=(release,))
    exact = exact_deltas(steps, release, factor, pushes)
    for theorem in (EPOCH_BY_EPOCH, HIDDEN_EPOCHS):
        assert (np.asarray(theorem.notion(given).delta(EPSILONS)) >= exact - 1e-7).all()


def test_the_steps_after_a_release_hide_nothing_of_what_was_before() -> None:
    source = np.random.default_rng(3)
    for _ in range(20):
        push, noise, factor = source.uniform(0.1, 1, 7), source.uniform(0.5, 2, 7), source.uniform(0.5, 1.5, 7)
        own = mus_by_place(push[None], noise[None], factor[None], (3,))[0]
        pairs = pair_mus_by_place(push, noise, factor, (3,))
        for place, other in product(range(7), repeat=2):
            turns = np.isin(np.arange(7), (place, other))
            pieces = [slice(0, 3), slice(3, 7)]
            mus = [best_schedule(steps_of(np.where(turns, push, 0.0)[p], noise[p], factor[p]))[0] for p in pieces]
            least = float(np.hypot(*mus)) * (1 - 1e-11)
            assert (own[place] if place == other else pairs[place, other]) >= least
            if (place < 3) != (other < 3):
                assert pairs[place, other] <= least * (1 + 1e-9)


def test_epochs_are_counted_once_each_however_they_are_cut() -> None:
    for releases in ((), (2,), (2, 6, 9), (4, 8), (1, 2, 3, 5), tuple(range(1, 30))):
        given = process(BATCHES, 30, sensitivity=0.5, lipschitz=1.1, releases=releases)
        found = list(epochs_of(given))
        assert sum(one.count for one in found) == 8
        varied = process(BATCHES, 30, sensitivity=np.linspace(0.4, 0.5, 30), lipschitz=1.1, releases=releases)
        assert sum(one.count for one in epochs_of(varied)) == 8
        assert EPOCH_BY_EPOCH.notion(varied).epsilon(1e-5) <= EPOCH_BY_EPOCH.notion(given).epsilon(1e-5) * (1 + 1e-9)


def test_a_release_inside_an_epoch_costs_little() -> None:
    loss = li.losses.general(smoothness=1.0, weak_convexity=0.2, gradient_sensitivity=2.0)
    run = li.Run(loss, li.Shuffled(records=100, batch_size=10), 0.1, li.OnIterate(0.04), 50)
    at_the_end, inside = (li.account(run, delta=1e-6, releases=[at]) for at in (20, 25))
    assert inside.best.theorem.name == "hidden-place/epoch-by-epoch"
    assert at_the_end.epsilon < inside.epsilon < 1.1 * at_the_end.epsilon
