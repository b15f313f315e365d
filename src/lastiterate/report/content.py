"""Lines of the report page: the claim from the certificate alone, with every text escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from lastiterate.digits import above
from lastiterate.facts import Basis
from lastiterate.report import english
from lastiterate.report.digests import digest_of
from lastiterate.report.label import NOT_STATED, THEOREMS, Claimed
from lastiterate.report.sheet import RATES, ChartLine, ReportSheet, chart
from lastiterate.report.text import BASES

_PROMISE = "The promises initialled above hold. Nothing about these records was released except what this page names."
_SECTIONS = {"registry": "Registry of deployments", "nist_sp_800_226": "NIST SP 800-226"}
_GRADES = {
    "replayed": "Checked step by step by a small program that shares no code with the search for it.",
    "recomputed": "Checked by evaluating the theorem again from the run.",
}
_NEW = "New in lastiterate, not yet peer-reviewed; its proof is in docs/proofs.md of the source."
_UNTITLED = "Differential privacy report"


def content(sheet: ReportSheet) -> Iterator[str]:
    """Yield the lines of the page, from the claim to the promises, the proof and the theorems tried."""
    claimed = sheet.claimed
    yield f"<h1>{escape(sheet.title or _UNTITLED)}</h1>"
    executed = any(one.basis is Basis.ENFORCED for one in claimed.assumptions)
    yield f'<p class="note" id="status">{"Executed by lastiterate." if executed else "Planned, or executed elsewhere."}</p>'
    yield from _stop(claimed)
    yield _claim(claimed)
    if not claimed.caveats:
        at_one_percent = sheet.shown["detected"][RATES.index(0.01)]
        chance = english.attack(claimed.run.adjacency.name.lower(), claimed.run.user_records, at_one_percent)
        yield f'<p id="chance">{escape(chance)}</p>'
    yield from _rows("What would be claimed" if claimed.caveats else "The claim", _claim_rows(claimed))
    yield from _bounds(sheet)
    yield from _curves(sheet)
    yield from _promises(claimed)
    yield from _signature(claimed)
    yield from _rows("Version, run, model and data", _identity(sheet))
    yield from _checking(claimed)
    yield from _folded("Run", "What was run", _listed(claimed.what_was_run))
    yield from _tried(sheet)
    yield from _label(sheet.label)


def _stop(claimed: Claimed) -> Iterator[str]:
    if claimed.caveats:
        yield '<div class="stop" role="alert"><strong>Do not sign this page.</strong>'
        yield from (f"<p>{escape(one)}</p>" for one in claimed.caveats)
        yield "</div>"


def _claim(claimed: Claimed) -> str:
    """Return the sentence of the claim as HTML, crossed out if nobody may claim it."""
    sentence = f'<span id="claim">{escape(claimed.sentence)}</span>'
    return (
        f'<p class="claim void">Not claimed: {sentence}</p>' if claimed.caveats else f'<p class="claim">{sentence}</p>'
    )


def _claim_rows(claimed: Claimed) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of the claim: the name of an entry, its label and its text."""
    yield "epsilon", "ε, an upper bound", f"{claimed.epsilon:.12g}"
    yield "delta", "δ", f"{claimed.delta:.12g}"
    if claimed.mu is not None:
        yield "mu", "μ of Gaussian differential privacy", f"{claimed.mu:.12g}"
    yield "unit", "Protected", claimed.unit
    yield "neighbours", "Neighbouring data sets", claimed.neighbours
    yield "released", "Released", f"{claimed.run.released.called}, after {claimed.run.steps} steps"
    if claimed.releases:
        yield "checkpoints", "Also released", f"checkpoints after {', '.join(map(str, claimed.releases))} steps"
    yield "theorem", "Theorem", f"{claimed.theorem}: {claimed.citation}"
    grade, new = claimed.certificate["grade"], f" {_NEW}" if claimed.citation.startswith("lastiterate") else ""
    yield "grade", "Proof", f"{_GRADES[grade]}{new}"


def _bounds(sheet: ReportSheet) -> Iterator[str]:
    epsilon, every = sheet.claimed.epsilon, _read(sheet.shown["composition"])
    yield "<h2>Upper and lower bound</h2>"
    yield f"<p>{escape(english.lower_bound(sheet.shown['lower_bound'], epsilon))}</p>"
    if said := english.every_iterate(every, epsilon):
        yield f"<p>{escape(said)}</p>"


def _curves(sheet: ReportSheet) -> Iterator[str]:
    claimed = sheet.claimed
    if not math.isfinite(claimed.epsilon):
        return
    yield '<div class="curves">'
    if sheet.shown["growth"] is not None:
        yield from _growth(claimed, sheet.shown["growth"])
    if not claimed.caveats:
        curves = [
            ChartLine("with this guarantee", "best", RATES, tuple(map(float, sheet.shown["detected"]))),
            ChartLine("by guessing", "guess", (0.0, 1.0), (0.0, 1.0)),
        ]
        title = "An attacker detects at most this share of changed records."
        yield from chart(title, "false positives", "detected, at most", curves)
    yield "</div>"
    if sheet.shown["growth"] is None:
        yield '<p class="note">This page has no curve of ε during training: it was left out, or is unknown.</p>'


