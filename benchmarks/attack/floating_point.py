"""Attacks on the arithmetic: what doubles and floats show of the data that exact numbers would hide."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import beta

import lastiterate as li
from benchmarks.attack.attacks import Shown, refused
from lastiterate.numerics.exact_noise import public_grid
from lastiterate.training.data import linear_data
from lastiterate.training.objectives import LinearModel, linear_arithmetic

_TRAININGS = 200


def start_outside_the_domain() -> list[Shown]:
    """Gradients of a·x²/2 with a in [0, 1] differ by at most 1 on the ball, and by 100 at 100."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.0)
    run = li.Run(loss, li.FullBatch(1), 1.0, li.OnIterate(std=1.0), 1, li.Ball(radius=1.0))
    seen: list[float] = []

    def gradients(weights: Any, features: Any, targets: Any) -> Any:
        seen.append(abs(float(weights[0])))
        return features * weights

    li.train(run, ([[1.0]], [0.0]), loss=gradients, start=[100.0])
    return [Shown("a start outside the domain: gradients differ by", "1", f"{seen[0]:.6g}", seen[0] <= 1)]


def hostile_rows(records: int, first: float) -> np.ndarray:
    """+1 up to just above a power of two, then rows that are lost beside sums above it, and rounded away from 0 below it."""
    power = int(math.log2(records / 2))
    rows = np.full((records, 1), -0.3 * 2.0 ** (power - 23), np.float32)
    rows[: 2**power + 1] = 1.0
    rows[0] = first
    return rows


def sums_in_single_precision() -> list[Shown]:
    """A record is replaced by its opposite; over its sensitivity, how far does the sum move?"""
    found = []
    for records in (60_000, 250_000, 1_000_000):
        loss = li.losses.huber(feature_norm=1.0)
        run = li.Run(loss, li.FullBatch(records), 0.5, li.OnIterate(std=1.0), 1)
        sums, naive = [], []
        for first in (1.0, -1.0):
            rows = hostile_rows(records, first)
            data = linear_data((rows, np.full(records, -5.0)), records, 1.0, None)
            objective = LinearModel(loss.model, data, loss.gradient_bound, run.batches.random)
            sums.append(float(objective.gradient_sum(np.zeros(1), slice(None), None)[0]))
            naive.append(float(np.cumsum(rows[:, 0], dtype=np.float32)[-1]))
        claimed = objective.arithmetic(run, 1).factor
        shown, before = abs(sums[0] - sums[1]) / 2, abs(naive[0] - naive[1]) / 2
        what = f"float32 sum of {records} rows (one by one it moves by {before:.4g})"
        found.append(Shown(what, f"factor {claimed:.6f}", f"factor {shown:.6f}", shown <= claimed))
    return found


def trainings_in_single_precision() -> list[Shown]:
    """End to end: 200 trainings on each of two data sets, and what a threshold proves with 95 % confidence."""
    records = 60_000
    plan = li.Run(li.losses.huber(feature_norm=1.0), li.FullBatch(records), 1.0, li.OnMeanGradient(1.0), 1)
    run = li.calibrate(plan, epsilon=1.0, delta=1e-5)
    results = []
    for first in (1.0, -1.0):
        rows, targets = hostile_rows(records, first), np.full(records, -5.0)
        results.append([float(li.train(run, (rows, targets)).weights[0]) for _ in range(_TRAININGS)])
    claimed, shown = li.train(run, (rows, targets)).report(1e-5).epsilon, proved(*results)
    return [
        Shown("200 + 200 trainings in float32", f"epsilon {claimed:.4f}", f"epsilon >= {shown:.4f}", shown <= claimed)
    ]


def proved(one: list[float], other: list[float], delta: float = 1e-5, threshold: float | None = None) -> float:
    """By Clopper and Pearson, at the threshold, or in the middle, in both directions."""
    threshold, best = float(np.median(one + other)) if threshold is None else threshold, 0.0
    for sign in (1, -1):
        for first, second in ((one, other), (other, one)):
            hits = sum(sign * x > sign * threshold for x in first)
            misses = sum(sign * x > sign * threshold for x in second)
            low = float(beta.ppf(0.0125, hits, len(first) - hits + 1)) if hits else 0.0
            high = float(beta.ppf(0.9875, misses + 1, len(second) - misses)) if misses < len(second) else 1.0
            if low > delta:
                best = max(best, math.log((low - delta) / high))
    return best


def hidden_iterates() -> list[Shown]:
    """Two steps, the second of which votes on the low bits that the first has left: these once showed a record."""
    parameters, records = 4096, 100
    quarter, spacing = parameters**-0.5 / 4, float(np.spacing(parameters**-0.5 / 2))

    def gradients(weights: Any, features: Any, targets: Any) -> Any:
        found = np.zeros((len(features), parameters))
        if not weights.any():
            return found + features[:, None] / parameters**0.5
        small = weights[np.abs(weights) < quarter] / spacing
        found[:, 0] = 1.0 if (small != np.floor(small)).any() else -1.0
        return found

    run = li.Run(li.losses.network(clip=1.0), li.FullBatch(records), 100.0, li.OnIterate(std=4.0), 2)
    results = []
    for value in (0.0, -1.0):
        features = np.zeros(records)
        features[5] = value
        data = (features, np.zeros(records))
        trained = [li.train(run, data, loss=gradients, start=np.zeros(parameters)) for _ in range(_TRAININGS)]
        results.append([float(one.weights[0]) for one in trained])
    claimed, shown = trained[0].report(1e-5).epsilon, proved(*results, threshold=0.0)
    what = "200 + 200 trainings that vote on low bits"
    return [Shown(what, f"epsilon {claimed:.4f}", f"epsilon >= {shown:.4f}", shown <= claimed)]


