"""Packages import each other as the table says and no other way, and the library loads numpy and scipy alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import lastiterate

SOURCE = Path(lastiterate.__file__).parent
SURFACE = "the surface"  # `import lastiterate`, or a public name from it: for users, not for the library itself

# What each package, or module beside the packages, may import. Nothing else, and nothing in a circle but for `LATE`.
ALLOWED = {
    "kernel": "",
    "errors": "",
    "digits": "",
    "display": "",
    "progress": "",
    "writing": "",
    "parallel": "errors",
    "plots": "digits errors writing",
    "numerics": "errors",
    "facts": "errors",
    "curves": "display errors facts numerics",
    "notions": "curves",
    "baselines": "curves",
    "trials": "curves",
    "runs": "curves display errors facts kernel numerics writing",  # curves: by which law batches are sampled
    "parts": "runs",
    "shift": "kernel numerics progress runs",
    "mixing": "curves numerics",
    "theorems": "curves display errors facts kernel mixing numerics progress runs shift",
    "auditing": "curves digits display errors facts kernel numerics parallel plots progress runs shift",
    "certificate": "curves display errors facts kernel numerics runs shift theorems",
    "accounting": "auditing certificate curves digits display errors facts numerics plots progress runs theorems",
    "selection": "accounting certificate curves errors facts numerics runs",
    "budget": "accounting certificate curves digits display errors facts numerics runs theorems",
    "forgetting": "accounting certificate digits display errors facts numerics progress runs theorems",
    "results": "accounting budget certificate forgetting selection",
    "report": "accounting certificate curves digits display errors facts numerics runs theorems",
    "testing": "accounting auditing curves display errors facts kernel numerics progress runs theorems",
    "adapters": "accounting certificate curves errors facts numerics runs theorems torch",
    "training": "accounting certificate curves digits display errors facts forgetting "
    "numerics plots progress runs writing",
    "torch": "accounting certificate display errors facts numerics progress runs theorems training",
    "mechanisms": "accounting curves display errors facts numerics plots runs training",
    "estimators": "accounting curves errors facts numerics progress report runs selection training",
    "reproduction": "accounting auditing curves errors kernel mechanisms numerics parallel plots "
    "progress runs shift theorems training",
    "web": "accounting certificate curves digits errors parts progress report runs theorems training",
    "cli": "accounting auditing budget certificate curves errors estimators forgetting progress report "
    "reproduction runs selection theorems training web",
    "__main__": "cli",
}
# Imports inside functions alone, of what would be a circle at module level: whoever is asked for a sentence fetches it;
# whoever checks a certificate fetches the checker of its format; a search for the noise of many trials selects among them.
SENTENCES = ("accounting", "certificate", "curves", "errors", "facts", "runs", "theorems")
LATE = {(package, "report") for package in SENTENCES}
LATE |= {("certificate", format) for format in ("budget", "forgetting", "selection")} | {("accounting", "selection")}
TABLE = {package: set(targets.split()) for package, targets in ALLOWED.items()}


def module_of(path: Path) -> str:
    return ".".join(("lastiterate", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def imported_modules(source: str, package: str) -> Iterator[str]:
    """Full names, however it is written: `import a.b`, `from a import b`, `from . import b` or `import_module("a.b")`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                yield from (name.name for name in node.names)
            case ast.ImportFrom():
                base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                stem = ".".join([*base, *([node.module] if node.module else [])])
                yield from (f"{stem}.{name.name}" for name in node.names)
            case ast.Call(func=ast.Name("import_module") | ast.Attribute(attr="import_module"), args=[first, *_]):
                yield ast.unparse(first).lstrip("f").strip("'\"")


def packages_imported(source: str, package: str) -> set[str]:
    """Those of the library."""
    ours = [name.split(".") for name in imported_modules(source, package) if name.split(".")[0] == "lastiterate"]
    return {parts[1] if len(parts) > 1 and parts[1] in TABLE else SURFACE for parts in ours}


