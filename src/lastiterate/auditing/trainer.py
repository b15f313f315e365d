"""A trainer in a file of its own, for the command line."""

from __future__ import annotations

import inspect
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lastiterate.auditing.neighbours import neighbours_of
from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import InvalidInput, must_be, shown


@dataclass(frozen=True)
class Trainer:
    """What to train, and on what."""

    train: Callable[[Any, int], Any]
    data: Any
    neighbour: Any


def check_signature(train: Any, data: Any) -> None:
    """That it can be called as train(data, seed), as far as can be seen without calling it."""
    if not callable(train):
        raise must_be("train", "a function of data and seed", f"{shown(train):.60}")
    try:
        signature = inspect.signature(train)
    except (TypeError, ValueError):  # of some functions that are not written in Python
        return
    try:
        signature.bind(data, 0)
    except TypeError as error:
        name = getattr(train, "__name__", "train")
        raise InvalidInput("train_signature", field="train", got=f"{name}{signature}", error=str(error)) from error


def read_trainer(path: str | Path, adjacency: Adjacency | None = None) -> Trainer:
    """The names train, data and neighbour that a Python file defines; the file is executed.

    With `adjacency` the neighbour is made of the data.
    """
    if not Path(path).is_file():
        raise InvalidInput("trainer_missing", path=str(path))
    sys.path.insert(0, str(Path(path).resolve().parent))  # as python itself does
    try:
        names = runpy.run_path(str(path))
    except Exception as error:
        raise InvalidInput("trainer_failed", path=str(path), kind=type(error).__name__, error=str(error)) from error
    wanted = ("train", "data") if adjacency else ("train", "data", "neighbour")
    missing = [name for name in wanted if name not in names]
    if missing:
        raise InvalidInput("trainer_lacks", path=str(path), missing=missing)
    if adjacency:
        return Trainer(names["train"], *neighbours_of(names["data"], adjacency))
    return Trainer(names["train"], names["data"], names["neighbour"])
