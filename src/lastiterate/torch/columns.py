"""Entries of a record by their names: those that a model takes, and those that it does not."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from lastiterate.errors import InvalidInput, must_be
from lastiterate.torch.records import tensors_of

_MOST_NAMED = 3


def check_columns(module: Any, inputs: Mapping[str, Any]) -> None:
    """An error if the model has no argument for an entry, or if an entry holds no tensor."""
    unknown = [name for name in inputs if not _takes(module, name)]
    if unknown:
        raise InvalidInput(
            f"the model must accept every column of the data set. Got {_named(unknown)}, but its arguments are "
            f"{_named(_arguments(module))}. Remove columns: dataset.remove_columns({unknown[:_MOST_NAMED]!r}).",
            field="dataset",
        )
    lists = [
        name for name, part in inputs.items() if isinstance(part, list) and next(tensors_of(part), None) is not None
    ]
    if lists:
        raise InvalidInput(
            f"records must be tensors. Got lists of numbers in {_named(lists)} of the data set. Use "
            'dataset.with_format("torch"), or a collate_fn that returns tensors.',
            field="dataset",
        )
    bare = [name for name, part in inputs.items() if part is not None and next(tensors_of(part), None) is None]
    if bare:
        raise must_be(
            "dataset",
            "tensors",
            f"none in {_named(bare)} of the data set",
            f"Tokenise it, or remove it: dataset.remove_columns({bare[:_MOST_NAMED]!r}).",
            called="records",
        )


def _takes(module: Any, name: str) -> bool:
    parameters = inspect.signature(module.forward).parameters
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def _arguments(module: Any) -> list[str]:
    return [
        name for name, one in inspect.signature(module.forward).parameters.items() if one.kind is not one.VAR_POSITIONAL
    ]


def _named(names: list[str]) -> str:
    shown = ", ".join(map(str, names[:_MOST_NAMED]))
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"
