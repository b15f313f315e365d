"""Records in Parquet files, read by row groups in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from lastiterate.display import summary
from lastiterate.errors import InvalidInput, checked_count, worded
from lastiterate.numerics.arrays import Indices
from lastiterate.training.data import checked_float_type
from lastiterate.training.parquet_files import Block, RowGroup, columns_of, files_of, row_groups_of
from lastiterate.training.records import parts_of

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
        """Without what can be read again, so that it is cheap to send to another process."""
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
        """Type of the features."""
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
        """Goes on in the row group where the stream before has ended, so that short batches do not decode it again.

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
        """Those of a row group; the whole of it if it is kept, or can be."""
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
    """Records one after the other, as many as are asked for, from blocks of any size."""

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
    """Each with the place of its first record."""
    for block in blocks:
        yield first, block
        first += len(block[1])
