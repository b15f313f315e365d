"""Exact mixtures over orders: every record pushes a linear chain at every step, by an amount of its own."""

from __future__ import annotations

import itertools
import math

import numpy as np

EPSILONS = np.array([0.0, 0.1, 0.3, 0.6, 1.0, 2.0])


def means(pushes: np.ndarray, factor: float, each_epoch: bool) -> np.ndarray:
    """pushes[record, step]: the mean of the last iterate for every order, or every sequence of orders; batches of one."""
    records, steps = pushes.shape
    carried = pushes * factor ** np.arange(steps)[::-1]
    orders = [list(order) for order in itertools.permutations(range(records))]
    by_epoch = []
    for first in range(0, steps, records):
        count = min(records, steps - first)
        by_epoch.append(np.array([carried[order[:count], range(first, first + count)].sum() for order in orders]))
    if not each_epoch:
        return np.asarray(np.sum(by_epoch, axis=0))
    found = np.zeros(1)
    for one in by_epoch:
        found = (found[:, None] + one).ravel()
    return found


def exact_delta(first: np.ndarray, second: np.ndarray, deviation: float) -> np.ndarray:
    """δ(ε) of the first mixture against the second."""
    return in_both_orders(first, second, deviation)[0]


def in_both_orders(first: np.ndarray, second: np.ndarray, deviation: float) -> tuple[np.ndarray, np.ndarray]:
    """δ(ε) of each mixture against the other, by the trapezoidal rule: off by far less than 1e-6 of a δ of 1e-5."""
    low, high = min(first.min(), second.min()), max(first.max(), second.max())
    x = np.linspace(low - 9 * deviation, high + 9 * deviation, 6001)

    def density(given: np.ndarray) -> np.ndarray:
        values, counts = np.unique(given.round(13), return_counts=True)
        return (
            np.exp(-0.5 * ((x[:, None] - values) / deviation) ** 2) @ counts / (len(given) * deviation * math.tau**0.5)
        )

    def gaps(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return np.array([np.trapezoid(np.maximum(p - math.exp(e) * q, 0.0), x) for e in EPSILONS])

    one, two = density(first), density(second)
    return gaps(one, two), gaps(two, one)


def random_pushes(source: np.random.Generator, records: int, steps: int, kind: str) -> np.ndarray:
    """Of the records, of the first of which there are two: any two differ by 1 at most."""
    pushes = source.choice([-0.5, 0.5], (records + 1, steps))
    if kind == "one-sided":  # of a record, the same at all steps
        pushes[:] = pushes[:, :1]
        pushes[records] = -pushes[0]
    elif kind == "opposite":  # the record and its replacement pull apart wherever they are
        pushes[0], pushes[records] = 0.5, -0.5
    elif kind == "exchanged":  # and at the last place of an epoch, the others pull the other way
        late = np.arange(steps) % records == records - 1
        pushes[:] = np.where(late, -0.5, 0.5)
        pushes[0], pushes[records] = 0.5, -0.5
    return pushes
