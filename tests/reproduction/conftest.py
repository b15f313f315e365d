"""All exhibits, made once in their quick form, without MNIST; once for all workers of a parallel run."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from lastiterate.reproduction.reproduce import Shown, reproduce

PATIENCE = 900.0  # seconds to wait for the worker that makes them


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody changes what is in it."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return tmp_path_factory.mktemp("papers")
    shared = tmp_path_factory.getbasetemp().parent / "papers"
    shared.mkdir(exist_ok=True)
    return shared


@pytest.fixture(scope="session")
def shown(folder: Path) -> Sequence[Shown]:
    try:
        (folder / "started").touch(exist_ok=False)
    except FileExistsError:
        end = time.monotonic() + PATIENCE
        while not (folder / "verdicts.txt").exists() and time.monotonic() < end:
            time.sleep(0.5)
    return reproduce(out=folder, quick=True, workers=1)
