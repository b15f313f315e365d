"""Every Python block of the README and the docs runs, and prints the text block that follows it; the site is complete."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tools.document_outputs import BLOCK, printed_and_shown
from tools.notebooks import NOTEBOOKS

import lastiterate as li
from lastiterate import _ROOMS, estimators

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCED = re.compile(r"```.*?```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[^)\s]*)?\)")
each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@each_document
def test_examples_print_what_the_document_says(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (ROOT / "out").mkdir(exist_ok=True)
    for printed, shown, _ in printed_and_shown(document.read_text()):
        assert printed == (shown or "")


@each_document
def test_links_lead_somewhere(document: Path) -> None:
    links = LINK.findall(FENCED.sub("", document.read_text()))
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_readme_is_short_and_has_an_example() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 700
    assert "python" in [language for language, _ in BLOCK.findall(text)]


def test_every_theorem_is_documented() -> None:
    page = (DOCS / "theorems.md").read_text()
    assert [theorem.name for theorem in li.theorems.ALL if f"`{theorem.name}`" not in page] == []


def test_every_public_name_is_in_the_reference() -> None:
    listed = re.findall(r"^::: lastiterate\.([\w.]+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    rooms = {room: getattr(li, room) for room in _ROOMS if room != "adapters"} | {"estimators": estimators}
    rooms |= {f"adapters.{name}": getattr(li.adapters, name) for name in li.adapters.__all__}
    top = set(li.__all__) - {"__version__", *_ROOMS}
    known = {id(getattr(li, name)) for name in top}
    members = [(room, name, getattr(module, name)) for room, module in rooms.items() for name in module.__all__]
    inside = {f"{room}.{name}" for room, name, value in members if id(value) not in known}
    assert sorted(listed) == sorted(top | inside)


def test_the_table_of_settings_names_the_theorems_that_its_runs_print() -> None:
    page = (DOCS / "choose.md").read_text()
    printed = next(body for language, body in BLOCK.findall(page) if language == "text")
    named = re.findall(r"^\| `\w+`[^|]* \| [^|]* \| `(\S+)` \|", page, re.MULTILINE)
    assert named == [line.split()[-3] for line in printed.splitlines()[1:]]


def test_our_column_of_the_comparison_is_what_its_command_prints() -> None:
    from benchmarks.peers import comparison

    first = (DOCS / "comparison.md").read_text().partition("\n## ")[0]
    rows = [line for line in first.splitlines() if line.startswith("| ")]
    ours = {row.split(" | ")[0].removeprefix("| "): row.split(" | ")[1] for row in rows[1:]}
    assert ours == {comparison.ROWS[row]: cell for row, cell in comparison.ours().items()}


def test_the_nav_lists_every_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    copied = ["changes.md", "contributing.md", *(f"notebooks/{path.stem}.md" for path in NOTEBOOKS)]
    assert sorted(re.findall(r": ([\w/-]+\.md)$", nav, re.MULTILINE)) == sorted(
        [*(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")), *copied]
    )


def test_each_theorem_has_a_page_with_what_it_says_of_itself() -> None:
    module = theorem_pages()
    pages = module.pages()
    assert sorted(pages) == sorted(f"theorems/{theorem.name}.md" for theorem in li.theorems.ALL)
    for theorem in li.theorems.ALL:
        page = pages[f"theorems/{theorem.name}.md"]
        said = [
            theorem.citation,
            theorem.covers,
            *module.sections(inspect.getdoc(theorem.bound)).values(),
            *theorem.needs,
        ]
        assert [text for text in [*said, theorem.erratum or "None that is known"] if text not in page] == []
        assert bool(theorem.erratum) == bool(module.errata_of(theorem))


def test_the_table_of_features_is_made_from_the_theorems() -> None:
    assert f"\n\n{theorem_pages().feature_table()}\n\n" in (DOCS / "theorems.md").read_text()


def test_theorems_are_told_in_one_shape() -> None:
    sections = theorem_pages().sections
    for theorem in li.theorems.ALL:
        said = sections(inspect.getdoc(theorem.bound))
        assert list(said) == ["Update", "Bound", "Assumes", "Attained by", "Reference"], theorem.name
        assert all(text.endswith(".") for text in said.values()), theorem.name


def test_every_theorem_applies_to_some_run_of_the_list() -> None:
    without = [path for path, page in theorem_pages().pages().items() if "It applies to 0 " in page]
    assert without == []


def theorem_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("theorem_pages", DOCS / "theorem_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_print_what_they_show(notebook: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "notebooks.py"), "--check", str(notebook)]
    compared = subprocess.run(command, capture_output=True, text=True, check=False)
    assert compared.returncode == 0, compared.stderr
