"""Features and targets as a trainer needs them: finite, of one shape, no row longer than was declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats


@dataclass(frozen=True, eq=False)
class Data:
    """`shortened`: how many rows were scaled down to the norm that the run declares. Not private: do not publish it."""

    features: Floats
    targets: Floats
    norms: Floats
    shortened: int


def prepared(features: Any, targets: Any, records: int, feature_norm: float | None, dtype: Any) -> Data:
    """Rows that are longer than `feature_norm` are scaled down to it: without looking at other rows, so privacy holds."""
    rows = np.array(features.toarray() if issparse(features) else features, dtype)
    labels = np.asarray(targets)
    if rows.ndim != 2 or labels.ndim != 1 or len(rows) != len(labels):
        raise InvalidInput(
            f"data must be features and targets, row by row. Got shapes {rows.shape} and {labels.shape}."
        )
    if len(rows) != records:
        raise InvalidInput(f"the run is about {records} records. Got {len(rows)}.")
    if not np.isfinite(rows).all() or not np.isfinite(np.asarray(labels, float)).all():
        raise InvalidInput(
            "data must be finite. Got NaN or infinity; drop or fill such records without looking at others."
        )
    norms = np.linalg.norm(rows, axis=1)
    shortened = 0
    if feature_norm is not None:
        scale = np.minimum(1.0, feature_norm / np.maximum(norms, np.finfo(rows.dtype).tiny))
        shortened = int((scale < 1).sum())
        if shortened:
            rows *= scale[:, None]
            norms = np.minimum(norms, feature_norm)
    return Data(rows, np.asarray(labels, dtype), np.asarray(norms, dtype), shortened)