class WithoutFunctions(ast.NodeTransformer):
    """What is executed when a module is imported: classes and branches, but no body of a function."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return ast.Pass()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return ast.Pass()

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return ast.Constant(None)


def at_module_level(source: str) -> str:
    return ast.unparse(WithoutFunctions().visit(ast.parse(source)))


def edges(part: Callable[[str], str] = str) -> set[tuple[str, str]]:
    """Which package imports which, in this part of each source; in all of it if none is given."""
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        module = module_of(path)
        if module == "lastiterate":
            continue
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        own = module.split(".")[1]
        found |= {(own, target) for target in packages_imported(part(path.read_text()), package) - {own}}
    return found


def test_every_package_has_its_row() -> None:
    there = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    there |= {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    assert there <= set(TABLE)
    assert set(TABLE) == there


def test_packages_import_what_the_table_allows() -> None:
    allowed = {(package, target) for package, targets in TABLE.items() for target in targets}
    assert sorted(edges() - allowed - LATE) == []


def test_late_imports_are_inside_functions_alone() -> None:
    assert edges() >= LATE
    assert not LATE & edges(at_module_level)
    assert not LATE & {(package, target) for package, targets in TABLE.items() for target in targets}


def test_the_table_allows_nothing_that_is_not_needed() -> None:
    allowed = {(package, target) for package, targets in TABLE.items() for target in targets}
    assert sorted(allowed - edges()) == []
    assert sorted(LATE - (edges() - edges(at_module_level))) == []
    assert not LATE & allowed


def test_nothing_in_the_table_goes_in_a_circle_and_the_kernel_stands_alone() -> None:
    assert len(list(TopologicalSorter(TABLE).static_order())) == len(TABLE)
    assert TABLE["kernel"] == set()
    assert [package for package, targets in TABLE.items() if "reproduction" in targets] == ["cli"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from lastiterate.cli.entry import main", {"cli"}),
        ("import lastiterate.cli.entry", {"cli"}),
        ("import lastiterate.cli.entry as entry, os", {"cli"}),
        ("from lastiterate import cli", {"cli"}),
        ("from lastiterate import account", {SURFACE}),
        ("import lastiterate as li", {SURFACE}),
        ("from .. import cli", {"cli"}),
        ("from ..cli.entry import main", {"cli"}),
        ("from . import certify", {"shift"}),
        ("from .steps import Steps", {"shift"}),
        ("import_module('lastiterate.cli.entry')", {"cli"}),
        ("importlib.import_module(f'lastiterate.cli.{name}')", {"cli"}),
        ("def later():\n    if True:\n        from lastiterate.cli import main", {"cli"}),
        ("import numpy as np\nfrom scipy import special\nfrom lastiterates.cli import main", set()),
    ],
)
def test_every_way_to_import_is_seen(source: str, expected: set[str]) -> None:
    assert packages_imported(source, "lastiterate.shift") == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from lastiterate import cli", {"cli"}),
        ("if True:\n    from lastiterate import cli", {"cli"}),
        ("class A:\n    from lastiterate import cli", {"cli"}),
        ("class A:\n    def b(self):\n        from lastiterate import cli", set()),
        ("async def later():\n    from lastiterate import cli", set()),
        ("def later():\n    if True:\n        from lastiterate import cli\nimport lastiterate.web", {"web"}),
    ],
)
def test_what_is_inside_functions_is_not_at_module_level(source: str, expected: set[str]) -> None:
    assert packages_imported(at_module_level(source), "lastiterate.shift") == expected


def test_the_library_alone_loads_only_numpy_and_scipy() -> None:
    code = "import sys, lastiterate as li; loaded = [getattr(li, name) for name in li.__all__]; "
    code += "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert {"numpy", "scipy"} <= set(loaded)
    assert not {"matplotlib", "sklearn", "torch", "opacus", "dp_accounting", "pandas"} & set(loaded)
