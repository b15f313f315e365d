"""Instances whose steps are linear: quadratic losses, and room for them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
from scipy.special import ndtr

from lastiterate.auditing.allowed import (
    Counts,
    WorstCase,
    allowed_hessians,
    allowed_splits,
    clipped_hessians,
    counts_of,
    curvature_may_change,
    empty_is_as_others,
    greatest,
    half_gradient,
    losses_with,
    share_of_others,
)
from lastiterate.auditing.grid_steps import LARGEST
from lastiterate.auditing.quadratic import QuadraticSteps, exact_mu, exact_mu_of, steps_of, weights_of
from lastiterate.auditing.sums import Pushed, RandomSum
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import Batches, Turns
from lastiterate.runs.per_step import extremes
from lastiterate.runs.run import Run
from lastiterate.shift.prepay import best_slopes

_MOST_STEPS = 2_000_000  # that are looked at one by one
_GRID = 7
_MOST_CLIPPED = 100_000
_SEARCH = 12
_TINY = 1e-300  # tails below it round to 0
_VANISHED = 1e-18  # of the noise: far below what a cell is rounded by


def two_gaussians(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """Yield lower bounds on ε for batches that are not random (Bok et al. 2024, Theorems 4.2 and C.17)."""
    hessians = allowed_hessians(run)
    if hessians is None or not as_known(run.batches) or math.isfinite(run.domain.diameter):
        return
    if run.steps > _MOST_STEPS and (releases or run.batches.uneven or not steps_of(run, hessians[0]).alike):
        return
    grid = np.linspace(*hessians, _GRID).tolist() if hessians[1] > hessians[0] else hessians[:1]
    mu, where = greatest(lambda hessian: exact_mu(run, hessian, releases), grid)
    # The factor 1 − η·hessian is rounded, once for each step that is not yet forgotten; 1 is exact.
    lost = 1 - extremes(steps_of(run, where).factor)[1]
    rounded, together = min(run.steps, 1 / lost) if lost > 0 else 0.0, _together(run)
    who = {"user_records": together} if together > 1 else {}
    yield epsilon_of(run, together * mu * (1 - 1e-13 - 4e-16 * rounded), delta), losses_with(run, where, **who)


def named_gaussians(
    run: Run, delta: float, releases: tuple[int, ...], members: tuple[int, ...]
) -> Iterator[tuple[float, WorstCase]]:
    """Yield lower bounds on ε for named records, `members` at each place of an epoch, replaced in one direction."""
    hessians = allowed_hessians(run)
    if (
        hessians is None
        or math.isfinite(run.domain.diameter)
        or not run.adjacency.replaces
        or run.steps > _MOST_CLIPPED
    ):
        return
    counts = np.resize(np.array(members, float), run.steps)
    grid = np.linspace(*hessians, _GRID).tolist() if hessians[1] > hessians[0] else hessians[:1]
    mu, where = greatest(lambda hessian: exact_mu_of(steps_of(run, hessian), counts, releases), grid)
    yield epsilon_of(run, mu * (1 - 1e-13 - 4e-16 * run.steps), delta), losses_with(run, where, pushing="named")


def _together(run: Run) -> int:
    """Number of records of a user that the last batch may hold, all replaced in the same direction."""
    size = run.batches.size_at(run.steps - 1) if run.adjacency.replaces else 1
    return min(run.user_records, size or 1)


def clipped_gaussians(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """Yield lower bounds on ε where others have quadratic losses up to a bound that iterates hardly ever reach."""
    hessians = clipped_hessians(run)
    if hessians is None or not as_known(run.batches) or math.isfinite(run.domain.diameter) or run.steps > _MOST_CLIPPED:
        return

    def epsilon(hessian: float) -> float:
        mu = exact_mu(run, hessian, releases) * (1 - 1e-13 - 4e-16 * run.steps)
        apart = epsilon_of(run, mu, delta)
        unlike = _leaving(run, hessian) * (1 + math.exp(min(apart, LARGEST)))
        return epsilon_of(run, mu, delta + unlike) if delta + unlike < 1 else 0.0

    found, where = greatest(epsilon, np.linspace(*hessians, _GRID).tolist(), _SEARCH)
    yield found, WorstCase("quadratic_up_to_bound", {"hessian": where})


def _leaving(run: Run, hessian: float) -> float:
    """Bound on the probability that a gradient hessian·x reaches its bound before the last step."""
    steps, seen = steps_of(run, hessian), run.batches.inclusion(run.steps)
    if hessian == 0:
        return 0.0
    room = share_of_others(run) * half_gradient(run) / abs(hessian)
    mean, variance, total = 0.0, 0.0, 0.0
    away = 0.5 if run.adjacency.replaces else 1.0
    parts = (steps.factor, steps.push * seen * away, np.square(steps.noise))
    for factor, push, noise in zip(*(one[:-1].tolist() for one in parts), strict=True):
        mean, variance = abs(factor) * mean + push, factor**2 * variance + noise
        total += 2 * float(ndtr((mean - room) / math.sqrt(variance))) + _TINY
    return min(total, 1.0)


def as_known(batches: Batches) -> bool:
    """Whether the batches that hold the record, and its weight in them, are known."""
    once = batches.shuffled and batches.per_epoch == 1
    if batches.own_mean:
        return False
    return batches.turns in (Turns.EVERY_STEP, Turns.FIXED_ORDER) or once or float(batches.inclusion(1)[0]) == 1


def epsilon_of(run: Run, mu: float, delta: float) -> float:
    """Lower bound on ε of two normal laws `mu` apart, after a Gaussian mechanism that attains `prior_mu`."""
    together = math.hypot(max(mu, 0.0), run.prior_mu)
    return float(GaussianDP(together * (1 - 1e-15) if run.prior_mu else together).bracket(delta)[0])  # type: ignore[arg-type]


def random_pushes(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """Yield lower bounds on ε for random batches and random orders."""
    hessians = allowed_hessians(run)
    if hessians is None or as_known(run.batches) or math.isfinite(run.domain.diameter):
        return
    if run.steps > _MOST_STEPS and run.batches.uneven:
        return
    for hessian, (record, neighbour) in product(sorted(set(hessians)), allowed_splits(run)):
        counts = counts_of(run.batches)
        if run.batches.own_mean and not empty_is_as_others(run, hessian, record):
            counts = counts.never_empty
        pushes = _random_sum(run.batches, steps_of(run, hessian), run.steps, counts)
        if pushes is not None:
            epsilon = Pushed(pushes, record, neighbour).epsilon(delta)
            yield epsilon, losses_with(run, hessian, pushing=pushing(record, neighbour))


def pushing(record: float, neighbour: float) -> str:
    """Name by which a worst case calls these pushes of record and neighbour."""
    if (record, neighbour) == (2.0, 1.0):
        return "against_others"
    return "one_sided" if neighbour == 0 else "opposite"


def _random_sum(batches: Batches, steps: QuadraticSteps, count: int, counts: Counts) -> RandomSum | None:
    if steps.alike and float(steps.factor[0]) == 1 and batches.random:
        deviation = float(steps.noise[0]) * math.sqrt(count)
        return _coins(np.full(1, float(steps.push[0])), batches, deviation, counts, count)
    last = slice(count - _remembered(steps, count, batches.per_epoch if batches.shuffled else 1), None)
    if count - last.start > _MOST_STEPS:
        return None
    weights = weights_of(steps.factor[last])
    deviation = math.sqrt(float(np.sum(np.square(weights * steps.noise[last]))))
    return sum_of_pushes(batches, weights * steps.push[last], deviation, counts)


def _remembered(steps: QuadraticSteps, count: int, per_epoch: int) -> int:
    """Number of last steps that leave more than a vanishing part of the noise; whole epochs are left out before them.

    All steps of a run that is short enough to be looked at step by step, does not contract, or changes its steps. The
    pushes that are left out add up to push·f^K/(1 − f), and the noise that is left out with them to the square of that part.
    """
    if count <= _MOST_STEPS or not steps.alike or not abs(float(steps.factor[0])) < 1:
        return count
    factor, push, noise = abs(float(steps.factor[0])), float(steps.push[0]), float(steps.noise[0])
    if not (factor and push):
        needed = 1
    else:
        part = _VANISHED * min(noise / push, 1.0) * (1 - factor)
        needed = math.ceil(math.log(part) / math.log(factor)) + 1
    return min(count, -(-needed // per_epoch) * per_epoch + count % per_epoch)


def sum_of_pushes(batches: Batches, values: Floats, deviation: float, counts: Counts) -> RandomSum | None:
    """Sum of the pushes of a run's steps, weighed by their effect at the end; None if there are too many."""
    if batches.shuffled:
        return orders(values, batches, deviation)
    gone = np.cumsum(np.sort(np.abs(values))) < _VANISHED * deviation
    kept = values[np.argsort(np.abs(values))[~gone]]
    too_many = batches.own_mean and len(kept) * len(counts.numbers) > _MOST_STEPS
    return None if too_many else _coins(kept, batches, deviation, counts)


