"""What leaves a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.display import summary
from lastiterate.errors import FINITE, checked_array, must_be, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.exact_noise import NoiseLaw
from lastiterate.numerics.randomness import Source
from lastiterate.training.leaving import leaves


@dataclass(frozen=True, eq=False)
class Release:
    """A value with noise. If `private` is False, its noise came from a seed, and it must not be released."""

    value: np.ndarray
    private: bool

    def __repr__(self) -> str:
        return summary(self, f"value of shape {self.value.shape}", f"private={self.private}")


def released(value: Any, noises: Sequence[tuple[NoiseLaw, float]], source: Source, factor: float = 1.0) -> Release:
    """factor·value with these noises, rounded to a public grid: its law is exact."""
    return Release(leaves(checked_value(value), noises, source, factor), source.private)


def checked_value(value: Any) -> Floats:
    """Finite numbers, of any shape."""
    return np.asarray(checked_array("value", value, FINITE), float)


def mapped(function: Any, value: Any) -> Floats:
    """What the map of a mechanism makes of a value."""
    checked_function("map", function)
    return checked_value(function(checked_value(value)))


def checked_function(name: str, function: Any) -> None:
    if not callable(function):
        raise must_be(name, "a function", f"{shown(function):.60}")
