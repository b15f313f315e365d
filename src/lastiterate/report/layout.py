"""The frame of the page: its style, and a policy that lets it load and run nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape

STYLE = """
:root {
  --ink: #1c1c1c; --paper: #ffffff; --soft: #f3f4f6; --line: #c9ccd1; --pale: #5c626b;
  --best: #0b57b0; --every: #b05a00; --stop: #a3261b; --stop-paper: #fdecea;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e6e6; --paper: #16181b; --soft: #22252a; --line: #454a52; --pale: #a6acb5;
    --best: #8ab8ff; --every: #f0b060; --stop: #ff9a8d; --stop-paper: #3a1c19;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 52rem;
  font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); overflow-wrap: anywhere;
}
h1 { font-size: 1.5rem; margin: 0.5rem 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; border-bottom: 1px solid var(--line); break-after: avoid; }
h3 { font-size: 1rem; margin: 1rem 0 0.25rem; break-after: avoid; }
p, ul, ol { margin: 0.5rem 0; }
ul, ol { padding-left: 1.4rem; }
code { font: 0.88em ui-monospace, monospace; }
.claim { font-size: 1.2rem; padding: 0.8rem 1rem; border: 2px solid var(--best); border-radius: 0.4rem; }
.void { color: var(--pale); border: 2px dashed var(--stop); }
.void span { text-decoration: line-through; }
.stop { padding: 0.8rem 1rem; border: 3px solid var(--stop); border-radius: 0.4rem; background: var(--stop-paper); }
.stop strong { color: var(--stop); font-size: 1.3rem; }
.note { color: var(--pale); font-size: 0.9rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
th, td { padding: 0.3rem 0.6rem 0.3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-weight: 600; width: 34%; }
tr, li, figure, .claim, .stop, .signature { break-inside: avoid; }
td.number { width: 22%; font-variant-numeric: tabular-nums; }
ol.initialled { list-style: none; padding: 0; counter-reset: assumption; }
ol.initialled li { counter-increment: assumption; display: flex; gap: 0.8rem; margin: 0.5rem 0; align-items: flex-start; }
ol.initialled li::before { content: counter(assumption) "."; width: 1.6rem; flex: none; text-align: right; }
.box { flex: none; width: 3.2rem; height: 1.7rem; border: 1.5px solid var(--ink); border-radius: 0.2rem; }
.signature td { height: 2.6rem; border-bottom: 1px solid var(--ink); }
.signature th { vertical-align: bottom; border-bottom: 0; width: 20%; }
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem; }
figure { margin: 0; }
figure > svg { display: block; width: 100%; height: auto; }
figcaption { font-size: 0.9rem; }
figcaption b { display: block; font-weight: 400; }
svg text { font: 13px system-ui, sans-serif; fill: var(--ink); }
svg path { fill: none; stroke-width: 2; }
.grid { stroke: var(--line); stroke-width: 0.6; }
.best { stroke: var(--best); }
.every { stroke: var(--every); stroke-dasharray: 6 4; }
.guess { stroke: var(--pale); stroke-dasharray: 2 3; }
.key { white-space: nowrap; margin-right: 0.8rem; color: var(--pale); }
.key svg { width: 24px; height: 8px; }
details { margin: 0.6rem 0; }
summary { cursor: pointer; font-weight: 600; }
@page { size: A4; margin: 14mm 16mm; }
@media print {
  html { font-size: 10pt; }
  body { max-width: none; padding: 0; line-height: 1.35; }
  h2 { margin: 1rem 0 0.3rem; }
  figure > svg { max-height: 42mm; }
  ol.initialled li { margin: 0.3rem 0; }
  .curves { grid-template-columns: 1fr 1fr; }
  .claim { font-size: 12pt; }
  details:not([open]), section:not(:has(details[open])) { display: none; }
}
@media (max-width: 30rem) {
  .claim { font-size: 1.1rem; padding: 0.6rem 0.7rem; }
  ol.initialled li { gap: 0.5rem; }
  th, td, .signature th { display: block; width: auto; }
  th { border-bottom: 0; padding-bottom: 0; }
}
"""


def framed(title: str, lines: Iterable[str]) -> str:
    """A page of its own: no network, no scripts, no forms, this style alone."""
    allowed = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    head = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
    ]
    return "\n".join([*head, *lines, "</body>", "</html>"]) + "\n"
