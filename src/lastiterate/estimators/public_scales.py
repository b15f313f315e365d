"""Ranges of columns that are known without looking at the records: a table of raw numbers becomes one of like scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lastiterate.errors import POSITIVE, InvalidInput, checked_number
from lastiterate.numerics.arrays import Floats

_ALL_OTHERS = "*"
_EXAMPLES = {"--bounds": "age=17:90", "--scale": "age=50"}
_Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class PublicScales:
    """A column x is trained on as (x − middle)/half; `bounded` ones are cut to [−1, 1]."""

    middle: Floats
    half: Floats
    bounded: Floats

    @property
    def norm(self) -> float | None:
        """That no row exceeds, if every column is bounded."""
        return math.sqrt(len(self.half)) if self.bounded.all() else None

    def rows(self, features: Floats) -> Floats:
        """As the model sees them, cut or not."""
        return np.asarray((features - self.middle) / self.half)

    def cut_rows(self, features: Floats) -> Floats:
        """As they are trained on."""
        rows = self.rows(features)
        return np.where(self.bounded, np.clip(rows, -1.0, 1.0), rows)

    def in_columns(self, coefficients: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """The same model of the columns as they are in the file."""
        raw = coefficients / self.half
        return raw, intercept - raw @ self.middle


def public_scales(names: Sequence[str], bounds: Sequence[str], scales: Sequence[str]) -> PublicScales:
    """From such as age=17:90 and income=1e5; a column `*` stands for all that are not named."""
    ranges = {name: _bounds(name, text) for name, text in _named("--bounds", bounds, names)}
    sizes = {name: _scale(name, text) for name, text in _named("--scale", scales, names)}
    for name in ranges.keys() & sizes.keys():
        raise InvalidInput("train_scaled_twice", column=name)
    given = {**{name: (0.0, size) for name, size in sizes.items()}, **ranges}
    found = [given.get(name, given.get(_ALL_OTHERS, (0.0, 1.0))) for name in names]
    bounded = [name in ranges or (name not in sizes and _ALL_OTHERS in ranges) for name in names]
    middle, half = np.array(found).T
    return PublicScales(middle, half, np.array(bounded))


def _named(option: str, texts: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for text in texts:
        name, is_there, value = text.rpartition("=")
        if not is_there:
            raise InvalidInput("train_scale_form", option=option, example=_EXAMPLES[option], got=f"{text!r:.60}")
        if name not in (*names, _ALL_OTHERS):
            raise InvalidInput("train_scale_column", option=option, column=name, columns=names)
        found.append((name, value))
    return found


def _bounds(name: str, text: str) -> _Range:
    low, is_there, high = text.partition(":")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = (math.nan, math.nan)
    if not is_there or not -1e100 < ends[0] < ends[1] < 1e100:
        raise InvalidInput("train_bounds_form", column=name, got=f"{text!r:.60}")
    return (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2


def _scale(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidInput("train_scale_number", column=name, got=f"{text!r:.60}") from None
    return checked_number(f"--scale of {name}", number, POSITIVE)
