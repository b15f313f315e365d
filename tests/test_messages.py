"""Errors carry codes and values, every code has its words in `report/messages`, and sentences are made nowhere else."""

from __future__ import annotations

import ast
import copy
import pickle
import re
import string
from collections.abc import Iterator
from inspect import signature
from pathlib import Path

import pytest

import lastiterate
from lastiterate import errors
from lastiterate.errors import InvalidInput
from lastiterate.report.messages import messages

SOURCE = Path(lastiterate.__file__).parent
WORDS = 6  # a text with more is a sentence
HELP = {"help", "description", "epilog", "usage", "metavar"}  # texts of options and commands, given by these names

# Where longer texts stand that are no sentences of `report`, and why.
EXCEPTIONS = {
    "report": "the place where sentences are made",
    "reproduction": "captions of the papers' figures and tables",
    "kernel": "it runs alone, without the rest of the package",
    "certificate/codec.py": "it refuses as the kernel does, whose values it reads",
    "testing": "the laws and exact instances of authors of theorems, with how they are broken",
    "budget/ledger.py": "SQL",
    "display.py": "HTML",
    "__init__.py": "lists of public names",
    "curves/adjacency.py": "values of two enumerations, which document them",
}


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE), ast.parse(path.read_text())


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text of a module but for docstrings and help, with its line; a value inside a text counts as a word."""
    docstrings = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    helping = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for given in node.keywords
        if given.arg in HELP
        for part in ast.walk(given.value)
    }
    statements = {  # a theorem's citation, what it covers and its errata stand beside its proof
        id(given)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Theorem"
        for given in node.args
    }
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    left_out = docstrings | helping | statements
    for node in ast.walk(tree):
        match node:
            case _ if id(node) in left_out:
                continue
            case ast.Constant(value=str(text)) if id(node) not in inside:
                yield node.lineno, text
            case ast.JoinedStr(values=parts):
                yield (
                    node.lineno,
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "one" for part in parts),
                )


def sentences() -> list[str]:
    """Places of the texts that are too long, of all files but for the exceptions."""
    return [
        f"{path}:{line}: {text}"
        for path, tree in trees()
        if not any(str(path).startswith(exception) for exception in EXCEPTIONS)
        for line, text in texts(tree)
        if len(re.findall(r"[^\W\d_]{2,}", text)) > WORDS
    ]


def fields(code: str) -> tuple[set[str], set[str]]:
    """Values that the words of a code need, and those that they may have."""
    made = messages()[code]
    if not callable(made):
        named = {re.split(r"[.\[]", name)[0] for _, name, _, _ in string.Formatter().parse(made) if name}
        return named, named | {"field", "allowed", "got"}
    parameters = signature(made).parameters.values()
    return {one.name for one in parameters if one.default is one.empty}, {one.name for one in parameters}


def calls() -> Iterator[tuple[str, ast.Call, str]]:
    """Calls with a code that stands there as a text: (place, call, code)."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                code = node.args[0].value
                if isinstance(code, str) and code in messages():
                    yield f"{path}:{node.lineno}", node, code


def test_errors_and_texts_are_given_what_their_words_need() -> None:
    named = {*vars(errors)} | {"worded"}
    wrong = []
    for place, call, code in calls():
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if name not in named or any(one.arg is None for one in call.keywords):
            continue
        needed, allowed = fields(code)
        given = {one.arg for one in call.keywords}
        if not needed <= given <= allowed:
            wrong.append(f"{place}: {code} needs {sorted(needed)}, got {sorted(given)}")
    assert wrong == []


def test_every_code_is_used() -> None:
    used = {
        node.value
        for path, tree in trees()
        if path.parent != Path("report/messages")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
    }
    assert sorted(messages().keys() - used) == []


def test_sentences_are_made_in_one_place() -> None:
    assert sentences() == []


def test_a_text_of_ones_own_is_its_own_message() -> None:
    assert str(InvalidInput("my theorem needs {more} steps")) == "my theorem needs {more} steps"


@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_copies_of_errors_carry_the_same_data(again) -> None:  # type: ignore[no-untyped-def]
    error = errors.must_be("delta", "in (0, 1)", "2", "Lower it.")
    assert (str(again(error)), vars(again(error))) == (str(error), vars(error))
    assert str(error) == "delta must be in (0, 1). Got 2. Lower it."
