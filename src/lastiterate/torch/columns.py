"""Entries of a record by their names: those that a model takes, and those that it does not."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from lastiterate.errors import InvalidInput
from lastiterate.torch.records import tensors_of


def check_columns(module: Any, inputs: Mapping[str, Any]) -> None:
    """An error if the model has no argument for an entry, or if an entry holds no tensor."""
    unknown = [name for name in inputs if not _takes(module, name)]
    if unknown:
        raise InvalidInput("columns_unknown", field="dataset", columns=unknown, arguments=_arguments(module))
    lists = [
        name for name, part in inputs.items() if isinstance(part, list) and next(tensors_of(part), None) is not None
    ]
    if lists:
        raise InvalidInput("columns_of_lists", field="dataset", columns=lists)
    bare = [name for name, part in inputs.items() if part is not None and next(tensors_of(part), None) is None]
    if bare:
        raise InvalidInput("columns_without_tensors", field="dataset", columns=bare)


def _takes(module: Any, name: str) -> bool:
    parameters = inspect.signature(module.forward).parameters
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def _arguments(module: Any) -> list[str]:
    return [
        name for name, one in inspect.signature(module.forward).parameters.items() if one.kind is not one.VAR_POSITIONAL
    ]
