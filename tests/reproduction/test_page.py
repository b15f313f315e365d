"""The page is complete in itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

from lastiterate.reproduction.exhibit import Agreement, Claim, Exhibit, Made, Outcome, Setting
from lastiterate.reproduction.page import page
from lastiterate.reproduction.reproduce import Shown

VOID = {"meta", "img", "br", "link"}


class Tags(HTMLParser):
    """Whether every tag is closed, and what is referred to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.referred: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.referred += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_nothing_is_fetched_and_every_exhibit_is_there(shown: Sequence[Shown], folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://", text)
    assert '<meta name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    local = [one for one in tags.referred if not one.startswith(("data:image/", "#"))]
    assert all((folder / name).exists() for name in local)
    for one in shown:
        assert f'<section id="{one.exhibit.key}">' in text
        assert f'href="{one.exhibit.key}.csv"' in text
    assert text.count("data:image/svg+xml;base64,") >= len(shown) - 4


def test_what_is_written_on_the_page_is_escaped(tmp_path: Path) -> None:
    exhibit = Exhibit("bok2024", "fig-1", "a < b & <script>", (("p & q", "<b>"),), lambda _: Made((), (), (), one))
    one = Agreement(Outcome.CORRECTED, ("E<0>",), "x < y")
    text = page((Shown(exhibit, one, (Claim("<i>", "1 < 2"),), 1.0),), tmp_path, Setting())
    assert "<script>" not in text
    assert "<i>" not in text
    assert "a &lt; b &amp; &lt;script&gt;" in text
    assert "E&lt;0&gt;" in text
