"""Indices and counts of entries are as wide as the platform's own: numpy refuses wider ones on 32-bit platforms."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import lastiterate as li
from lastiterate.kernel.steps import Steps
from lastiterate.numerics.exact_noise import states_drawn
from lastiterate.numerics.levels import few_levels
from lastiterate.numerics.randomness import Source
from lastiterate.shift.optimise import best_schedule
from lastiterate.shift.schedule import chunk_starts
from raising import raises

SOURCE = Path(li.__file__).parent
WIDER = {"int64", "int32", "int_", "longlong"}
# No indices: 64 random bits, and sums of errors that are counted in small units.
BITS = {"numerics/exact_noise.py": {"int64"}, "estimators/trial.py": {"int64"}}


def fixed_widths(source: str) -> set[str]:
    """Types of integers that are named other than `np.intp`, and `int` where it is the type of an array."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name("np"), attr=name) if name in WIDER:
                found.add(name)
            case ast.Call(func=ast.Attribute(attr="astype" | "zeros" | "ones" | "full" | "empty" | "arange" | "array")):
                types = [*node.args, *(word.value for word in node.keywords if word.arg == "dtype")]
                found |= {"int" for one in types if isinstance(one, ast.Name) and one.id == "int"}
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_index_has_a_width_of_its_own(path: Path) -> None:
    name = path.relative_to(SOURCE).as_posix()
    assert fixed_widths(path.read_text()) <= BITS.get(name, set())


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("np.ones(3, np.int64)", {"int64"}),
        ("x.astype(int)", {"int"}),
        ("np.zeros(3, dtype=int)", {"int"}),
        ("np.ones(int(x))", set()),
        ("np.ones(3, np.intp)", set()),
    ],
)
def test_widths_are_seen(source: str, found: set[str]) -> None:
    assert fixed_widths(source) == found


def test_runs_are_no_longer_than_arrays_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a 32-bit platform, where this is less than 10¹²."""
    monkeypatch.setattr("lastiterate.runs.per_step._MOST_STEPS", 2**31 // 8)
    with raises("must_be", "steps", kind=li.errors.InvalidInput, allowed="at most 2.68435e+08"):
        li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(records=4), 0.1, li.OnIterate(std=1.0), 10**9)


def test_indices_that_are_made_are_of_the_platform() -> None:
    steps = Steps(np.tile([1.0, 0.0], 50), np.ones(100), np.full(100, 0.9), 3.0)
    _, levels = few_levels(np.linspace(1.0, 2.0, 50), 4, 1e-300)
    made = [
        best_schedule(steps)[1].lengths,
        chunk_starts(np.full(100, -10.0), 300.0),
        levels,
        states_drawn(np.full((2, 2), 0.5), np.zeros(3, np.intp), Source(1)),
        states_drawn(np.full((2, 2), 0.5), np.zeros(0, np.intp), Source(1)),
    ]
    assert [one.dtype for one in made] == [np.dtype(np.intp)] * len(made)
    assert [len(one) > 0 for one in made] == [True] * 4 + [False]
