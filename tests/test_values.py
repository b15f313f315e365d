"""What is computed with does not change under one's hands, and what holds arrays is compared as a whole."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from pathlib import Path

import pytest

import lastiterate

PACKAGE = Path(lastiterate.__file__).parent
ARRAYS = re.compile(r"Floats|Counts|Bits|Indices|np\.ndarray|Notion|Steps")
COMPARED = ("auditing/", "theorems/theorem.py")  # field by field, whatever these are
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if "@dataclass" in path.read_text()]
NAMES = [path.relative_to(PACKAGE).as_posix() for path in FILES]


def classes_of(name: str) -> list[type]:
    path = "lastiterate." + name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    module = pytest.importorskip(path, exc_type=ImportError) if "torch" in name else importlib.import_module(path)
    found = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == path]
    return [one for one in found if "__dataclass_params__" in vars(one)]


@pytest.mark.parametrize("name", NAMES)
def test_values_cannot_be_changed(name: str) -> None:
    """And two of them are equal only if they are the same, where `==` of a field would be an array, or long."""
    assert classes_of(name)
    for one in classes_of(name):
        assert one.__dataclass_params__.frozen, one  # type: ignore[attr-defined]
        types = [str(field.type) for field in dataclasses.fields(one) if field.compare]
        if any(ARRAYS.fullmatch(text) for text in types) and not name.startswith(COMPARED):
            assert not one.__dataclass_params__.eq, one  # type: ignore[attr-defined]


def test_no_two_classes_have_the_same_name() -> None:
    """One word for one thing: the callbacks of two trainers are one."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name.lstrip("_"), []).append(path.name)
    twice = {name: files for name, files in found.items() if len(files) > 1}
    assert twice == {"RecordReleases": ["lightning.py", "transformers.py"]}
