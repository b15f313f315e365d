"""The public names are loaded when they are used, are what they say, and cost little before that."""

from __future__ import annotations

import ast
import importlib
import sys
from operator import attrgetter
from pathlib import Path

import pytest
from benchmarks.timing import EVERY_NAME, numpy_and_scipy, said_by

import lastiterate as li
from lastiterate import _MODULES, _ROOMS
from lastiterate.parts import public_name
from lastiterate.runs.kinds import SECTIONS

MOST_LOADED = 350  # modules beyond numpy and scipy: there are 326


def imported_for_readers() -> dict[str, str]:
    """Name to module, as type checkers see it."""
    tree = ast.parse(Path(str(li.__file__)).read_text())
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and str(node.module)[:5] == "lasti")
    return {name.name: str(node.module) for node in found for name in node.names}


def test_what_is_loaded_is_what_type_checkers_see() -> None:
    rooms = dict.fromkeys(_ROOMS, "lastiterate")
    assert imported_for_readers() == {**_MODULES, **rooms, "losses": "lastiterate.runs"}
    assert sorted({*_MODULES, *_ROOMS, "losses", "__version__"}) == sorted(li.__all__) == dir(li)


def test_a_user_finds_few_names_and_no_helpers() -> None:
    assert len(li.__all__) <= 55
    assert dir(li.adapters) == sorted(li.adapters.__all__)  # rooms of a room, each loaded with its library
    for room in (*_ROOMS, "losses"):
        module = getattr(li, room)
        if module is li.adapters:
            continue
        assert dir(module) == sorted(module.__all__)
        for name in module.__all__:
            assert getattr(module, name).__class__.__name__ not in ("_SpecialForm", "_AnyMeta", "module")


@pytest.mark.parametrize("name", _MODULES)
def test_each_name_is_the_one_of_its_module(name: str) -> None:
    assert getattr(li, name) is getattr(importlib.import_module(_MODULES[name]), name)


def test_every_kind_is_found_where_its_public_name_says() -> None:
    for section, listed in SECTIONS.items():
        for kind in listed:
            made = kind.make.__name__
            assert attrgetter(public_name(section, made))(li) is kind.make


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'lastiterate' has no attribute 'acount'"):
        _ = li.acount  # type: ignore[attr-defined]
    assert li.__version__ == importlib.metadata.version("lastiterate")


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = "import lastiterate, sys; print(*sys.modules)"
    loaded = said_by(code).split()
    assert [name for name in loaded if name.split(".")[0] in ("lastiterate", "numpy", "scipy")] == ["lastiterate"]


def test_all_names_load_little_beyond_numpy_and_scipy() -> None:
    """How many seconds that takes, `make house` prints."""
    every_name, science = (
        set(said_by(f"{code}\nimport sys; print(*sys.modules)").split()) for code in (EVERY_NAME, numpy_and_scipy())
    )
    others = [name for name in every_name - science if name.split(".")[0] not in sys.stdlib_module_names]
    assert {name.split(".")[0] for name in others} == {"lastiterate"}
    assert len(every_name - science) < MOST_LOADED
