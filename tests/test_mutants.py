"""The planted mistakes of `make mutate` name code that is there, once, and tests that exist."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import lastiterate

ROOT = Path(__file__).parent.parent
SOURCE = Path(lastiterate.__file__).parent
sys.path.insert(0, str(ROOT / "tests" / "mutation"))

from modules import MODULES, Module  # noqa: E402
from mutants import MUTANTS, Mutant  # noqa: E402


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_what_is_to_be_changed_is_there_once(mutant: Mutant) -> None:
    assert (SOURCE / mutant.file).read_text().count(mutant.right) == 1
    assert mutant.right != mutant.wrong


@pytest.mark.parametrize("one", [*MUTANTS, *MODULES], ids=lambda one: f"{one.file}-{one.tests}")
def test_the_tests_that_have_to_notice_exist(one: Mutant | Module) -> None:
    assert (SOURCE / one.file).exists()
    for path, _, name in (test.partition("::") for test in one.tests.split()):
        assert (ROOT / path).exists()
        assert f"def {name.partition('[')[0]}" in (ROOT / path).read_text() if name else True