def _coins(values: Floats, batches: Batches, deviation: float, counts: Counts, times: int = 1) -> RandomSum:
    """Sum of pushes that occur independently, each with the same probability; own means divide by the batch size."""
    rate = float(batches.inclusion(1)[0])
    if not batches.own_mean:
        return RandomSum(values[:, None], np.broadcast_to(rate, (len(values), 1)), deviation, times)
    shares = values[:, None] / (counts.numbers + 1)
    chances = np.broadcast_to(rate * counts.probabilities, shares.shape)
    return RandomSum(shares, chances, deviation, times, left_out=counts.left_out * len(values) * times)


def orders(values: Floats, batches: Batches, deviation: float) -> RandomSum:
    """Sum of one push of each epoch, or of one place in all epochs; the last epoch may be cut short."""
    per_epoch = batches.per_epoch
    places = np.concatenate([values, np.zeros(-len(values) % per_epoch)]).reshape(-1, per_epoch)
    if batches.turns is Turns.ONE_ORDER:
        places = places.sum(axis=0, keepdims=True)
    return RandomSum(places, np.broadcast_to(batches.inclusion(per_epoch), places.shape), deviation)


# Slopes that change over time, which a loss with a clock may come close to.
#
# All weights within the slopes that are allowed give a lower bound; which are best need not be believed.


