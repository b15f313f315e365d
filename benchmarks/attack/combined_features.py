"""Bounds that fell below the truth where two features of a run met: claimed beside the exact law."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

import lastiterate as li
from benchmarks.attack.attacks import Shown

DELTA = 1e-5
MOMENTUM = 0.9


def momentum_and_a_smaller_batch() -> list[Shown]:
    """201 records by 200: the last batch of an epoch has one record, and a place is as likely as its batch is large."""
    return [_beside(each_epoch=False, steps=2), _beside(each_epoch=True, steps=1)]


def _beside(each_epoch: bool, steps: int) -> Shown:
    batches = li.Shuffled(records=201, batch_size=200, last="smaller", each_epoch=each_epoch)
    loss, noise = li.losses.huber(feature_norm=1.0, threshold=1.0), li.OnGradientSum(1.0, 1.0)
    run = li.Run(loss, batches, 1e-6, noise, steps, optimizer=li.SGD(momentum=MOMENTUM))
    claimed, exact = li.account(run, delta=DELTA).epsilon, _exact(steps)
    orders = "new orders" if each_epoch else "one order"
    return Shown(
        f"momentum, a smaller last batch, {orders}, {steps} steps", f"{claimed:.4f}", f"{exact:.4f}", claimed >= exact
    )


def _exact(steps: int) -> float:
    """ε of constant gradients of length 1: the record's is opposite to its neighbour's, all others are as the record's.

    The record is in the large batch, or in the small one, which may not be used; then it leaves no trace at all.
    """
    left = np.array([1 + MOMENTUM, 1.0])[2 - steps :]  # what the last iterate has of a push at each step
    deviation = math.sqrt(float(np.square(left).sum()))
    means, chances = 2 * np.append(left, 0.0)[:2] / deviation, np.array([200, 1]) / 201
    thresholds = np.linspace(-12, 12, 200_001)
    neighbour, record = ndtr(thresholds[:, None] + means) @ chances, ndtr(thresholds)  # below each threshold
    low, high = 0.0, 40.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if float((neighbour - math.exp(middle) * record).max()) > DELTA else (low, middle)
    return low


COMBINED_FEATURES = (momentum_and_a_smaller_batch,)
