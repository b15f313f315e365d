"""Imports point down the list of layers only, and importing the library loads numpy and scipy alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import lastiterate

SOURCE = Path(lastiterate.__file__).parent
LAYERS = (
    "errors",
    "plots",
    "progress",
    "kernel",
    "numerics",
    "privacy",
    "algorithms",
    "shift",
    "mixing",
    "theorems",
    "auditing",
    "accounting",
    "training",
    "mechanisms",
    "estimators",
    "papers",
    "cli",
    "__main__",
)


def layer_of(module: str) -> int:
    return LAYERS.index(module.split(".")[1])


def imported_modules(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    return [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]


def test_imports_point_down() -> None:
    upward = []
    for path in SOURCE.rglob("*.py"):
        module = ".".join(("lastiterate", *path.relative_to(SOURCE).with_suffix("").parts))
        if module == "lastiterate.__init__":
            continue
        for target in imported_modules(path):
            if target.startswith("lastiterate.") and layer_of(target) > layer_of(module):
                upward.append((module, target))
    assert upward == []


def test_the_library_alone_loads_only_numpy_and_scipy() -> None:
    code = "import sys, lastiterate; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert {"numpy", "scipy"} <= set(loaded)
    assert not {"matplotlib", "sklearn", "torch", "opacus", "dp_accounting", "pandas"} & set(loaded)
