"""Where random numbers come from: a cryptographic generator that the operating system seeds, unless a seed is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

try:
    from ssl import RAND_bytes as secure_bytes  # OpenSSL's generator: four times as fast, and safe after a fork
except ImportError:  # Python without OpenSSL
    from os import urandom as secure_bytes

import numpy as np
from scipy.special import ndtri

from lastiterate.errors import checked_count
from lastiterate.numerics.arrays import Floats

Shape = int | Sequence[int]

_TERMS = 4  # normals that are added up: the low bits of one alone would show what it was added to
_CHUNK = 1 << 18


@dataclass(frozen=True)
class Source:
    """Uniform, normal and Laplace numbers. With a seed they can be repeated, so they hide nothing: `private` says so.

    A normal number is the sum of four, halved (Holohan and Braghin 2021), each from 52 random bits. One that nobody will
    see, nor anything it was added to, may be `hidden_normal`: it is made of one.
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

    def uniform(self, shape: Shape = ()) -> Floats:
        """Strictly between 0 and 1."""
        if self._generator is not None:
            bits = self._generator.integers(1 << 52, size=shape, dtype=np.uint64)
        else:
            drawn = np.frombuffer(secure_bytes(8 * int(np.prod(shape))), np.uint64)
            bits = (drawn >> np.uint64(12)).reshape(shape)
        return np.asarray((bits + 0.5) * 2.0**-52)  # exact, and never 0 or 1

    def hidden_normal(self, shape: Shape = ()) -> Floats:
        """Standard normal, from 52 bits."""
        if self._generator is not None:
            return np.asarray(self._generator.standard_normal(shape))
        return np.asarray(ndtri(self.uniform(shape)))

    def normal(self, shape: Shape = ()) -> Floats:
        """Standard normal; its low bits do not show what it was added to."""
        if self._generator is not None:
            return self.hidden_normal(shape)
        found = np.empty(int(np.prod(shape)))
        for first in range(0, len(found), _CHUNK):  # small enough for the cache
            part = found[first : first + _CHUNK]
            part[:] = ndtri(self.uniform((_TERMS, len(part)))).sum(axis=0) / _TERMS**0.5
        return found.reshape(shape)

    def laplace(self, shape: Shape = ()) -> Floats:
        """Standard Laplace."""
        uniform = self.uniform((2, *((shape,) if isinstance(shape, int) else shape)))
        return np.asarray(np.log(uniform[0] / uniform[1]))

    def state(self) -> Any:
        """What it takes to go on with the same numbers; None where they cannot be repeated."""
        return None if self._generator is None else self._generator.bit_generator.state

    def go_on(self, state: Any) -> None:
        """Continue a seeded source from such a state."""
        if self._generator is not None:
            self._generator.bit_generator.state = state
