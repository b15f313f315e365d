"""Benchmarks are not run by the tests, but what they import is there."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if not path.stem.startswith("__") and path.name != "training_peers.py"  # which needs Opacus
)


@pytest.mark.parametrize("module", MODULES)
def test_it_can_be_imported(module: str) -> None:
    assert importlib.import_module(module).__doc__


def test_make_names_modules_that_are_there() -> None:
    lines = [line for line in (ROOT / "Makefile").read_text().splitlines() if "-m benchmarks." in line]
    named = [ROOT / line.split("-m ")[1].split()[0].replace(".", "/") for line in lines]
    assert len(named) > 10
    assert [
        path for path in named if not path.with_suffix(".py").exists() and not (path / "__main__.py").exists()
    ] == []
