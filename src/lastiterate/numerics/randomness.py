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

from lastiterate.errors import checked_count
from lastiterate.numerics.arrays import Floats

ArrayShape = int | Sequence[int]
Bits = NDArray[np.uint64]


@dataclass(frozen=True)
class Source:
    """Random bits, and uniform numbers. With a seed they can be repeated, so they hide nothing: `private` says so."""

    seed: int | None = None
    _generator: np.random.Generator | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        generator = None if self.seed is None else np.random.default_rng(checked_count("seed", self.seed, least=0))
        object.__setattr__(self, "_generator", generator)

    @property
    def private(self) -> bool:
        """Whether nobody can predict the numbers."""
        return self._generator is None

    def bits(self, shape: ArrayShape = ()) -> Bits:
        """64 random bits each."""
        if self._generator is not None:
            return np.asarray(self._generator.integers(1 << 64, size=shape, dtype=np.uint64))
        count = shape if isinstance(shape, int) else math.prod(shape)
        return np.frombuffer(secure_bytes(8 * count), np.uint64).reshape(shape)

    def uniform(self, shape: ArrayShape = ()) -> Floats:
        """Strictly between 0 and 1."""
        return np.asarray(((self.bits(shape) >> np.uint64(12)) + 0.5) * 2.0**-52)  # exact, and never 0 or 1

    def state(self) -> Any:
        """What it takes to go on with the same numbers; None where they cannot be repeated."""
        return None if self._generator is None else self._generator.bit_generator.state

    def go_on(self, state: Any) -> None:
        """Continue a seeded source from such a state."""
        if self._generator is not None:
            self._generator.bit_generator.state = state


def permutation(source: Source, count: int) -> NDArray[np.intp]:
    """Every order is equally likely: where two keys are equal, all are drawn again."""
    while True:
        keys = source.bits(count)
        order = np.argsort(keys)
        drawn = keys[order]
        if (drawn[1:] != drawn[:-1]).all():
            return order


def subset(source: Source, count: int, size: int) -> NDArray[np.intp]:
    """Every subset of this size is equally likely: those with the smallest keys, if it is clear which these are."""
    while True:
        keys = source.bits(count)
        chosen = np.argpartition(keys, size - 1)[:size]
        if int((keys <= keys[chosen].max()).sum()) == size:
            return chosen


def choices(source: Source, count: int, number: int) -> NDArray[np.intp]:
    """Each one of 0, …, number − 1, equally likely: bits beyond the last multiple of the number are drawn again."""
    drawn = source.bits(count)
    limit = np.uint64((1 << 64) // number * number - 1)
    while (beyond := drawn > limit).any():
        drawn = np.where(beyond, source.bits(count), drawn)
    return np.asarray(drawn % np.uint64(number), np.intp)


def coins(source: Source, count: int, rate: float) -> NDArray[np.bool_]:
    """Each True with probability `rate`, or less by at most 2⁻⁶⁴."""
    if rate >= 1:
        return np.ones(count, bool)
    return np.asarray(source.bits(count) < np.uint64(math.floor(rate * 2.0**64)))