def _growth(claimed: Claimed, growth: dict[str, Any]) -> list[str]:
    along = tuple(map(float, growth["along"]))
    best, every = (tuple(map(_read, growth[name])) for name in ("hidden", "released"))
    curves = [
        ChartLine("only what is released", "best", along, best),
        ChartLine("every iterate released", "every", along, every),
    ]
    return chart(f"ε at δ = {claimed.delta:g} during training.", str(growth["unit"]), "ε", curves)


def _promises(claimed: Claimed) -> Iterator[str]:
    """Yield the assumptions by who answers for them, with a box to initial for each promise of the owner."""
    for basis, title in BASES.items():
        if not (facts := [str(one) for one in claimed.assumptions if one.basis is basis]):
            continue
        yield f"<h2>{title}</h2>"
        if basis is not Basis.PROMISED or claimed.caveats:
            yield from _listed(facts)
            continue
        yield "<p>No program can check these. The signer initials each box.</p>"
        yield '<ol class="initialled">'
        for one in facts:
            box = '<span class="box" role="img" aria-label="box for initials"></span>'
            yield f"<li>{box}<span>{escape(one)}</span></li>"
        yield "</ol>"


def _signature(claimed: Claimed) -> Iterator[str]:
    yield '<div class="signature">'
    yield "<h2>Signature</h2>"
    if claimed.caveats:
        yield f"<p><strong>This page cannot be signed:</strong> {escape(claimed.caveats[0])}</p>"
    else:
        yield f"<p>{_PROMISE}</p>"
        yield "<table>"
        yield from (f"<tr><th>{name}</th><td></td></tr>" for name in ("Name and role", "Date and signature"))
        yield "</table>"
    yield "</div>"


def _identity(sheet: ReportSheet) -> Iterator[tuple[str, str, str]]:
    yield "version", "Written by", f"lastiterate {sheet.version}"
    yield "date", "On", sheet.date
    yield "run-digest", "Run, SHA-256", digest_of(sheet.certificate["run"])
    yield "certificate-digest", "Certificate, SHA-256", digest_of(sheet.certificate)
    yield "model-digest", "Released model", sheet.digests.get("model", NOT_STATED)
    yield "data-digest", "Data", sheet.digests.get("data", NOT_STATED)


def _checking(claimed: Claimed) -> Iterator[str]:
    yield "<h2>Check it</h2>"
    if claimed.caveats:
        yield "<p><code>lastiterate verify report.html</code> rejects this page, because of the warning at its top.</p>"
        return
    yield (
        "<p><code>lastiterate verify report.html --run run.toml</code> replays the certificate in this page, and rejects "
        "a page whose text is not what the certificate proves.</p>"
    )
    if claimed.certificate["grade"] == "replayed":
        yield (
            "<p><code>python tools/check_certificate.py report.html</code> checks the proof a second time: one file of "
            "the source of lastiterate, which needs only mpmath and shares no code with the first checker.</p>"
        )
    yield (
        '<p class="note">The certificate proves the claim, for the run and under the assumptions above. The lower bound, '
        "the curve of ε during training and the list of theorems were computed when this page was written. The date, the "
        "digests and the statements in the label come from the owner.</p>"
    )


def _folded(title: str, summary: str, lines: Iterable[str]) -> Iterator[str]:
    """A section that is opened by whoever wants to read it, and printed only then."""
    yield f"<section><h2>{title}</h2>"
    yield f"<details><summary>{summary}</summary>"
    yield from lines
    yield "</details></section>"


def _tried(sheet: ReportSheet) -> Iterator[str]:
    found = {f"{name}: {THEOREMS[name].citation}": above(_read(one), 6) for name, one in sheet.shown["guarantees"]}
    rows = [f'<tr><td class="number">ε = {one}</td><td>{escape(name)}</td></tr>' for name, one in found.items()]
    yield from _folded("All theorems tried", f"{len(rows)} theorems apply", ["<table>", *rows, "</table>"])
    refused = _listed(sheet.claimed.refusals(sheet.shown["refusals"]))
    yield from _folded("Other theorems", "Theorems that do not apply, and why", refused)


def _label(label: dict[str, Any]) -> Iterator[str]:
    yield from _folded("Label", "The fields of public registries and of NIST SP 800-226", _label_rows(label))


def _label_rows(label: dict[str, Any]) -> Iterator[str]:
    for section, groups in label.items():
        if not isinstance(groups, dict):
            continue
        flat = [pair for group, fields in groups.items() for pair in _flat(group, fields)]
        yield f"<h3>{_SECTIONS[section]}</h3>"
        yield "<table>"
        for name, text in flat:
            style = ' class="note"' if text == NOT_STATED else ""
            yield f"<tr><th>{escape(name.replace('_', ' '))}</th><td{style}>{escape(text)}</td></tr>"
        yield "</table>"


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for inside, one in value.items():
            yield from _flat(f"{name}: {inside}", one)
    else:
        yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _rows(title: str, rows: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    yield f"<h2>{title}</h2>"
    yield "<table>"
    yield from (f'<tr><th>{escape(name)}</th><td id="{key}">{escape(text)}</td></tr>' for key, name, text in rows)
    yield "</table>"


def _listed(lines: Iterable[str]) -> Iterator[str]:
    yield "<ul>"
    yield from (f"<li>{escape(line)}</li>" for line in lines)
    yield "</ul>"


def _read(value: float | None) -> float:
    return math.inf if value is None else float(value)