_MOST_CHANGING_STEPS = 50_000
_MOST_ORDERED = 10_000  # of random orders, whose sums take longer
_KEPT = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
_SEARCH_CHANGING = 8


def best_gaussians(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """Yield, for batches that are not random, the least ε that pushes, noise and Lipschitz constants can prove."""
    steps = _steps(run)
    if steps is None or not as_known(run.batches):
        return
    lowest, highest = steps
    pushes = highest.push * run.batches.inclusion(run.steps)
    ends = (0, *releases, run.steps)
    parts = [slice(*part) for part in pairwise(ends)]
    squares = [_square(pushes[at], highest.noise[at], lowest.factor[at], highest.factor[at]) for at in parts]
    # Every slope is rounded, and may be an ulp outside.
    yield (
        epsilon_of(run, math.sqrt(math.fsum(squares)) * (1 - 1e-12 - 1e-15 * run.steps), delta),
        WorstCase("changing_curvature"),
    )


def _square(pushes: Floats, noise: Floats, lowest: Floats, highest: Floats) -> float:
    """μ² of the chain with the best slopes."""
    weights = best_slopes(pushes, noise, lowest, highest)
    if not weights.any():
        return 0.0
    weights = weights / weights.max()
    return float(np.sum(pushes * weights)) ** 2 / float(np.sum(np.square(noise * weights)))


def last_step_apart(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, WorstCase]]:
    """Yield lower bounds on ε for random orders, where steps before the last are forgotten as fast as allowed.

    With the last place out of many the record is seen as if alone, in the earlier epochs as in a sum.
    """
    steps = _steps(run)
    if steps is None or not run.batches.shuffled or as_known(run.batches) or run.steps > _MOST_ORDERED:
        return
    *_, split = allowed_splits(run)

    def epsilon(kept: float) -> float:
        weights = weights_of(_dropping(steps[0].factor, steps[1].factor, kept))
        deviation = math.sqrt(float(np.sum(np.square(weights * steps[1].noise))))
        return Pushed(orders(weights * steps[1].push, run.batches, deviation), *split).epsilon(delta)

    found, kept = greatest(epsilon, _KEPT, _SEARCH_CHANGING)
    yield found, WorstCase("changing_curvature", {"pushing": pushing(*split), "kept": kept})


def _dropping(lowest: Floats, highest: Floats, kept: float) -> Floats:
    """Return slopes as high as allowed, except the last, which are as low as needed to keep only the share `kept`."""
    found, left = highest.copy(), kept
    for step in range(len(found) - 1, 0, -1):
        if left >= found[step]:
            break
        found[step] = max(lowest[step], left)
        left = left / found[step] if left > 0 else 0.0
    return found


def _steps(run: Run) -> tuple[QuadraticSteps, QuadraticSteps] | None:
    """Return the steps with the lowest slopes, at least 0, and with the highest; None if slopes may not change."""
    if run.steps > _MOST_CHANGING_STEPS or not curvature_may_change(run):
        return None
    lowest, highest = steps_of(run, run.loss.smoothness), steps_of(run, run.loss.curvature)
    if highest.factor.min() <= 0:
        return None
    return QuadraticSteps(np.maximum(lowest.factor, 0.0), lowest.push, lowest.noise), highest
