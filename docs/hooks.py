"""What `mkdocs build` adds to the pages that are written by hand: theorems, changes, the example file, links and anchors."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.util import ETX, STX
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import notebook_pages
import theorem_pages

import lastiterate as li
from lastiterate.reproduction.errata import ERRATA

ROOT = Path(__file__).parent.parent
COPIED = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/mnist.toml": "examples/mnist.toml",
}
BY_THEOREM = "Theorem by theorem"
NOTEBOOKS = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))


class Underscore(InlineProcessor):
    """An underscore as if it were escaped."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        return f"{STX}{ord('_')}{ETX}", m.start(), m.end()


class Subscripts(Extension):
    """Underscores are subscripts: emphasis is written with stars."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.inlinePatterns.register(Underscore("_", md), "subscript", 70)  # after code and links, before emphasis


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The nav has an empty place for the pages of the theorems."""
    config.markdown_extensions.append(Subscripts())
    for section in config.nav or []:
        for entry in next(iter(section.values())):
            if isinstance(entry, dict) and BY_THEOREM in entry:
                entry[BY_THEOREM] = [{one.name: theorem_pages.path_of(one.name)} for one in li.theorems.ALL]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, text in theorem_pages.pages().items():
        files.append(File.generated(config, path, content=text))
    for notebook in NOTEBOOKS:
        for path, content in notebook_pages.pages(notebook).items():
            files.append(File.generated(config, f"notebooks/{path}", content=content))
    for source, path in COPIED.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    text = markdown.replace("](../examples/mnist.toml)", "](examples/mnist.toml)").replace("](docs/", "](")
    text = text.replace("](../CONTRIBUTING.md", "](contributing.md")
    path = page.file.src_uri
    if path == "proofs.md":
        return _under_one_title(text)
    if path == "errata.md":
        return _with_anchors(text)
    return _with_links(text, path) if path in {"theorems.md", "choose.md"} or path.startswith("theorems/") else text


def _under_one_title(text: str) -> str:
    """A page with several titles has no table of contents: all headings but the first go one level down."""
    first, rest = text.split("\n", 1)
    return first + "\n" + re.sub(r"^#", "##", rest, flags=re.MULTILINE)


def _with_anchors(text: str) -> str:
    for one in ERRATA:
        text = text.replace(f"\n| {one.name} |", f'\n| <span id="{theorem_pages.anchor(one.name)}">{one.name}</span> |')
    return text


def _with_links(text: str, path: str) -> str:
    """Names of theorems in tables lead to their pages, and the file of the proofs to its page."""
    up = "../" * path.count("/")
    text = text.replace("docs/proofs.md", f"[Proofs]({up}proofs.md)")
    names = {one.name for one in li.theorems.ALL}

    def link(found: re.Match[str]) -> str:
        name = found[1]
        return f"[`{name}`]({up}{theorem_pages.path_of(name)})" if name in names else found[0]

    lines = (re.sub(r"`([\w/-]+)`", link, line) if line.startswith("|") else line for line in text.splitlines())
    return "\n".join(lines)