def rows_that_touch_others() -> list[Shown]:
    """One row that is too long, and one record less in a random batch: both once changed the rounding of all others."""
    records, loss = 400_000, li.losses.huber(feature_norm=1.0)
    fixed, random = (
        li.Run(loss, one, 1.0, li.OnIterate(1.0), 1) for one in (li.FullBatch(records), li.Poisson(records, 0.5))
    )
    rows, targets = np.full((records, 1), 0.9999, np.float32), np.full(records, -10.0)
    longer, other = rows.copy(), targets.copy()
    longer[0], other[0] = 1.01, 10.0
    moved = abs(_summed(fixed, rows, targets, slice(None)) - _summed(fixed, longer, other, slice(None))) / 2
    uneven = np.where(np.arange(records) % 64 < 32, 1.0, 1.5 * 2.0**-24).astype(np.float32)[:, None]
    places = (np.arange(records), np.arange(1, records))
    missed = abs(_summed(random, uneven, targets, places[0]) - _summed(random, uneven, targets, places[1]))
    allowed = [linear_arithmetic(one, np.float32, 1).factor for one in (fixed, random)]
    return [
        Shown(
            "a row that is too long, and all others",
            f"factor {allowed[0]:.6f}",
            f"factor {moved:.6f}",
            moved <= allowed[0],
        ),
        Shown(
            "a random batch without a record", f"factor {allowed[1]:.6f}", f"factor {missed:.6f}", missed <= allowed[1]
        ),
    ]


def _summed(run: li.Run, rows: np.ndarray, targets: np.ndarray, chosen: Any) -> float:
    data = linear_data((rows, targets), len(rows), 1.0, None)
    objective = LinearModel(run.loss.model, data, run.loss.gradient_bound, run.batches.random)
    return float(objective.gradient_sum(np.zeros(1), chosen, None)[0])


def clipping_that_underflows() -> list[Shown]:
    run = li.Run(li.losses.ridge(feature_norm=1.0, clip=1.0), li.FullBatch(1), 1.0, li.OnIterate(1e-3), 1)
    moved = float(np.abs(li.train(run, ([[1e-170]], [1e200])).weights[0]))
    return [Shown("a row of 1e-170 with a label of 1e200, clip 1", "moves <= 1", f"moves {moved:.4f}", moved < 1.01)]


MECHANISMS: dict[str, tuple[Callable[[float], Any], float]] = {
    "LaplaceAfterLaplace(1, 1, 1)": (lambda x: li.mechanisms.LaplaceAfterLaplace(1.0, 1.0, 1.0).release(x).value, 1.0),
    "GaussianAfterGaussian(1, 1, 1)": (
        lambda x: li.mechanisms.GaussianAfterGaussian(1.0, 1.0, 1.0).release(x).value,
        2**0.5,
    ),
    "Brownian(1) at 0.5": (lambda x: li.mechanisms.Brownian(1.0).release(x, 0.5).value, 1.0),
    "OrnsteinUhlenbeck(1, 1, 1) at 1": (
        lambda x: li.mechanisms.OrnsteinUhlenbeck(1.0, 1.0, 1.0).release(x, 1.0).value,
        math.sqrt(-math.expm1(-2.0)),
    ),
    "GaussianKernel(1, 1)": (lambda x: li.mechanisms.GaussianKernel(1.0, 1.0).sample(x).value, 1.0),
    "LipschitzThenGaussian(1, 1, 1)": (
        lambda x: li.mechanisms.LipschitzThenGaussian(1.0, 1.0, 1.0, map=lambda v: v / 3).release(x).value,
        1.0,
    ),
    "langevin, 3 steps": (
        lambda x: (
            li.mechanisms.langevin(lambda v: v - x, 0.0, lipschitz=1.0, step_size=0.1, steps=3, smoothness=1.0).value
        ),
        math.sqrt(0.2),
    ),
}


def low_bits() -> list[Shown]:
    """At either value, outputs that are no multiple of the public grid, and so cannot occur at the other one."""
    found = []
    for name, (release, noise) in MECHANISMS.items():
        grid = public_grid(noise)
        outputs = np.array([float(release(value)) for value in (0.0, 1.0) for _ in range(500)])
        off = float(np.mean(np.rint(outputs / grid) * grid != outputs))
        found.append(Shown(f"{name}: outputs that tell", "0 %", f"{100 * off:.1f} %", off == 0))
    return found


def noise_that_is_swallowed() -> list[Shown]:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(2), 0.5, li.OnIterate(0.0075), 1)
    data = (np.eye(2), [1, -1])
    return [
        refused("start 1e15 with noise 0.0075", lambda: li.train(run, data, start=[1e15, 1e15]), "lost"),
        refused(
            "Brownian motion of 1e15, noise 1e-5", lambda: li.mechanisms.Brownian(1.0).release(1e15, 5e-11), "lost"
        ),
    ]


FLOATING_POINT = (
    start_outside_the_domain,
    sums_in_single_precision,
    trainings_in_single_precision,
    hidden_iterates,
    rows_that_touch_others,
    clipping_that_underflows,
    low_bits,
    noise_that_is_swallowed,
)
