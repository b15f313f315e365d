"""Every Python block of the README and the docs runs, and prints the text block that follows it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import lastiterate as li

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+\.md)\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples_print_what_the_document_says(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    namespace: dict[str, object] = {}
    printed: str | None = None
    for language, body in BLOCK.findall(document.read_text()):
        if language == "python":
            assert not printed, f"this output is not shown: {printed}"
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(body, document.name, "exec"), namespace)
            printed = output.getvalue()
        elif language == "text" and printed is not None:
            assert printed == body
            printed = None
    assert not printed, f"this output is not shown: {printed}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    missing = [link for link in LINK.findall(document.read_text()) if not (document.parent / link).exists()]
    assert missing == []


def test_readme_has_a_python_example() -> None:
    assert len([1 for language, _ in BLOCK.findall((ROOT / "README.md").read_text()) if language == "python"]) >= 2


def test_every_theorem_is_documented() -> None:
    page = (ROOT / "docs" / "theorems.md").read_text()
    assert [theorem.name for theorem in li.CATALOGUE if f"`{theorem.name}`" not in page] == []
