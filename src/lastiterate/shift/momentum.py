"""Linear optimisers: paths along which a push is paid for, a little at every step, until nothing of it is left.

A push of a record moves the hidden state; θ is what is left of it. θ is written by a sequence p (`LinearFilter`), which may
be any: the payments that a path asks for follow from it, are rounded up, and are what has to be believed. Which path is
cheap is found by least squares with changing weights, and nobody has to believe that. Proof: docs/proofs.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solveh_banded

from lastiterate.numerics.arrays import Floats
from lastiterate.runs.optimizers import LinearFilter

_ROUNDED = 2.0**-47  # of all terms together: coefficients and sums of a dozen products are off by far less
_ENOUGH, _SETTLED = 120, 1e-9  # rounds of least squares, and when to stop; a choice of effort
_LEAST = 1e-8  # of the largest: smaller parts get no larger weight


@dataclass(frozen=True)
class Hidden:
    """Steps of a linear optimiser on losses whose Hessian, times the step size, lies within `half` of `middle`."""

    linear: LinearFilter
    middle: float
    half: float

    @cached_property
    def owed(self) -> Floats:
        """How what is left of a push moves on by itself: the next step, and the pull of the middle Hessian."""
        steps, point = self.linear.steps, self.linear.point
        found = np.zeros(max(len(steps), len(point) + 1))
        found[: len(steps)] += steps
        found[1 : len(point) + 1] += self.middle * np.array(point)
        return found

    @cached_property
    def doubts(self) -> tuple[Floats, ...]:
        """What is not known, each times p: how far the pull may differ from that of the middle Hessian."""
        return (np.append(0.0, self.half * np.array(self.linear.point)),)

    @property
    def order(self) -> int:
        """So many zeros at the end of p, and nothing is left of a push, in no part of the state."""
        return len(self.owed) - 1

    def payments(self, path: Floats, pushes: Floats) -> Floats:
        """What p = path asks for at each step, for pushes of these sizes; rounded up."""
        count = len(pushes)
        terms = sum((_along(np.abs(path), np.abs(taps), count) for taps in (self.owed, *self.doubts)), np.abs(pushes))
        paid = np.abs(pushes - _along(path, self.owed, count))
        doubt = sum((np.abs(_along(path, taps, count)) for taps in self.doubts), np.zeros(count))
        return np.asarray((paid + doubt + _ROUNDED * terms) * (1 + _ROUNDED))


def _along(path: Floats, taps: Floats, count: int) -> Floats:
    return np.asarray(np.convolve(path, taps)[:count])


@dataclass(frozen=True)
class Turning(Hidden):
    """Heavy ball, what is left being along the push as it is now, which turns by at most so much in a step."""

    turned: float

    @cached_property
    def doubts(self) -> tuple[Floats, ...]:
        """Also what was along the push one step ago, and two."""
        return (
            *super().doubts,
            self.turned * np.append(0.0, self.owed[1:]),
            self.turned * np.append([0.0, 0.0], self.owed[2:]),
        )


@dataclass(frozen=True, eq=False)
class Asked:
    """A path for these pushes whose last `zeros` are 0, and the steps whose payments are added up before they are squared:
    those with the same number in `together`, and what is paid there `already`."""

    pushes: Floats
    zeros: int
    together: NDArray[np.intp]
    already: Floats | float = 0.0


def one_push(length: int, zeros: int, period: int) -> Asked:
    """A push at the first of so many steps; the payments of every `period`-th step are added up."""
    pushes = np.zeros(length)
    pushes[0] = 1.0
    return Asked(pushes, zeros, np.arange(length, dtype=np.intp) % period)


def best_path(hidden: Hidden, asked: Asked) -> Floats:
    """Nearly the cheapest p: (|x| + |y|)² is the least x²/w + y²/(1 − w), so that weights and p are found in turns."""
    count = len(asked.pushes)
    free = count - asked.zeros
    path = np.zeros(count)
    if free <= 0:
        return path
    squares = _Squares(hidden, asked.pushes, free)
    weights = np.ones((1 + len(hidden.doubts), count))
    best, least = path, _price(hidden, asked, path)
    for _ in range(_ENOUGH):
        found = squares.least(weights)
        if found is None:
            break
        path = np.append(found, np.zeros(asked.zeros))
        parts, total = _parts(hidden, asked, path)
        groups = np.bincount(asked.together, total) + asked.already
        price = float(np.square(groups).sum())
        settled = least - price < _SETTLED * least and price >= least * (1 - _SETTLED)
        best, least = (path, price) if price < least else (best, least)
        if settled:
            break
        smallest = _LEAST * float(groups[asked.together].max())
        weights = np.maximum(groups[asked.together], smallest) / np.maximum(parts, smallest)
    return best


def _parts(hidden: Hidden, asked: Asked, path: Floats) -> tuple[Floats, Floats]:
    count = len(asked.pushes)
    parts = [np.abs(_along(path, taps, count)) for taps in hidden.doubts]
    found = np.array([np.abs(asked.pushes - _along(path, hidden.owed, count)), *parts])
    return found, found.sum(axis=0)


def _price(hidden: Hidden, asked: Asked, path: Floats) -> float:
    return float(np.square(np.bincount(asked.together, _parts(hidden, asked, path)[1]) + asked.already).sum())


class _Squares:
    """Σ_k Σ_t weights_kt·(Σ_i taps_ki·p_{t−i} − [k = 0]·pushes_t)², as a banded system for the p with the least of it."""

    def __init__(self, hidden: Hidden, pushes: Floats, free: int) -> None:
        self.owed, self.pushes, self.free = hidden.owed, pushes, free
        self.bands, self.beyond = min(len(self.owed), free), np.zeros((1 + len(hidden.doubts), len(self.owed)))
        self.products = [
            (which, later, later - earlier, first * taps[later])
            for which, taps in enumerate((self.owed, *hidden.doubts))
            for earlier, first in enumerate(taps)
            for later in range(earlier, min(len(taps), earlier + self.bands))
            if first * taps[later]
        ]

    def least(self, weights: Floats) -> Floats | None:
        """None if the system cannot be solved."""
        padded, matrix = np.hstack([weights, self.beyond]), np.zeros((self.bands, self.free))
        for which, later, apart, product in self.products:
            inside = self.free - apart
            matrix[apart, :inside] += product * padded[which, later : later + inside]
        matrix[0] *= 1 + 1e-14
        weighted = np.append(weights[0] * self.pushes, self.beyond[0])
        right = sum(tap * weighted[i : i + self.free] for i, tap in enumerate(self.owed))
        try:
            found = np.asarray(solveh_banded(matrix, right, True, True, lower=True, check_finite=False))
        except (LinAlgError, ValueError):
            return None
        return found if np.isfinite(found).all() else None
