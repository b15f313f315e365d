"""The page to sign: its layout and form, the file it is written to, and whether a page is the one its certificate makes."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable
from html import escape, unescape
from importlib.metadata import version
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from lastiterate.accounting.report import lower_bound_for
from lastiterate.certificate.verdict import PageVerdict, Request, Verdict, rejected
from lastiterate.certificate.verify import check
from lastiterate.display import Html, alerts, bullets, card, folded, headline, lines, table
from lastiterate.errors import InvalidInput
from lastiterate.report.content import content
from lastiterate.report.sheet import FORMAT, SAME, ReportSheet, checked_sheet, detected
from lastiterate.report.text import claim, sections

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report


# The page as HTML, with its certificate, label and record inside; and back.


_ELEMENT = '<script type="application/json" id="{}">'
_UNSAFE = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"})


def page_of(sheet: ReportSheet) -> str:
    """Return the page of a sheet; equal sheets give equal text."""
    held = {"certificate": sheet.certificate, "label": sheet.label, "record": sheet.record}
    return framed(
        "Differential privacy report", [*content(sheet), *(_element(name, one) for name, one in held.items())]
    )


def _element(name: str, value: Any) -> str:
    """Return a value as an element of JSON, escaped so that no string in it can end the element."""
    return f"{_ELEMENT.format(name)}{json.dumps(value).translate(_UNSAFE)}</script>"


def sheet_in(page: str) -> ReportSheet:
    """Return the sheet that the page says it is made of."""
    record = _held(page, "record")
    if record["format"] != FORMAT:
        raise InvalidInput(f"it is not a {FORMAT}. Make the page again with this version.")
    names = ("version", "date", "shown", "stated", "digests")
    return checked_sheet(ReportSheet(_held(page, "certificate"), **{name: record[name] for name in names}))


def _held(page: str, name: str) -> Any:
    found = re.findall(f"^{re.escape(_ELEMENT.format(name))}(.*)</script>\\r?$", page, re.MULTILINE)
    if len(found) != 1:
        raise InvalidInput(f"it has {len(found)} elements named {name}, not one.")
    return json.loads(found[0])


# Verification: a page of this version must be the very page that its certificate makes.


_ENTRY = re.compile(r'id="([\w-]+)">([^<]*)<')
_TAG = re.compile(r"<[^>]*>")
_LONGEST = 160


def check_page(page: str, question: Request) -> Verdict:
    """Check the page of a report: its certificate, by a theorem of the library, then what the page shows."""
    sheet = sheet_in(page)
    verdict = check(sheet.certificate, Request(question.run, question.called))
    if not verdict.accepted:
        return verdict
    if type(verdict) is not Verdict:
        return rejected("page_not_of_run")
    same_version = sheet.version == version("lastiterate")
    if otherwise := (_other_words(page, sheet) if same_version else _other_numbers(page, sheet)) or _beyond(sheet):
        return otherwise
    known = {name: value for name, value in vars(verdict).items() if name in Verdict.__dataclass_fields__}
    return PageVerdict(
        **known, written=sheet.date, version=sheet.version, digests=tuple(sheet.digests.items()), compared=same_version
    )


def _other_words(page: str, sheet: ReportSheet) -> Verdict | None:
    """Reject a page whose text is not the one that its certificate makes; None if it is."""
    said, meant = _lines(page), _lines(page_of(sheet))
    if said == meant:
        return None
    entries, proved = dict(_ENTRY.findall(page)), dict(_ENTRY.findall("\n".join(meant)))
    for name, text in proved.items():
        if entries.get(name) != text:
            stands = _short(entries[name]) if name in entries else "nothing"
            return rejected("page_entry_differs", entry=name, said=stands, proved=_short(text))
    pairs = zip_longest(said, meant, fillvalue="")
    number, one, two = next((at, *pair) for at, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return rejected("page_line_differs", number=number, said=_short(one), proved=_short(two))


def _other_numbers(page: str, sheet: ReportSheet) -> Verdict | None:
    """Reject a page of another version whose ε or δ is not that of its certificate; None if both are."""
    claimed, entries = sheet.claimed, _ENTRY.findall(page)
    for name, value in (("epsilon", claimed.epsilon), ("delta", claimed.delta)):
        shown = [text for entry, text in entries if entry == name]
        if len(shown) != 1 or not math.isclose(float(shown[0]), value, rel_tol=1e-9):
            stands = _short(", ".join(shown)) or "nothing"
            return rejected("page_entry_differs", entry=name, said=stands, proved=f"{value:.12g}")
    return None


def _beyond(sheet: ReportSheet) -> Verdict | None:
    """Reject a lower bound, detection rates or a curve that a new computation does not confirm; None if all hold."""
    claimed, given = sheet.claimed, float(sheet.shown["lower_bound"])
    found = lower_bound_for(claimed.run, claimed.delta, claimed.releases, claimed.members).epsilon
    if not math.isclose(given, found, rel_tol=SAME):
        return rejected("page_lower_bound_differs", said=given, found=found)
    if math.isfinite(claimed.epsilon):
        chances = np.array(sheet.shown["detected"], float), np.array(detected(claimed.proved))
        if chances[0].shape != chances[1].shape or not (chances[0] >= chances[1] * (1 - SAME)).all():
            return rejected("page_chances_too_small")
    growth = sheet.shown["growth"]
    if growth is not None and not math.isclose(float(growth["hidden"][-1]), claimed.epsilon, rel_tol=SAME):
        return rejected("page_curve_ends_elsewhere", ends=growth["hidden"][-1], proved=claimed.epsilon)
    return None


def _lines(page: str) -> list[str]:
    """Return the lines of a page, whatever line ends mail or version control have left."""
    return page.lstrip("\ufeff").replace("\r\n", "\n").split("\n")


def _short(line: str) -> str:
    """Return the visible text of a line, or the line itself if nothing of it is visible, shortened."""
    text = unescape(_TAG.sub("", line)).strip() or line.strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


# The frame: its style, and a policy that lets the page load and run nothing.


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
    """Return a page of HTML that needs no network, scripts or forms, with this style alone."""
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


# Words of the planner's form: kinds, and arguments with their units.


KINDS = {
    "logistic": "logistic regression",
    "softmax": "softmax, several classes",
    "ridge": "squared loss (ridge)",
    "huber": "Huber regression",
    "smooth_hinge": "smooth hinge (SVM)",
    "network": "neural network, clipped",
    "general": "another loss, by its properties",
    "full": "full batch: every record at every step",
    "cyclic": "cyclic: one fixed order",
    "shuffled": "shuffled",
    "fixed_size": "random, of fixed size",
    "poisson": "Poisson",
    "poisson_mean": "Poisson, divided by the batch's own size",
    "balls_and_bins": "balls and bins",
    "on_mean_gradient": "on the mean gradient",
    "on_gradient_sum": "on the gradient sum (DP-SGD)",
    "on_iterate": "on the iterate",
    "langevin": "Langevin: √(2·step size) times the noise",
    "unbounded": "none",
    "ball": "on a ball",
    "box": "on a cube",
    "convex_set": "on a convex set",
    "sgd": "SGD",
    "adam": "Adam",
    "other": "another, by name",
    "last": "the last iterate",
    "ema": "a moving average of iterates",
    "average": "the mean of iterates",
}
ARGUMENTS = {
    "feature_norm": ("largest norm of a record’s features", "length"),
    "l2": ("l2 regularisation", "gradient norm per length"),
    "clip": ("clip gradients at", "gradient norm"),
    "classes": ("classes", "count"),
    "pull": ("cap on wrong-class probability", "share, up to 1"),
    "residual_bound": ("largest residual", "unit of the target"),
    "threshold": ("threshold of Huber's loss", "unit of the target"),
    "width": ("width of the rounded corner", "margin"),
    "smoothness": ("smoothness", "gradient norm per length"),
    "strong_convexity": ("strong convexity", "gradient norm per length"),
    "weak_convexity": ("weak convexity", "gradient norm per length"),
    "gradient_sensitivity": ("gradient change if a record is replaced", "gradient norm"),
    "gradient_norm": ("largest norm of a gradient", "gradient norm"),
    "each_epoch": ("a new order each epoch", "yes or no"),
    "last": ("last", "iterates to average, or what to do with leftover records"),
    "radius": ("radius", "length"),
    "side": ("side", "length"),
    "diameter": ("diameter", "length"),
    "dimension": ("parameters of the model", "count"),
    "momentum": ("momentum", "share, below 1"),
    "nesterov": ("Nesterov's momentum", "yes or no"),
    "dampening": ("dampening", "share, below 1"),
    "eps": ("eps, the floor of the denominator", "gradient norm"),
    "decoupled": ("decoupled weight decay (AdamW)", "yes or no"),
    "name": ("name", "text"),
    "decay": ("decay", "share, below 1"),
}


# The notebook card: the claim in full, all else of `report.details()` folded, without alternatives.


def report_html(report: Report) -> str:
    first, *others = claim(report)
    parts = (folded(title, _body(entries)) for title, entries in sections(report))
    return card(alerts(map(str, report.caveats)), headline(first), lines(others), *parts)


def _body(entries: list[str] | list[tuple[str, str]]) -> Html:
    rows = [one for one in entries if isinstance(one, tuple)]
    return table(rows) if rows else bullets(one for one in entries if isinstance(one, str))
