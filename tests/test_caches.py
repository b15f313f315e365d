"""What is remembered between questions is bounded: a planner that answers for a week does not grow."""

from __future__ import annotations

import ast
import functools
import gc
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.facts import KINDS
from lastiterate.report.english import caveats, words

SOURCE = Path(li.__file__).parent
Wrapper = type(functools.lru_cache(maxsize=1)(int))
MOST_ENTRIES, MOST_BYTES = 300, 20e6


def unbounded_caches(source: str) -> list[int]:
    """Lines that remember without a limit; a function without arguments has one answer."""
    tree = ast.parse(source)
    constant = {
        id(decorator)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not any(ast.iter_child_nodes(node.args))
        for decorator in node.decorator_list
    }
    numbers = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, int)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    imported = {
        (alias.asname or alias.name): alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "functools"
        for alias in node.names
    }

    def named(node: ast.expr) -> str | None:
        match node:
            case ast.Name(name):
                return imported.get(name)
            case ast.Attribute(ast.Name("functools"), name):
                return name
        return None

    limited = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and named(node.func) == "lru_cache":
            match [*node.args, *(one.value for one in node.keywords if one.arg == "maxsize")]:
                case [ast.Constant(int())]:
                    limited.add(id(node.func))
                case [ast.Name(name)] if name in numbers:
                    limited.add(id(node.func))
    found = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute) and named(node) in ("cache", "lru_cache")
        if id(node) not in limited | constant
    ]
    return found + [node.lineno for node in tree.body if _is_empty_container(node)]


def _is_empty_container(node: ast.stmt) -> bool:
    """A module's own dictionary, list or set that begins empty can only be there to be filled."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    match node.value:
        case ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name), args=[], keywords=[]):
            return name in {"dict", "list", "set", "OrderedDict", "WeakKeyDictionary", "WeakValueDictionary"}
    return False


@pytest.mark.parametrize(
    "text",
    [
        "from functools import cache\n@cache\ndef f(x): ...",
        "from functools import cache\ndef f(g):\n    return cache(g)",
        "from functools import cache as kept\n@kept\ndef f(*x): ...",
        "import functools\n@functools.cache\ndef f(x): ...",
        "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef f(x): ...",
        "from functools import lru_cache\n@lru_cache(None)\ndef f(x): ...",
        "from functools import lru_cache\n@lru_cache\ndef f(x): ...",
        "_KNOWN = {}",
        "_KNOWN: dict[int, int] = dict()",
        "_KNOWN = weakref.WeakKeyDictionary()",
    ],
)
def test_a_cache_without_a_limit_is_seen(text: str) -> None:
    assert len(unbounded_caches(text)) == 1


def test_a_cache_with_a_limit_is_let_be() -> None:
    text = (
        "from functools import cache, lru_cache\n_MOST = 3\n@cache\ndef f(): ...\n@lru_cache(maxsize=2)\ndef g(x): ..."
    )
    assert unbounded_caches(f"{text}\n@lru_cache(_MOST)\ndef h(x): ...\n_NAMES = {{1: 2}}") == []


# Filled while their module is loaded, by the functions that make the sentences of each kind of fact.
REGISTERS = {"report/english/words.py": ("SENTENCES", "SHORT"), "report/english/caveats.py": ("_WARNINGS",)}


def test_no_cache_is_without_a_limit() -> None:
    found = {}
    for path in SOURCE.rglob("*.py"):
        name, lines = path.relative_to(SOURCE).as_posix(), path.read_text().split("\n")
        known = REGISTERS.get(name, ())
        found[name] = [
            one for one in unbounded_caches("\n".join(lines)) if not lines[one - 1].startswith(known or ("\0",))
        ]
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert set(words.SENTENCES) == set(KINDS)
    assert {*words.SHORT, *caveats._WARNINGS} <= set(KINDS)


def caches() -> dict[str, Any]:
    """Every cache of a module that is loaded, but for what only tests use; those of values live as long as these."""
    loaded = [module for name, module in sorted(sys.modules.items()) if name.startswith("lastiterate.")]
    every = [one for module in loaded for one in vars(module).values() if isinstance(one, Wrapper)]
    ours = [one for one in every if one.__module__.startswith("lastiterate.")]
    return {f"{one.__module__}.{one.__name__}": one for one in ours if ".testing." not in one.__module__}


def bytes_held(cache: Any) -> int:
    """Bytes of all arrays that can be reached from what the cache remembers."""
    seen: set[int] = set()
    waiting, total = [one for one in gc.get_referents(cache) if not callable(one)], 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | types.ModuleType):
            continue
        seen.add(id(one))
        if isinstance(one, types.FunctionType):
            waiting.extend(cell.cell_contents for cell in one.__closure__ or ())
            continue
        total += one.nbytes if isinstance(one, np.ndarray) and one.base is None else 0
        waiting.extend([one.base] if isinstance(one, np.ndarray) else gc.get_referents(one))
    return total


def test_what_a_cache_holds_is_counted() -> None:
    @functools.lru_cache(maxsize=8)
    def made(size: int) -> tuple[np.ndarray, Any]:
        inner = np.ones(size)
        return np.ones(size)[::2], lambda: inner

    for size in (10, 20, 20):
        made(size)
    assert bytes_held(made) == 2 * 8 * (10 + 20)


def small_runs(count: int) -> Iterator[li.Run]:
    """Runs of every kind of batches, of which no two have the same noise; of those that take long, two each."""
    smooth, clipped = li.losses.logistic(feature_norm=1.0, l2=0.05), li.losses.network(clip=1.0)
    fixed = li.FixedSize(records=40, batch_size=10)
    quick: list[dict[str, Any]] = [
        {"loss": smooth, "batches": li.FullBatch(records=40)},
        {"loss": smooth, "batches": li.FullBatch(records=40), "optimizer": li.SGD(momentum=0.5)},
        {"loss": smooth, "batches": li.Cyclic(records=40, batch_size=10)},
        {"loss": smooth, "batches": li.Shuffled(records=40, batch_size=20)},
        {"loss": clipped, "batches": fixed},
        {"loss": clipped, "batches": li.BallsAndBins(records=40, batches=2), "adjacency": li.ZERO_OUT},
    ]
    slow: list[dict[str, Any]] = [
        {"loss": smooth, "batches": fixed},
        {"loss": smooth, "batches": fixed, "adjacency": li.ZERO_OUT},
        {"loss": smooth, "batches": fixed, "domain": li.Ball(radius=0.3)},
    ]
    for place in range(count):
        given = slow[place % len(slow)] if place < 2 * len(slow) else quick[place % len(quick)]
        yield li.Run(step_size=0.5, noise=li.OnMeanGradient(0.3 + place / 1000), steps=4, **given)


def test_many_accounts_leave_little_behind() -> None:
    """Few entries, and few bytes even if every cache were full of entries like those that it has."""
    for cache in caches().values():
        cache.cache_clear()
    for run in small_runs(200):
        li.account(run, 1e-5)
    found = {name: (cache, cache.cache_info()) for name, cache in caches().items()}
    assert len(found) > 12
    assert 50 < sum(info.currsize for _, info in found.values()) < MOST_ENTRIES
    most = {name: info.maxsize or 1 for name, (_, info) in found.items()}  # without a limit are those without arguments
    full = {name: bytes_held(cache) * most[name] / max(info.currsize, 1) for name, (cache, info) in found.items()}
    assert 1e6 < sum(full.values()) < MOST_BYTES, full
