"""The trusted checker: a schedule of payments in, a valid μ out.

Let z be a bound on the distance between two neighbouring runs that part of the noise has not yet hidden. A step maps it to
lipschitz·z + sensitivity; a payment a, hidden by that step's noise, takes a away and costs (a/noise)². If nothing is left
after the last step, the last iterate is μ-GDP with μ² = Σ (a/noise)² (Bok2024, Theorem C.3). Before the first step the runs
agree; after any step both lie in a set of known diameter, so the count may also start there, with z = diameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from .steps import Floats, Refused, Steps

_UP = 1 + 2.0**-50  # a step rounds at most seven times, by half an ulp each
_LEAST = 1e-150  # in units of the noise: less than this is paid at once, so that no product underflows
_SUM_UP = 1 + 1e-14  # squares and pairwise sums of 2¹⁴ of them lose at most 50 halves of an ulp
_CHUNK = 16_384
_SHRINK, _HIGH, _LOW = 2.0**-900, 1e200, 1e-70

Left = tuple[float, int]  # a number, and how often it has been multiplied by _SHRINK
Pay = Callable[[Floats, Floats, Floats, Left], tuple[Floats, Left]]
Along = Callable[[range], Iterable[int]]


def certify(steps: Steps, start: int, payments: Floats, along: Along = iter) -> float:
    """Return an upper bound on μ for these payments, one for each step after the first `start`.

    A payment larger than what is left pays what is left; so does the last one, whatever it says. `along` may watch.
    """
    if start < 0 or not payments.size or payments.shape != (len(steps) - start,) or not (payments >= 0).all():
        raise Refused(f"payments must be >= 0, one for each of the {len(steps)} steps after start.")
    mu = _cost(steps, start, payments, _pay, along)
    # Beyond the range of floats the distance may grow and come back: the slower way follows it there.
    return mu if math.isfinite(mu) else _cost(steps, start, payments, _pay_widely, along)


def _cost(steps: Steps, start: int, payments: Floats, pay: Pay, along: Along = iter) -> float:
    unit = float(steps.noise[start:].max())
    # Before the first step the runs agree, and a factor 0 forgets whatever there was.
    distance = steps.diameter if start and steps.lipschitz[start] else 0.0
    left = (max(distance / unit * _UP, _LEAST) if distance else 0.0, 0)
    costs: list[float] = []
    for first in along(range(start, len(steps), _CHUNK)):
        part = steps.part(first, first + _CHUNK)
        due = payments[first - start : first - start + _CHUNK] / unit
        if first + _CHUNK >= len(steps):
            due[-1] = math.inf
        with np.errstate(over="ignore"):
            factors = np.where(part.lipschitz, np.maximum(part.lipschitz * _UP, _LEAST), 0.0)
        pushes = np.where(part.sensitivity, np.maximum(part.sensitivity / unit * _UP, _LEAST), 0.0)
        paid, left = pay(factors, pushes, due, left)
        with np.errstate(all="ignore"):
            costs.append(float(np.square(paid / (part.noise / unit)).sum()))
        if paid.any():
            costs.append(_LEAST**2)
    return math.sqrt(math.fsum(costs)) * _SUM_UP if math.isfinite(sum(costs)) else math.inf


def _pay(factors: Floats, pushes: Floats, due: Floats, left: Left) -> tuple[Floats, Left]:
    """Go through the steps, and return what is really paid and what is left, rounded up throughout."""
    rest, least, settled = left[0], _LEAST, []
    for at, factor, push, payment in _rows(factors, pushes, due):
        owed = factor * rest + push if rest else push  # an infinite factor times nothing is nothing
        rest = owed - payment
        if not rest >= least:
            settled.append((at, owed))
            rest = 0.0
    return _with(due, settled), (rest, 0)


def _pay_widely(factors: Floats, pushes: Floats, due: Floats, left: Left) -> tuple[Floats, Left]:
    """Go through the steps as `_pay` does, slower, with distances that leave the range of floats on their way."""
    (rest, shrunk), settled = left, []
    for at, factor, push, payment in _rows(factors, pushes, due):
        unit = _SHRINK**shrunk
        owed = (factor * rest if rest else 0.0) + (max(push * unit, _LEAST) if push else 0.0)
        rest = owed - (payment if math.isinf(payment) else payment * unit)
        if not rest >= _LEAST:
            settled.append((at, owed / unit if unit else math.inf))
            rest = 0.0  # and the last loop forgets how often it was shrunk
        while rest > _HIGH and math.isfinite(rest):
            rest, shrunk = rest * _SHRINK, shrunk + 1
        while shrunk and rest < _LOW:
            rest, shrunk = rest / _SHRINK, shrunk - 1
    return _with(due, settled), (rest, shrunk)


def _rows(factors: Floats, pushes: Floats, due: Floats) -> Iterable[tuple[int, float, float, float]]:
    return zip(range(len(due)), factors.tolist(), pushes.tolist(), due.tolist(), strict=True)


def _with(due: Floats, settled: list[tuple[int, float]]) -> Floats:
    if settled:
        places, amounts = zip(*settled, strict=True)
        due[list(places)] = amounts
    return due
