"""The sum of clipped gradients over a batch: in closed form for linear models, record by record for anything else."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats
from lastiterate.training.data import Data, Records
from lastiterate.training.models import Model

RecordGradients = Callable[[Any, Any, Any], Any]
"""From weights, features and targets of some records: one gradient for each record, along the first axis."""

_RECORDS_AT_ONCE = 1024


class Objective(ABC):
    """What is descended. `precision` is that of the products; the iterate itself is always kept in double precision."""

    data: Data

    @property
    @abstractmethod
    def precision(self) -> Any: ...

    @abstractmethod
    def gradient_sum(self, weights: Floats, records: Records, clip: float | None) -> Floats: ...


@dataclass(frozen=True, eq=False)
class LinearModel(Objective):
    """No gradient of a single record is ever formed."""

    model: Model
    data: Data

    @property
    def precision(self) -> Any:
        return self.data.records.features.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        width = self.data.records.features.shape[1]
        return (width,) if self.model.columns is None else (width, self.model.columns)

    def gradient_sum(self, weights: Floats, records: Records, clip: float | None) -> Floats:
        return self.model.gradient_sum(weights.astype(self.precision, copy=False), records, clip)


@dataclass(frozen=True, eq=False)
class EachRecord(Objective):
    """The user's own gradients, a number of records at a time, each cut to the clip and to what the loss declares."""

    gradients: RecordGradients
    data: Data
    declared: float = math.inf

    @property
    def precision(self) -> Any:
        return np.float64

    def gradient_sum(self, weights: Floats, records: Records, clip: float | None) -> Floats:
        total = np.zeros_like(weights)
        for first in range(0, len(records), _RECORDS_AT_ONCE):
            total += self._part(weights, records[first : first + _RECORDS_AT_ONCE], clip)
        return total

    def _part(self, weights: Floats, records: Records, clip: float | None) -> Floats:
        found = _as_numbers(self.gradients(weights.copy(), records.features, records.targets))
        if found.shape != (len(records), *weights.shape):
            raise InvalidInput(
                f"loss must return one gradient for each record: shape {(len(records), *weights.shape)}. Got {found.shape}."
            )
        if not np.isfinite(found).all():
            raise InvalidInput("loss must return finite gradients. Got NaN or infinity.")
        rows = found.reshape(len(records), -1)
        most = min(self.declared, math.inf if clip is None else clip)
        kept = most / np.maximum(np.linalg.norm(rows, axis=1), most) if math.isfinite(most) else np.ones(len(rows))
        return np.asarray(kept @ rows).reshape(weights.shape)


def _as_numbers(found: Any) -> Floats:
    """What the user's function returned, in double precision."""
    try:
        array = np.asarray(found)
        if array.dtype.kind not in "iufb":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # text, None, ragged lists, tensors on another device
        raise InvalidInput(
            f"loss must return an array of numbers, one gradient for each record. Got {type(found).__name__}."
        ) from error
