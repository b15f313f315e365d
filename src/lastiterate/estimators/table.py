"""A CSV file with a header, or a Parquet file: one column is the target, all others are numbers."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.files import read_text
from lastiterate.training.parquet_files import parquet

_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Table:
    """Named features, and the target as it is written."""

    names: tuple[str, ...]
    features: Floats
    target: tuple[str, ...]

    @property
    def numbers(self) -> Floats:
        """The target as numbers."""
        found = np.array([_number(cell) for cell in self.target])
        if not np.isfinite(found).all():
            wrong = self.target[int(np.argmin(np.isfinite(found)))]
            raise InvalidInput("table_target", got=f"{wrong!r}")
        return found


def read_table(path: str, target: str) -> Table:
    """The columns other than `target` become features, in their order. Files that end in .parquet are read as such."""
    return _read_parquet(path, target) if path.lower().endswith(".parquet") else _read_csv(path, target)


def _read_parquet(path: str, target: str) -> Table:
    reader = parquet()
    try:
        content = reader.read_table(path)
    except (OSError, ValueError) as error:
        raise InvalidInput("table_not_parquet", path=path, error=error) from error
    header = list(content.column_names)
    _check_header(path, header, target)
    if not content.num_rows:
        raise InvalidInput("table_empty", path=path, header=False)
    names = tuple(name for name in header if name != target)
    features = [_column(path, name, content.column(name).to_pylist()) for name in names]
    labels = content.column(target).to_pylist()
    if None in labels:
        raise InvalidInput("table_gap", path=path, record=labels.index(None) + 1, column=target)
    return Table(names, np.stack(features, axis=1), tuple(str(one).strip() for one in labels))


def _column(path: str, name: str, values: list[Any]) -> Floats:
    """Numbers, and true and false as 1 and 0."""
    for place, one in enumerate(values):
        if not isinstance(one, int | float) or not abs(one) < _LARGEST:
            raise InvalidInput("table_cell", path=path, unit="record", at=place + 1, column=name, got=f"{one!r:.60}")
    return np.array(values, float)


def _read_csv(path: str, target: str) -> Table:
    lines = csv.reader(io.StringIO(read_text(path)), strict=True)
    try:
        rows = [(lines.line_num, [cell.strip() for cell in row]) for row in lines if row]
    except csv.Error as error:
        raise InvalidInput("table_not_csv", path=path, line=lines.line_num, error=error) from error
    if len(rows) < 2:
        raise InvalidInput("table_empty", path=path, header=True)
    header = rows[0][1]
    _check_header(path, header, target)
    place = header.index(target)
    features = [_numbers(path, line, header, row, place) for line, row in rows[1:]]
    names = tuple(header[:place] + header[place + 1 :])
    return Table(names, np.array(features, float), tuple(row[place] for _, row in rows[1:]))


def _check_header(path: str, header: list[str], target: str) -> None:
    if target not in header:
        raise InvalidInput("table_no_target", path=path, target=target, columns=header)
    twice = [name for name in header if not name or header.count(name) > 1]
    if twice:
        raise InvalidInput("table_name_twice", path=path, got=f"{twice[0]!r}")
    if len(header) < 2:
        raise InvalidInput("table_no_feature", path=path, got=f"{header}")


def _numbers(path: str, line: int, header: list[str], row: list[str], place: int) -> list[float]:
    if len(row) != len(header):
        raise InvalidInput("table_row", path=path, line=line, columns=len(header), got=f"{len(row)}")
    found = []
    for column, cell in enumerate(row):
        number = _number(cell)
        if column != place and not abs(number) < _LARGEST:
            raise InvalidInput(
                "table_cell", path=path, unit="line", at=line, column=header[column], got=f"{cell!r:.60}"
            )
        found.append(number)
    return found[:place] + found[place + 1 :]


def _number(cell: str) -> float:
    try:
        return float(cell) if "_" not in cell else math.nan
    except ValueError:
        return math.nan
