"""A trainer in a file of its own, for the command line."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lastiterate.errors import InvalidInput


@dataclass(frozen=True)
class Trainer:
    """What to train, and on what."""

    train: Callable[[Any, int], Any]
    data: Any
    neighbour: Any


def read_trainer(path: str | Path) -> Trainer:
    """The names train, data and neighbour that a Python file defines; the file is executed."""
    if not Path(path).is_file():
        raise InvalidInput(f"{path} cannot be read: there is no such file.")
    sys.path.insert(0, str(Path(path).resolve().parent))  # as python itself does
    try:
        names = runpy.run_path(str(path))
    except Exception as error:
        raise InvalidInput(f"{path} cannot be run: {type(error).__name__}: {error}.") from error
    missing = [name for name in ("train", "data", "neighbour") if name not in names]
    if missing:
        raise InvalidInput(f"{path} must define train(data, seed), data and neighbour. It lacks {', '.join(missing)}.")
    return Trainer(names["train"], names["data"], names["neighbour"])
