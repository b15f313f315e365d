"""The public names are loaded when they are used, are what they say, and cost little before that."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate import _MODULES, _ROOMS

LIMIT = 0.5  # seconds of CPU beyond numpy's and scipy's own
EVERYTHING = "import lastiterate as li\nfor name in li.__all__: getattr(li, name)"


def imported_for_readers() -> dict[str, str]:
    """Name to module, as type checkers see it."""
    tree = ast.parse(Path(str(li.__file__)).read_text())
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and str(node.module)[:5] == "lasti")
    return {name.name: str(node.module) for node in found for name in node.names}


def science() -> str:
    """The import of what the library loads of numpy and scipy."""
    code = f"{EVERYTHING}\nimport sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    public = [name for name in loaded if name.split(".")[0] in ("numpy", "scipy") and "._" not in name]
    return "import " + ", ".join(name for name in public if name.count(".") < 2)


def cpu_seconds(code: str) -> float:
    """Of a process of its own, the lesser of two."""
    timed = f"import time\n{code}\nprint(time.process_time())"
    return min(
        float(subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True, text=True).stdout)
        for _ in range(2)
    )


def test_what_is_loaded_is_what_type_checkers_see() -> None:
    rooms = dict.fromkeys(_ROOMS, "lastiterate")
    assert imported_for_readers() == {**_MODULES, **rooms, "losses": "lastiterate.algorithms"}
    assert sorted({*_MODULES, *_ROOMS, "losses", "__version__"}) == sorted(li.__all__) == dir(li)


def test_a_user_finds_about_forty_names_and_no_helpers() -> None:
    assert len(li.__all__) <= 52
    for room in (*_ROOMS, "losses"):
        module = getattr(li, room)
        assert dir(module) == sorted(module.__all__)
        for name in module.__all__:
            assert getattr(module, name).__class__.__name__ not in ("_SpecialForm", "_AnyMeta", "module")


@pytest.mark.parametrize("name", _MODULES)
def test_each_name_is_the_one_of_its_module(name: str) -> None:
    assert getattr(li, name) is getattr(importlib.import_module(_MODULES[name]), name)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'lastiterate' has no attribute 'acount'"):
        _ = li.acount  # type: ignore[attr-defined]
    assert li.__version__ == importlib.metadata.version("lastiterate")


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = "import lastiterate, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert [name for name in loaded if name.split(".")[0] in ("lastiterate", "numpy", "scipy")] == ["lastiterate"]


def test_all_names_take_half_a_second_beyond_numpy_and_scipy() -> None:
    assert cpu_seconds(EVERYTHING) - cpu_seconds(science()) < LIMIT
    assert cpu_seconds("import lastiterate") < LIMIT
