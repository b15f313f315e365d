"""Euclidean norms that neither underflow nor overflow on the way, and that can be trusted to be long enough."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lastiterate.numerics.arrays import Floats

_ROWS_AT_ONCE = 4096  # so that no second copy of all rows is made in double precision; with fewer the loop is slower
# Squares and their sums are accurate in between: what underflows, below 1e-307, is nothing beside 1e-280.
_SAFE = (1e-280, 1e280)


def row_norms(rows: Floats) -> Floats:
    """Return the norm of each row, in double precision, whatever the rows are in; up to a part 2⁻⁵²·(columns + 4)."""
    if not len(rows):
        return np.zeros(0)
    starts = range(0, len(rows), _ROWS_AT_ONCE)
    return np.concatenate([_norms(rows[first : first + _ROWS_AT_ONCE]) for first in starts])


def row_norms_above(rows: Floats) -> Floats:
    """Return the norm of each row, rounded up: no row is longer."""
    return row_norms(rows) * (1 + (rows.shape[1] + 4) * 2.0**-52)


def _norms(rows: Floats) -> Floats:
    wide = np.ascontiguousarray(rows, np.float64)  # sums must not depend on how rows lie in memory
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", wide, wide)
    odd = ~((squares > _SAFE[0]) & (squares < _SAFE[1]))
    found = np.sqrt(squares)
    if odd.any():
        found[odd] = _scaled_norms(wide[odd])
    return np.asarray(found)


def _scaled_norms(rows: Floats) -> Floats:
    """Divided by the largest entry first; entries that are 0, infinite or NaN decide by themselves."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    usual = (largest > 0) & np.isfinite(largest)
    scale = np.where(usual, largest, 1.0)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        shares = rows / scale[:, None]
        return np.where(usual, scale * np.sqrt(np.einsum("ij,ij->i", shares, shares)), largest)


def length(vector: Floats) -> float:
    """Return the norm of all entries, to a few parts in 10¹⁵ however many there are: pairwise sums."""
    with np.errstate(over="ignore", under="ignore"):
        square = float(np.square(vector).sum())
    if _SAFE[0] < square < _SAFE[1]:
        return math.sqrt(square)
    flat = np.abs(vector).ravel()
    largest = float(flat.max(initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * math.sqrt(float(np.square(flat / largest).sum()))


def at_least(values: Floats, dtype: Any) -> Floats:
    """In this precision, rounded up."""
    if values.dtype == dtype:
        return values
    nearest = values.astype(dtype)
    return np.asarray(np.where(nearest < values, np.nextafter(nearest, np.inf, dtype=dtype), nearest))
