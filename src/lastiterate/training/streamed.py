"""Records that are read again in every pass, a few thousand at a time.

One pass before training sees that all are numbers, counts the rows that are too long, and takes the fingerprint of the
data where a checkpoint needs one. What is trained on is, bit by bit, what it would be from arrays in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats, Indices
from lastiterate.numerics.norms import row_norms_above
from lastiterate.training.data import (
    ArrayRecords,
    Data,
    Records,
    RecordSource,
    Unmeasured,
    check_count,
    check_finite,
    check_range,
    float_type,
    limited,
)
from lastiterate.training.fingerprint import ArrayDigest

_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class Streamed(Data):
    """Streamed records; `feature_norm` is None if no row exceeds it; in training no row exceeds `longest`."""

    source: RecordSource | ArrayRecords
    kept_in: Any
    longest: float
    feature_norm: float | None = None
    shortened: int = 0
    known: list[list[Any]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    @property
    def dtype(self) -> Any:
        return self.kept_in

    def pieces(self, chosen: Indices, most: int) -> Iterator[Records | Unmeasured]:
        for rows, labels in read_pieces(self.source, self.dtype, chosen, most):
            if self.feature_norm is None:
                yield Unmeasured(rows, labels, self.longest, self.dtype)
            else:
                yield limited(rows, labels, row_norms_above(rows), self.feature_norm)[0]

    def fingerprints(self) -> list[list[Any]]:
        """Fingerprints of the data, taken at the first reading; otherwise all records are read for them."""
        return self.known or _fingerprints(self.source, self.dtype)


def streamed_data(
    source: RecordSource | ArrayRecords,
    records: int,
    feature_norm: float | None,
    dtype: Any,
    check_targets: Callable[[Floats], None],
    fingerprinted: bool = False,
) -> Streamed:
    """Check data for linear models that are read from a source: every record is read once."""
    check_count(len(source), records)
    precision = np.dtype(float_type(source.dtype, dtype))
    digests, longest, shortened, too_long = _digests(source, precision), 0.0, 0, False
    for rows, labels in read_pieces(source, precision, slice(None), _ROWS_AT_ONCE):
        norms = row_norms_above(rows)
        check_finite(norms, labels)
        check_range(labels, precision)
        check_targets(labels)
        kept, more = limited(rows, labels, norms, feature_norm)
        longest, shortened = max(longest, kept.longest), shortened + more
        too_long = too_long or kept.scales is not None
        if fingerprinted:
            for digest, part in zip(digests, (rows, labels), strict=True):
                digest.add(part)
    known = [digest.fingerprint() for digest in digests] if fingerprinted else []
    return Streamed(source, precision, longest, feature_norm if too_long else None, shortened, known)


def unchecked_data(source: RecordSource, records: int) -> Streamed:
    """Return data from a source for a user's own gradients, which are checked themselves."""
    check_count(len(source), records)
    return Streamed(source, np.dtype(float_type(source.dtype, None)), np.inf)


def read_pieces(
    source: RecordSource | ArrayRecords, dtype: Any, chosen: Indices, most: int
) -> Iterator[tuple[Floats, Floats]]:
    """Yield pieces of exactly the chosen records, features in this precision and targets in double."""
    width, records = source.shape[1], len(source)
    left = len(range(*chosen.indices(records))) if isinstance(chosen, slice) else len(chosen)
    for features, targets in source.pieces(chosen, most):
        rows, labels = np.asarray(features).astype(dtype, copy=False), np.asarray(targets).astype(float, copy=False)
        due = min(most, left)
        if rows.shape != (due, width) or labels.shape != (due,) or not due:
            raise InvalidInput(
                "pieces_shapes", field="data", shape=(due, width), features=rows.shape, targets=labels.shape
            )
        left -= due
        yield rows, labels
    if left:
        raise InvalidInput("pieces_missing", field="data", missing=left)


def _digests(source: RecordSource | ArrayRecords, dtype: Any) -> tuple[ArrayDigest, ArrayDigest]:
    """Empty digests of features and targets that agree with those of arrays in memory."""
    return ArrayDigest(dtype, tuple(source.shape)), ArrayDigest(np.dtype(np.float64), (len(source),))


def _fingerprints(source: RecordSource | ArrayRecords, dtype: Any) -> list[list[Any]]:
    digests = _digests(source, dtype)
    for piece in read_pieces(source, dtype, slice(None), _ROWS_AT_ONCE):
        for digest, part in zip(digests, piece, strict=True):
            digest.add(part)
    return [digest.fingerprint() for digest in digests]
