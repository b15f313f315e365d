"""Parquet files that hold one record in each row: which there are, what their columns hold, and a row group at a time.

pyarrow is loaded when it is needed. Files are opened for each row group, so that no handle is shared between processes.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lastiterate.errors import InvalidInput, Unavailable, shown

BLOCK = 1 << 16  # rows that are decoded at once
_TURNED = 1 << 13  # rows that are made of columns at once, so that both lie in the cache of the processor
Block = tuple[np.ndarray, np.ndarray]


def parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise Unavailable("pyarrow_missing") from error
    return pyarrow.parquet


def files_of(path: Any) -> tuple[Path, ...]:
    """A file, all `*.parquet` of a folder, those that a pattern matches, or a list of these; sorted by name."""
    if isinstance(path, list | tuple):
        return tuple(file for one in path for file in files_of(one))
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput("parquet_path", field="path", got=f"{shown(path):.60}")
    place = Path(path)
    if place.is_file():
        return (place,)
    found = place.glob("*.parquet") if place.is_dir() else (Path(one) for one in glob.glob(str(path)))
    files = tuple(sorted(file for file in found if file.is_file()))
    if not files:
        raise InvalidInput("parquet_not_found", field="path", got=f"{shown(str(path)):.120}")
    return files


@dataclass(frozen=True)
class Columns:
    """Which columns are features, and which is the target; in which precision features are decoded."""

    features: tuple[str, ...]
    target: str
    dtype: Any
    target_dtype: Any

    def decoded(self, batch: Any, path: Path) -> Block:
        """The rows of a record batch."""
        rows = np.empty((batch.num_rows, len(self.features)), self.dtype)
        columns = [_numbers(batch.column(name), name, path) for name in self.features]
        for first in range(0, len(rows), _TURNED):
            turned = slice(first, first + _TURNED)
            np.stack([column[turned] for column in columns], axis=1, out=rows[turned])
        return rows, _numbers(batch.column(self.target), self.target, path).astype(self.target_dtype, copy=False)

    @property
    def row_bytes(self) -> int:
        """Of a record that is decoded."""
        return len(self.features) * np.dtype(self.dtype).itemsize + np.dtype(self.target_dtype).itemsize


@dataclass(frozen=True)
class RowGroup:
    """So many records from place `first` on; `stamp` tells whether the file is still the one that was looked at."""

    path: Path
    number: int
    first: int
    rows: int
    stamp: tuple[int, int]

    def blocks(self, columns: Columns) -> Iterator[Block]:
        """Its records, a block at a time."""
        if _stamp(self.path) != self.stamp:
            raise InvalidInput("parquet_changed", path=str(self.path))
        names = [*columns.features, columns.target]
        with _opened(self.path) as file:
            for batch in file.iter_batches(BLOCK, row_groups=[self.number], columns=names):
                yield columns.decoded(batch, self.path)


def columns_of(files: Sequence[Path], features: Sequence[str] | None, target: str, dtype: Any) -> Columns:
    """The same in all files; by default all columns but the target are features, in the order of the first file."""
    with _opened(files[0]) as file:
        schema = file.schema_arrow
    names = _checked_names(schema.names, features, target, files[0])
    _check_types(schema, (*names, target), files[0])
    single = all(str(schema.field(name).type) == "float" for name in names)
    kind = dtype if dtype is not None else np.dtype(np.float32 if single else np.float64)
    return Columns(names, target, kind, np.dtype(schema.field(target).type.to_pandas_dtype()))


def row_groups_of(files: Sequence[Path], columns: Columns) -> tuple[RowGroup, ...]:
    """All that are not empty, with the places of their records."""
    found: list[RowGroup] = []
    first = 0
    for path in files:
        stamp = _stamp(path)
        with _opened(path) as file:
            _check_schema(file.schema_arrow, columns, path)
            counts = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
        for number, rows in enumerate(counts):
            if rows:
                found.append(RowGroup(path, number, first, rows, stamp))
                first += rows
    return tuple(found)


def _opened(path: Path) -> Any:
    module = parquet()
    import pyarrow

    try:
        return module.ParquetFile(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise InvalidInput("parquet_not_read", field="path", path=str(path), error=str(error)) from error


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidInput("parquet_gone", field="path", path=str(path), error=error.strerror) from error
    return found.st_size, found.st_mtime_ns


def _checked_names(there: list[str], features: Sequence[str] | None, target: str, path: Path) -> tuple[str, ...]:
    if isinstance(features, str):
        raise InvalidInput("columns_not_list", got=f"{features!r}")
    names = tuple(name for name in there if name != target) if features is None else tuple(features)
    for field, name in [("target", target), *(("features", name) for name in names)]:
        if there.count(name) != 1:
            raise InvalidInput("column_not_once", field=field, got=shown(name), path=str(path), columns=there)
    if not names or target in names or len(set(names)) < len(names):
        raise InvalidInput("columns_repeated", field="features", got=", ".join(names) or "none")
    return names


def _check_types(schema: Any, names: tuple[str, ...], path: Path) -> None:
    from pyarrow import types

    for name in names:
        kind = schema.field(name).type
        if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
            raise InvalidInput("column_not_numeric", field="features", column=name, dtype=str(kind), path=str(path))


def _check_schema(schema: Any, columns: Columns, path: Path) -> None:
    """That of another file, which may have columns besides."""
    names = (*columns.features, columns.target)
    _checked_names(schema.names, columns.features, columns.target, path)
    _check_types(schema, names, path)
    kind = np.dtype(schema.field(columns.target).type.to_pandas_dtype())
    if kind != columns.target_dtype:
        first = str(columns.target_dtype)
        raise InvalidInput("target_types_differ", field="target", got=str(kind), path=str(path), first=first)


def _numbers(column: Any, name: str, path: Path) -> np.ndarray:
    if column.null_count:
        raise InvalidInput("column_has_missing", field="data", column=name, path=str(path))
    return np.asarray(column.to_numpy(zero_copy_only=False))
