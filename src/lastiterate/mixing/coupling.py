"""Two normal laws at a distance, coupled so that what they have in common stays together. Trusted: all is rounded up.

P = N(0, 1) and Q = N(r, 1), and a level c ≥ 0. The mass min(P, e^c·Q) is put where both are, at distance 0. What is left of
P, x = θ_c(r) of it, has the density (p − e^c·q)₊; what is left of e^c·Q, e^c − 1 + x of it, has (e^c·q − p)₊. These two are
coupled against each other: the smallest of the one with the greatest of the other. Proof: docs/proofs.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import LOG_SQRT_2PI, log_gap_above, log_gap_below, mills
from lastiterate.numerics.rounding import down, up

_HALVINGS = (
    16  # where the two tails meet: any place is valid, and beyond this it is off by a part in 10⁵ of the distance
)
_SMALLEST = 1e-3  # distances below are not reflected: differences of tails would lose their digits
_LEAST_APART = 1e-13  # of mass that is left: below, it is not worth its rounding
_LOWEST = -20.0  # beyond, the tails of what is left of Q are all but everything: taken for everything
_FARTHEST = 1e100  # its square is a float, and φ has long been 0
_LEAST_NEAR = -37.0  # before, a Mills ratio is no float any more, and the tail is taken for everything
_ULPS = 4e-15  # of a Mills ratio: twenty times what scipy's is off by


@dataclass(frozen=True, eq=False)
class Reflected:
    """For each level (first axis) and each distance (second).

    `apart` and `apart_below`: the mass of P that is left, rounded up and down. `lift`: by how much the loss of what is left
    is larger, rounded down. `landing`: how likely its distance is to be counted as each of the rows (third axis).
    """

    apart: Floats
    apart_below: Floats
    lift: Floats
    landing: Floats


def reflected(levels: Floats, distances: Floats, rows: Floats) -> Reflected:
    """Distances of what is left are rounded up to the next of `rows`; the last of them is the largest there can be."""
    level, distance = levels[:, None], np.maximum(distances, _SMALLEST)[None, :]
    above, below = (np.exp(gap(level, distance)) for gap in (log_gap_above, log_gap_below))
    above, below = np.minimum(up(above), 1.0), down(below)
    kept = (distances[None, :] >= _SMALLEST) & (below > _LEAST_APART)
    lift = down(np.log1p(np.expm1(level) / np.maximum(above, _LEAST_APART))) - level * (1 + 1e-15)
    beyond = _beyond(level[..., None], distance[..., None], rows, below[..., None])
    landing = -np.diff(beyond, axis=-1, prepend=1.0)
    nowhere_else = (np.arange(len(rows)) == len(rows) - 1).astype(float)
    return Reflected(
        np.where(kept, above, 1.0),
        np.where(kept, below, 0.0),
        np.where(kept, np.maximum(lift, 0.0), 0.0),
        np.where(kept[..., None], landing, nowhere_else),
    )


def _beyond(level: Floats, distance: Floats, rows: Floats, apart: Floats) -> Floats:
    """How likely what is left is farther apart than each row, rounded up.

    With U and V the tails of what is left: where the coupling's quantile is above max{U(y), V(y + row)}, the one is above y
    and the other below y + row. This holds for any y.
    """
    middle = distance / 2 - level / distance
    low, high = middle - rows, middle + 0 * rows
    rest = np.expm1(level) + apart
    for _ in range(_HALVINGS):
        at = (low + high) / 2
        over = _left_of_first(at, level, distance) * rest > _left_of_second(at + rows, level, distance) * apart
        low, high = np.where(over, low, at), np.where(over, at, high)
    first = _left_of_first(high, level, distance) / np.maximum(apart, _LEAST_APART)
    second = _left_of_second(high + rows, level, distance) / np.maximum(rest, _LEAST_APART)
    found = np.minimum(up(np.maximum(first, second), by=1e-10), 1.0)
    found[..., -1] = 0.0
    return np.asarray(np.maximum.accumulate(found[..., ::-1], axis=-1)[..., ::-1])


def _left_of_first(y: Floats, level: Floats, distance: Floats) -> Floats:
    """∫_{−∞}^y (p − e^c·q), for y up to where the densities meet."""
    return tail_difference(-y, distance, distance * (distance / 2 - y) - level)


def _left_of_second(z: Floats, level: Floats, distance: Floats) -> Floats:
    """∫_z^∞ (e^c·q − p), for z from where the densities meet."""
    near = z - distance
    found = np.exp(level) * tail_difference(np.maximum(near, _LOWEST), distance, level + distance * (z - distance / 2))
    return np.where(near < _LOWEST, 1e300, found)


def tail_difference(near: Floats, distance: Floats | float, fall: Floats | float) -> Floats:
    """φ(a)·(m(a) − e^{−fall}·m(a + distance)), rounded up: Q(a) − e^c·Q(a + distance) without its cancellation."""
    near, everything = np.clip(near, _LEAST_NEAR, _FARTHEST), near < _LEAST_NEAR
    far = np.exp(-np.maximum(fall, 0.0)) * mills(near + distance)
    difference = mills(near) * (1 + _ULPS) - far * (1 - _ULPS)
    found = np.exp(-0.5 * np.square(near) - LOG_SQRT_2PI) * np.maximum(difference, 0.0)
    return np.where(everything, 1.0, found)
