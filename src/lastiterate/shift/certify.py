"""The trusted checker: a schedule of payments in, a valid μ out.

Let z be a bound on the distance between two neighbouring runs that part of the noise has not yet hidden. A step maps it to
lipschitz·z + sensitivity; a payment a, hidden by that step's noise, takes a away and costs (a/noise)². If nothing is left
after the last step, the last iterate is μ-GDP with μ² = Σ (a/noise)² (Bok2024, Theorem C.3). Before the first step the runs
agree; after any step both lie in a set of known diameter, so the count may also start there, with z = diameter.
"""

from __future__ import annotations

import math

import numpy as np

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats
from lastiterate.progress import tracked
from lastiterate.shift.steps import Steps

_UP = 1 + 2.0**-50  # a step rounds at most six times, by half an ulp each
_LEAST = 1e-150  # less than this is paid at once, so that no product underflows; no factor and no μ > 0 is smaller
_MOST = 1e150  # an infinite factor times nothing is nothing
_SUM_UP = 1 + 1e-14  # squares and pairwise sums of 2¹⁶ of them lose at most 40 halves of an ulp
_CHUNK = 1 << 16


def certify(steps: Steps, start: int, payments: Floats) -> float:
    """An upper bound on μ for these payments, one for each step after the first `start`.

    A payment larger than what is left pays what is left; so does the last one, whatever it says.
    """
    if not 0 <= start < len(steps) or len(payments) != len(steps) - start:
        raise InvalidInput(f"payments must be one for each of the {len(steps)} steps after start. Got {len(payments)}.")
    if not (payments >= 0).all():
        raise InvalidInput("payments must be >= 0. Got a negative one or NaN.")
    left = _distance_at(steps, start)
    costs: list[float] = []
    for first in tracked(range(start, len(steps), _CHUNK), "certifying"):
        part = steps.part(first, first + _CHUNK)
        due = payments[first - start : first - start + _CHUNK].copy()
        if first + _CHUNK >= len(steps):
            due[-1] = math.inf
        left = _pay(part, due, left)
        with np.errstate(over="ignore", under="ignore"):
            costs.append(float(np.square(due / part.noise).sum()))
        if due.any():
            costs.append(_LEAST**2)
    mu = math.sqrt(math.fsum(costs)) * _SUM_UP if math.isfinite(sum(costs)) else math.inf
    return math.inf if math.isnan(mu) else mu


def _pay(steps: Steps, due: Floats, left: float) -> float:
    """Go through the steps, write what is really paid into `due`, and return what is left, rounded up throughout."""
    factors = np.where(steps.lipschitz > 0, np.clip(steps.lipschitz * _UP, _LEAST, _MOST), 0.0).tolist()
    pushes = (steps.sensitivity * _UP).tolist()
    settled = []
    for at, factor, push, payment in zip(range(len(due)), factors, pushes, due.tolist(), strict=True):
        owed = factor * left + push
        left = owed - payment
        if not left >= _LEAST:
            settled.append((at, owed))
            left = 0.0
    if settled:
        places, amounts = zip(*settled, strict=True)
        due[list(places)] = amounts
    return left


def _distance_at(steps: Steps, start: int) -> float:
    """Before the first step the runs agree, and a factor 0 forgets whatever there was."""
    return 0.0 if start == 0 or steps.lipschitz[start] == 0 else steps.diameter
