"""Instances whose steps are linear: quadratic losses, and room for them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from lastiterate.algorithms.batches import Batches, Turns
from lastiterate.algorithms.per_step import extremes
from lastiterate.algorithms.run import Run
from lastiterate.auditing.allowed import allowed_hessians, allowed_splits
from lastiterate.auditing.quadratic import QuadraticSteps, exact_mu, steps_of, weights_of
from lastiterate.auditing.search import greatest
from lastiterate.auditing.sums import Pushed, RandomSum
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.gaussian import GaussianDP

_MOST_STEPS = 2_000_000  # that are looked at one by one
_GRID = 7
_VANISHED = 1e-18  # of the noise: far below what a cell is rounded by


def two_gaussians(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, str]]:
    """For batches that are not random (Bok et al. 2024, Theorems 4.2 and C.17)."""
    hessians = allowed_hessians(run)
    if hessians is None or not as_known(run.batches) or math.isfinite(run.domain.diameter):
        return
    if run.steps > _MOST_STEPS and (releases or not steps_of(run, hessians[0]).alike):
        return
    grid = np.linspace(*hessians, _GRID).tolist() if hessians[1] > hessians[0] else hessians[:1]
    mu, where = greatest(lambda hessian: exact_mu(run, hessian, releases), grid)
    # The factor 1 − η·hessian is rounded, once for each step that is not yet forgotten; 1 is exact.
    lost = 1 - extremes(steps_of(run, where).factor)[1]
    rounded = min(run.steps, 1 / lost) if lost > 0 else 0.0
    yield epsilon_of(mu * (1 - 1e-13 - 4e-16 * rounded), delta), f"quadratic losses with Hessian {where:g}"


def as_known(batches: Batches) -> bool:
    """Whether it is known which batches have the record."""
    once = batches.shuffled and batches.per_epoch == 1
    return batches.turns in (Turns.EVERY_STEP, Turns.FIXED_ORDER) or once or float(batches.inclusion(1)[0]) == 1


def epsilon_of(mu: float, delta: float) -> float:
    return float(GaussianDP(max(mu, 0.0)).bracket(delta)[0])  # type: ignore[arg-type]


def random_pushes(run: Run, delta: float, releases: tuple[int, ...]) -> Iterator[tuple[float, str]]:
    """For random batches and random orders."""
    hessians = allowed_hessians(run)
    if hessians is None or as_known(run.batches) or run.batches.own_mean or math.isfinite(run.domain.diameter):
        return
    for hessian in sorted(set(hessians)):
        pushes = _random_sum(run.batches, steps_of(run, hessian), run.steps)
        if pushes is None:
            return
        for record, neighbour in allowed_splits(run):
            epsilon = Pushed(pushes, record, neighbour).epsilon(delta)
            yield epsilon, f"{pushing(record)} on quadratic losses with Hessian {hessian:g}"


def pushing(record: float) -> str:
    return "a record that pushes, and one that does not," if record == 1 else "records that push in opposite directions"


def _random_sum(batches: Batches, steps: QuadraticSteps, count: int) -> RandomSum | None:
    if steps.alike and float(steps.factor[0]) == 1 and batches.random:
        return _coins(np.full(1, float(steps.push[0])), batches, float(steps.noise[0]) * math.sqrt(count), count)
    if count > _MOST_STEPS:
        return None
    weights = weights_of(steps.factor)
    values, deviation = weights * steps.push, math.sqrt(float(np.sum(np.square(weights * steps.noise))))
    if batches.shuffled:
        return orders(values, batches, deviation)
    gone = np.cumsum(np.sort(np.abs(values))) < _VANISHED * deviation
    return _coins(values[np.argsort(np.abs(values))[~gone]], batches, deviation)


def _coins(values: Floats, batches: Batches, deviation: float, times: int = 1) -> RandomSum:
    """Each push with the same probability, independently."""
    rate = float(batches.inclusion(1)[0])
    return RandomSum(values[:, None], np.broadcast_to(rate, (len(values), 1)), deviation, times)


def orders(values: Floats, batches: Batches, deviation: float) -> RandomSum:
    """One push of each epoch, or one place for all epochs; the last epoch may be cut short."""
    per_epoch = batches.per_epoch
    places = np.concatenate([values, np.zeros(-len(values) % per_epoch)]).reshape(-1, per_epoch)
    if batches.turns is Turns.ONE_ORDER:
        places = places.sum(axis=0, keepdims=True)
    return RandomSum(places, np.full(places.shape, 1 / per_epoch), deviation)
