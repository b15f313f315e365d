"""What the arithmetic of a machine adds to a run: how much more a record can move a sum, how far iterates stray."""

from __future__ import annotations

from dataclasses import dataclass

from lastiterate.errors import Interval, checked_number

MOST_FACTOR = 1.001
_FACTORS = Interval(1.0, MOST_FACTOR, low_included=True, high_included=True)
_DISPLACEMENTS = Interval(0.0, 1e-3, low_included=True, high_included=True)


@dataclass(frozen=True)
class Arithmetic:
    """Replacing a record moves a computed sum of gradients by at most `factor` times what it moves the exact one.

    The iterates as they are computed, all of them together, differ from exact ones by a Gaussian mechanism with
    mu = `displacement`. (docs/numerics.md)
    """

    factor: float = 1.0
    displacement: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", checked_number("factor", self.factor, _FACTORS))
        object.__setattr__(self, "displacement", checked_number("displacement", self.displacement, _DISPLACEMENTS))

    def and_also(self, other: Arithmetic) -> Arithmetic:
        """The worse of both, in each respect."""
        return Arithmetic(max(self.factor, other.factor), max(self.displacement, other.displacement))


EXACT = Arithmetic()
STRAYING = 2.0**-21  # by how much the iterates of a training may stray, as mu
ROWS_AT_ONCE = 8192
_DOUBLE = 2.0**-53


def of_sums(batch: int, block: int, unit: float, smallest: float = 0.0) -> float:
    """The factor for the sum of a batch whose blocks are summed with this rounding unit, and added up in double precision.

    A record touches its own block: `block` roundings, each at most a part `unit` of what the block's records can sum to.
    The sums of blocks are added up `ROWS_AT_ONCE` rows at a time, and then these. `smallest`: what numbers that are too
    small to be held can amount to, beside a gradient. Clipping and scaling take a few more roundings of one record alone.
    """
    additions = -(-ROWS_AT_ONCE // block) + -(-batch // ROWS_AT_ONCE)
    together = block * block * unit + additions * batch * _DOUBLE
    return 1 + 1.02 * together + 32 * unit + smallest


def in_double_precision(batch: int) -> Arithmetic:
    """Of a training in double precision, where that is good enough for batches of this size."""
    return Arithmetic(min(of_sums(batch, ROWS_AT_ONCE, _DOUBLE), MOST_FACTOR), STRAYING)
