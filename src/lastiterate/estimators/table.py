"""A CSV file with a header: one column is the target, all others are numbers."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.algorithms.files import read_text
from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats


@dataclass(frozen=True, eq=False)
class Table:
    """Named features, and the target as it is written."""

    names: tuple[str, ...]
    features: Floats
    target: tuple[str, ...]

    @property
    def numbers(self) -> Floats:
        """The target as numbers."""
        try:
            return np.array(self.target, float)
        except ValueError as error:
            raise InvalidInput(f"the target of a regression must be numbers: {error}.") from error


def read_table(path: str, target: str) -> Table:
    """The columns other than `target` become features, in their order."""
    rows = [row for row in csv.reader(io.StringIO(read_text(path))) if row]
    if len(rows) < 2:
        raise InvalidInput(f"{path} must hold a line of names and at least one record.")
    header = [name.strip() for name in rows[0]]
    if target not in header:
        raise InvalidInput(f"{path} has no column {target!r}. It has {', '.join(header)}.")
    place = header.index(target)
    cells = [_cells(path, line, row, len(header)) for line, row in enumerate(rows[1:], start=2)]
    features = [
        _numbers(path, line, header, row[:place] + row[place + 1 :], place) for line, row in enumerate(cells, start=2)
    ]
    names = tuple(header[:place] + header[place + 1 :])
    return Table(names, np.array(features, float), tuple(row[place] for row in cells))


def _cells(path: str, line: int, row: list[str], width: int) -> list[str]:
    if len(row) != width:
        raise InvalidInput(f"{path}, line {line} has {len(row)} cells, but there are {width} columns.")
    return [cell.strip() for cell in row]


def _numbers(path: str, line: int, header: list[str], row: list[Any], place: int) -> list[float]:
    names = header[:place] + header[place + 1 :]
    found = []
    for name, cell in zip(names, row, strict=True):
        number = _number(cell)
        if not math.isfinite(number):
            raise InvalidInput(
                f"{path}, line {line}: column {name} must hold numbers. Got {cell!r}; encode or fill it before, without "
                "looking at other records, or leave the column out."
            )
        found.append(number)
    return found


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan
