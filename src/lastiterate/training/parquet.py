"""Records in Parquet files, read by row groups in bounded memory."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from lastiterate.display import summary
from lastiterate.errors import InvalidInput, Unavailable, checked_count, shown, worded
from lastiterate.numerics.arrays import Indices
from lastiterate.training.data import checked_float_type, parts_of

_CACHE = 1 << 28


class ParquetRecords:
    """Parquet files with one record per row: a file, a folder, a pattern such as "data/*.parquet", or a list of these.

    `features` are columns of numbers, by default all except `target`. They are decoded to `dtype`: by default numpy.float32
    if all columns are float32, else numpy.float64. Up to `cache_bytes` of decoded row groups are kept in memory; the others
    are decoded again whenever they are needed. A pass in a fixed order decodes each row group once, but a random batch
    decodes every row group that holds one of its records: for random batches, call `to_memmap` once first.

    Works as a `RecordSource` for `li.train` and as a map-style data set for PyTorch's DataLoader.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        target: str,
        features: Sequence[str] | None = None,
        dtype: Any = None,
        cache_bytes: int = _CACHE,
    ) -> None:
        files = files_of(path)
        self._columns = columns_of(files, features, target, checked_float_type(dtype))
        self._groups = row_groups_of(files, self._columns)
        self._firsts = np.array([group.first for group in self._groups], np.intp)
        self._count = sum(group.rows for group in self._groups)
        self._cache_bytes = checked_count("cache_bytes", cache_bytes, least=0)
        self._kept: dict[int, Block] = {}
        self._used = 0
        self._idle: list[_Cursor] = []

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without cached rows, so that it is cheap to send to another process."""
        return {**vars(self), "_kept": {}, "_used": 0, "_idle": []}

    def __repr__(self) -> str:
        parts = f"{self._count} records", f"{self.shape[1]} features", f"target {self._columns.target!r}"
        return summary(self, *parts)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the feature columns."""
        return self._columns.features

    @property
    def shape(self) -> tuple[int, int]:
        """(number of records, number of features)."""
        return self._count, len(self._columns.features)

    @property
    def dtype(self) -> Any:
        """Type of the features as they are decoded."""
        return self._columns.dtype

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: SupportsIndex) -> tuple[np.ndarray, Any]:
        """The features and the target of one record."""
        return self.__getitems__([place])[0]

    def __getitems__(self, places: Sequence[SupportsIndex]) -> list[tuple[np.ndarray, Any]]:
        """Several records, as PyTorch requests a batch; each row group is decoded once."""
        rows, targets = self.take([int(place) for place in places])
        return list(zip(rows, targets, strict=True))

    def take(self, places: Any) -> Block:
        """Features and targets of these records, in this order."""
        chosen = np.asarray(places, np.intp).reshape(-1)
        if ((chosen < -self._count) | (chosen >= self._count)).any():
            raise IndexError(worded("records_beyond_count", records=self._count))
        chosen = np.where(chosen < 0, chosen + self._count, chosen)
        rows = np.empty((len(chosen), self.shape[1]), self.dtype)
        targets = np.empty(len(chosen), self._columns.target_dtype)
        by_place = np.argsort(chosen, kind="stable")
        ordered = chosen[by_place]
        owners = np.searchsorted(self._firsts, ordered, side="right") - 1
        for number in np.unique(owners).tolist():
            group = self._groups[number]
            for first, (block, labels) in _placed(self._blocks(number), group.first):
                begin, end = np.searchsorted(ordered, [first, first + len(labels)])
                rows[by_place[begin:end]] = block[ordered[begin:end] - first]
                targets[by_place[begin:end]] = labels[ordered[begin:end] - first]
        return rows, targets

    def pieces(self, chosen: Indices, rows: int) -> Iterator[Block]:
        """The chosen records, `rows` at a time; consecutive records are streamed."""
        if isinstance(chosen, slice) and chosen.step in (None, 1):
            first, last, _ = chosen.indices(self._count)
            yield from self._stream(first, last, rows)
            return
        at_once = rows * max(1, self._cache_bytes // (rows * self._columns.row_bytes))
        for part in parts_of(chosen, self._count, at_once):
            places = np.arange(part.start, part.stop, part.step) if isinstance(part, slice) else part
            features, targets = self.take(places)
            for start in range(0, len(targets), rows):
                yield features[start : start + rows], targets[start : start + rows]

    def to_memmap(self, folder: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
        """Write `features.npy` and `targets.npy` into a folder and open both as numpy.memmap, for `li.train` or `fit`.

        Existing files are never overwritten. The new files are as sensitive as the records: delete them after training.
        """
        place = Path(folder)
        names = [place / name for name in ("features.npy", "targets.npy")]
        for name in names:
            if name.exists():
                raise InvalidInput("memmap_exists", field="folder", path=str(name))
        place.mkdir(parents=True, exist_ok=True)
        parts = [name.with_suffix(".part") for name in names]
        self._write(parts)
        for part, name in zip(parts, names, strict=True):
            part.replace(name)
        features, targets = (np.load(name, mmap_mode="r") for name in names)
        return features, targets

    def _write(self, files: list[Path]) -> None:
        kinds = ((self.dtype, self.shape), (self._columns.target_dtype, (self._count,)))
        into = [
            np.lib.format.open_memmap(file, mode="w+", dtype=dtype, shape=shape)
            for file, (dtype, shape) in zip(files, kinds, strict=True)
        ]
        for group in self._groups:
            for first, block in _placed(group.blocks(self._columns), group.first):
                for array, values in zip(into, block, strict=True):
                    array[first : first + len(values)] = values
        for array in into:
            array.flush()

    def _stream(self, first: int, last: int, rows: int) -> Iterator[Block]:
        """Yield consecutive records, from where the stream before ended in a row group, which is not decoded again.

        A cursor is taken by one stream at a time, whatever threads there are.
        """
        cursor = _Cursor(self._blocks_from(first), first)
        with suppress(IndexError):
            idle = self._idle.pop()
            cursor = idle if idle.place == first else cursor
        for start in range(first, last, rows):
            yield cursor.next(min(rows, last - start))
        self._idle[:] = [cursor]

    def _blocks_from(self, first: int) -> Iterator[Block]:
        owner = int(np.searchsorted(self._firsts, first, side="right")) - 1
        skipped = first - self._groups[owner].first if self._groups else 0
        for number in range(owner, len(self._groups)):
            for rows, targets in self._blocks(number):
                yield rows[skipped:], targets[skipped:]
                skipped = max(0, skipped - len(targets))

    def _blocks(self, number: int) -> Iterator[Block]:
        """Yield the blocks of a row group; one block if the whole group is kept or fits into the cache."""
        group = self._groups[number]
        needed = group.rows * self._columns.row_bytes
        if number not in self._kept and self._used + needed <= self._cache_bytes:
            self._kept[number] = self._decoded(group)
            self._used += needed
        if number in self._kept:
            return iter((self._kept[number],))
        return group.blocks(self._columns)

    def _decoded(self, group: RowGroup) -> Block:
        rows = np.empty((group.rows, self.shape[1]), self.dtype)
        targets = np.empty(group.rows, self._columns.target_dtype)
        for first, (block, labels) in _placed(group.blocks(self._columns), 0):
            rows[first : first + len(labels)], targets[first : first + len(labels)] = block, labels
        return rows, targets


class _Cursor:
    """Reader of consecutive records, any number at a time, from blocks of any size."""

    def __init__(self, blocks: Iterator[Block], place: int) -> None:
        self.place = place
        self._blocks = blocks
        self._rest: Block | None = None

    def next(self, count: int) -> Block:
        found: list[Block] = []
        missing = count
        while missing:
            rows, targets = self._rest or next(self._blocks)
            found.append((rows[:missing], targets[:missing]))
            self._rest = (rows[missing:], targets[missing:]) if len(targets) > missing else None
            missing -= len(found[-1][1])
        self.place += count
        if len(found) == 1:
            return found[0]
        return np.concatenate([rows for rows, _ in found]), np.concatenate([targets for _, targets in found])


def _placed(blocks: Iterator[Block], first: int) -> Iterator[tuple[int, Block]]:
    """Yield each block with the place of its first record."""
    for block in blocks:
        yield first, block
        first += len(block[1])


# Files, columns and row groups.
#
# pyarrow is loaded when it is needed. Files are opened for each row group, so that no handle is shared between processes.


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
    """Return the files of a path: a file, all `*.parquet` of a folder, a pattern, or a list; sorted by name."""
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
    """Columns of features and of the target, and the precision in which features are decoded."""

    features: tuple[str, ...]
    target: str
    dtype: Any
    target_dtype: Any

    def decode(self, batch: Any, path: Path) -> Block:
        """Return features and targets of a record batch."""
        rows = np.empty((batch.num_rows, len(self.features)), self.dtype)
        columns = [_numbers(batch.column(name), name, path) for name in self.features]
        for first in range(0, len(rows), _TURNED):
            turned = slice(first, first + _TURNED)
            np.stack([column[turned] for column in columns], axis=1, out=rows[turned])
        return rows, _numbers(batch.column(self.target), self.target, path).astype(self.target_dtype, copy=False)

    @property
    def row_bytes(self) -> int:
        """Number of bytes of a decoded record."""
        return len(self.features) * np.dtype(self.dtype).itemsize + np.dtype(self.target_dtype).itemsize


@dataclass(frozen=True)
class RowGroup:
    """A row group with `rows` records from place `first` on; `stamp` detects a file that has changed."""

    path: Path
    number: int
    first: int
    rows: int
    stamp: tuple[int, int]

    def blocks(self, columns: Columns) -> Iterator[Block]:
        """Yield the records of the group, a block at a time."""
        if _stamp(self.path) != self.stamp:
            raise InvalidInput("parquet_changed", path=str(self.path))
        names = [*columns.features, columns.target]
        with _opened(self.path) as file:
            for batch in file.iter_batches(BLOCK, row_groups=[self.number], columns=names):
                yield columns.decode(batch, self.path)


def columns_of(files: Sequence[Path], features: Sequence[str] | None, target: str, dtype: Any) -> Columns:
    """Columns of all files; by default features are all columns but the target, in the order of the first file."""
    with _opened(files[0]) as file:
        schema = file.schema_arrow
    names = _checked_names(schema.names, features, target, files[0])
    _check_types(schema, (*names, target), files[0])
    single = all(str(schema.field(name).type) == "float" for name in names)
    kind = dtype if dtype is not None else np.dtype(np.float32 if single else np.float64)
    return Columns(names, target, kind, np.dtype(schema.field(target).type.to_pandas_dtype()))


def row_groups_of(files: Sequence[Path], columns: Columns) -> tuple[RowGroup, ...]:
    """Return all row groups that are not empty, with the places of their records."""
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
    """Raise an error if another file lacks these columns or types; further columns are allowed."""
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
