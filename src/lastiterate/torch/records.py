"""Records as a loader hands them out: inputs, and targets; each a tensor, or tuples, lists and dicts of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import torch

from lastiterate.errors import InvalidInput

LABELS = "labels"


def pair_of(batch: Any) -> tuple[Any, Any]:
    """Inputs and targets of a batch: a pair, or a dict whose "labels" are the targets."""
    if isinstance(batch, Mapping):
        if LABELS not in batch:
            raise InvalidInput("batch_without_labels", columns=list(map(str, batch)))
        return {name: part for name, part in batch.items() if name != LABELS}, batch[LABELS]
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[0], batch[1]
    raise InvalidInput("batch_not_a_pair", got=type(batch).__name__)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The function applied to every tensor."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, Mapping):
        return {name: mapped(function, part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(mapped(function, part) for part in value)
    return value


def count_of(value: Any) -> int:
    """How many records there are: along the first axis of every tensor."""
    counts = {len(tensor) if tensor.dim() else -1 for tensor in tensors_of(value)}
    if len(counts) != 1 or -1 in counts:
        raise InvalidInput("batch_uneven", got="different lengths" if counts else "no tensor")
    return counts.pop()


def pieces(inputs: Any, targets: Any, most: int) -> Iterator[tuple[Any, Any]]:
    """So many records at a time."""
    for first in range(0, count_of((inputs, targets)), most):
        some = itemgetter(slice(first, first + most))
        yield mapped(some, inputs), mapped(some, targets)


def moved(value: Any, device: Any, dtype: Any) -> Any:
    """On a device; real numbers in the precision of the model."""
    return mapped(lambda one: one.to(device, dtype if one.is_floating_point() else one.dtype, non_blocking=True), value)


def tensors_of(value: Any) -> Iterator[Any]:
    """All that are in it."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from tensors_of(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors_of(part)
