"""Where random numbers come from: a cryptographic generator that the operating system seeds, unless a seed is given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

try:
    from ssl import RAND_bytes as secure_bytes  # OpenSSL's generator: four times as fast, and safe after a fork
except ImportError:  # Python without OpenSSL
    from os import urandom as secure_bytes

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from lastiterate.errors import checked_count
from lastiterate.numerics.arrays import Floats

Shape = int | Sequence[int]
Bits = NDArray[np.uint64]

TAIL_UNIT = 2.0**-63
_FEW = np.uint64(1 << 50)  # below, a tail of 63 bits has too few of them left
_FINER = 2.0**-64


@dataclass(frozen=True)
class Source:
    """Random bits, uniform and normal numbers. With a seed they can be repeated, so they hide nothing: `private` says so.

    A noisy double may show in its low bits what was there before the noise. What leaves the house is therefore drawn by
    `exact_noise`; these numbers are for what nobody sees.
    """

    seed: int | None = None
    _generator: np.random.Generator | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        generator = None if self.seed is None else np.random.default_rng(checked_count("seed", self.seed, least=0))
        object.__setattr__(self, "_generator", generator)

    @property
    def private(self) -> bool:
        """Whether nobody can predict the numbers."""
        return self._generator is None

    def bits(self, shape: Shape = ()) -> Bits:
        """64 random bits each."""
        if self._generator is not None:
            return np.asarray(self._generator.integers(1 << 64, size=shape, dtype=np.uint64))
        return np.frombuffer(secure_bytes(8 * int(np.prod(shape))), np.uint64).reshape(shape)

    def uniform(self, shape: Shape = ()) -> Floats:
        """Strictly between 0 and 1."""
        return np.asarray(((self.bits(shape) >> np.uint64(12)) + 0.5) * 2.0**-52)  # exact, and never 0 or 1

    def normal(self, shape: Shape = ()) -> Floats:
        """Standard normal, each the quantile of a uniform number to 2⁻⁴⁶ of its size; the tails are all there."""
        tails, signs = tails_and_signs(self.bits(shape))
        return np.asarray(-signs * ndtri(self._refined(tails) / 2))

    def _refined(self, tails: Bits) -> Floats:
        """As probabilities, with more bits where there are many leading zeros."""
        refined = np.asarray((tails + 0.5) * TAIL_UNIT)
        few = tails < _FEW
        if few.any():
            finer = (self.bits(int(few.sum())) + 0.5) * _FINER
            refined[few] = (tails[few] + finer) * TAIL_UNIT
        return refined

    def state(self) -> Any:
        """What it takes to go on with the same numbers; None where they cannot be repeated."""
        return None if self._generator is None else self._generator.bit_generator.state

    def go_on(self, state: Any) -> None:
        """Continue a seeded source from such a state."""
        if self._generator is not None:
            self._generator.bit_generator.state = state


def tails_and_signs(bits: Bits) -> tuple[Bits, Floats]:
    """63 bits for the probability of a larger absolute value, and one for the sign."""
    return bits >> np.uint64(1), 1.0 - 2.0 * (bits & np.uint64(1))


def permutation(source: Source, count: int) -> NDArray[np.intp]:
    """Every order is equally likely: where two keys are equal, all are drawn again."""
    while True:
        keys = source.bits(count)
        order = np.argsort(keys)
        ordered = keys[order]
        if not (ordered[1:] == ordered[:-1]).any():
            return order


def subset(source: Source, count: int, size: int) -> NDArray[np.intp]:
    """Every subset of this size is equally likely: those with the smallest keys, if it is clear which these are."""
    while True:
        keys = source.bits(count)
        chosen = np.argpartition(keys, size - 1)[:size]
        if int((keys <= keys[chosen].max()).sum()) == size:
            return chosen


def coins(source: Source, count: int, rate: float) -> NDArray[np.bool_]:
    """Each True with probability `rate`, or less by at most 2⁻⁶⁴."""
    if rate >= 1:
        return np.ones(count, bool)
    return np.asarray(source.bits(count) < np.uint64(math.floor(rate * 2.0**64)))
