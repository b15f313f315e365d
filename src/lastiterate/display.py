"""Representations of values in notebooks: one line as `repr`, and a little HTML.

The HTML takes the colours of the notebook, light or dark, loads nothing and runs nothing.
Texts are escaped where they enter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NewType

Html = NewType("Html", str)

_LONGEST = 160  # characters of a repr
_CARD = "margin:0.3em 0;padding:0.2em 0 0.2em 0.8em;border-left:3px solid #7a8ca8;max-width:60em;overflow-x:auto"
_ALERT = "margin:0.4em 0;padding:0.3em 0.6em;border:2px solid #d9534f;font-weight:bold"
_CELL = "text-align:left;vertical-align:top;padding:0.1em 1.2em 0.1em 0;border:none;background:none;font-size:inherit"


def summary(value: object, *parts: str) -> str:
    """The kind of the value and what is most worth knowing of it, in one line."""
    return shortened(f"{type(value).__name__}({', '.join(part for part in parts if part)})")


def shortened(text: str) -> str:
    """Return the text on one line, shortened to a bearable length."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 2]}…{line[-1]}"


def card(*blocks: Html) -> str:
    """Return a card of these blocks, as `_repr_html_` shows it."""
    return f'<div style="{_CARD}">{"".join(blocks)}</div>'


def headline(text: str) -> Html:
    return Html(f'<div style="font-weight:bold;font-size:1.1em">{escape(text)}</div>')


def lines(texts: Iterable[str]) -> Html:
    return Html("".join(f"<div>{escape(one)}</div>" for one in texts))


def alerts(texts: Iterable[str]) -> Html:
    """Return warnings as HTML alerts."""
    return Html("".join(f'<div role="alert" style="{_ALERT}">{escape(one)}</div>' for one in texts))


def bullets(texts: Iterable[str]) -> Html:
    return Html(f'<ul style="margin:0.2em 0">{"".join(f"<li>{escape(one)}</li>" for one in texts)}</ul>')


def table(rows: Iterable[Sequence[str]], heads: Sequence[str] = ()) -> Html:
    head = f"<thead><tr>{_cells('th', heads)}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return Html(f'<table style="border-collapse:collapse;margin:0.2em 0">{head}<tbody>{body}</tbody></table>')


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f'<{tag} style="{_CELL}">{escape(one)}</{tag}>' for one in texts)


def preformatted(text: str) -> Html:
    return Html(f'<pre style="margin:0.2em 0;background:none;color:inherit;white-space:pre-wrap">{escape(text)}</pre>')


def folded(title: str, body: Html) -> Html:
    """Return a section of HTML that is shown when somebody opens it."""
    return Html(f'<details><summary style="cursor:pointer">{escape(title)}</summary>{body}</details>')
