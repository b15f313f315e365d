"""What stands on the page, line by line. Everything about the claim comes from the certificate; every text is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from lastiterate.accounting.signed.charts import ChartLine, chart
from lastiterate.accounting.signed.claimed import THEOREMS, Claimed
from lastiterate.accounting.signed.digests import digest_of
from lastiterate.accounting.signed.label import NOT_STATED
from lastiterate.accounting.signed.sheet import ReportSheet
from lastiterate.digits import above, below

_RATES = (0.0, 0.001, 0.002, 0.005, *(count / 100 for count in range(1, 100)), 1.0)
_PROMISE = (
    "The assumptions initialled above hold. Nothing about these records was released except what this page names."
)
_SECTIONS = {"registry": "Registry of deployments", "nist_sp_800_226": "NIST SP 800-226"}
_GRADES = {
    "replayed": "The certificate holds a schedule that a small checker replays.",
    "recomputed": "The certificate names the theorem, which is evaluated again from the run.",
}


def content(sheet: ReportSheet) -> Iterator[str]:
    """From the claim down to the assumptions and the theorems tried."""
    claimed = sheet.claimed
    yield "<h1>Differential privacy report</h1>"
    yield from _stop(claimed)
    yield _sentence(claimed)
    if not claimed.caveats:
        yield f'<p id="chance">{escape(claimed.chance)}</p>'
    yield from _rows("What would be claimed" if claimed.caveats else "The claim", _claim(claimed))
    yield from _section("Run", claimed.what_was_run)
    yield from _sandwich(sheet)
    yield from _curves(sheet)
    yield from _assumptions(claimed)
    yield from _signature(claimed)
    yield from _rows("Version, run, model and data", _identity(sheet))
    yield from _checking(claimed)
    yield from _tried(sheet)
    yield from _label(sheet.label)


def _stop(claimed: Claimed) -> Iterator[str]:
    if claimed.caveats:
        yield '<div class="stop" role="alert"><strong>Do not sign this page.</strong>'
        yield from (f"<p>{escape(one)}</p>" for one in claimed.caveats)
        yield "</div>"


def _sentence(claimed: Claimed) -> str:
    """Crossed out where nobody may claim it."""
    before, epsilon, after = map(escape, claimed.sentence)
    sentence = f'<span id="claim">{before}<b id="epsilon">{epsilon}</b>{after}</span>'
    return (
        f'<p class="claim void">Not claimed: {sentence}</p>' if claimed.caveats else f'<p class="claim">{sentence}</p>'
    )


def _claim(claimed: Claimed) -> Iterator[tuple[str, str, str]]:
    """The name of an entry, what stands before it, and what it says."""
    yield "exact-epsilon", "ε, an upper bound", f"{claimed.epsilon:.12g}"
    yield "delta", "δ", f"{claimed.delta:g}"
    if claimed.mu is not None:
        yield "mu", "μ of Gaussian differential privacy", f"{claimed.mu:.12g}"
    yield "adjacency", "Neighbouring data sets", claimed.certificate["claim"]["adjacency"]
    yield "neighbours", "Definition", claimed.neighbours
    yield "released", "Released", f"{claimed.run.released.called}, after {claimed.run.steps} steps"
    if places := claimed.certificate["claim"]["releases"]:
        yield "checkpoints", "Checkpoints that are released as well", f"after {', '.join(map(str, places))} steps"
    yield "theorem", "Theorem", f"{claimed.theorem}: {claimed.citation}"
    grade = claimed.certificate["grade"]
    yield "grade", "Proof", f"{grade}. {_GRADES[grade]}"


def _sandwich(sheet: ReportSheet) -> Iterator[str]:
    claimed, lower = sheet.claimed, sheet.shown["lower_bound"]
    yield "<h2>Upper and lower bound</h2>"
    if lower["epsilon"] > 0:
        ratio = claimed.epsilon / lower["epsilon"]
        close = "so this ε is exact" if ratio < 1 + 1e-6 else f"so this ε is at most {above(ratio, 3)} times too large"
        yield (
            f"<p>Upper bound: ε = {above(claimed.epsilon, 6)}. Lower bound: an allowed loss exists with "
            f"ε ≥ {below(lower['epsilon'], 6)}, {close}. Worst case found: {escape(lower['instance'])}.</p>"
        )
    else:
        yield f"<p>Upper bound: ε = {above(claimed.epsilon, 6)}. Lower bound: none is known at this δ.</p>"
    composed = sheet.shown["composition"]
    if composed is not None:
        yield f"<p>Releasing every iterate would give ε = {above(composed)}.</p>"


def _curves(sheet: ReportSheet) -> Iterator[str]:
    claimed = sheet.claimed
    if not math.isfinite(claimed.epsilon):
        return
    yield '<div class="curves">'
    if sheet.shown["growth"] is not None:
        yield from _growth(claimed, sheet.shown["growth"])
    if not claimed.caveats:
        yield from _chances(claimed)
    yield "</div>"
    if sheet.shown["growth"] is None:
        yield '<p class="note">This page has no curve of ε during training: it was left out, or is unknown.</p>'


def _chances(claimed: Claimed) -> list[str]:
    curves = [
        ChartLine("with this guarantee", "best", _RATES, tuple(claimed.detected(rate) for rate in _RATES)),
        ChartLine("by guessing", "guess", (0.0, 1.0), (0.0, 1.0)),
    ]
    title = "An attacker detects at most this share of changed records."
    return chart(title, "false positives", "detected, at most", curves)


def _growth(claimed: Claimed, growth: dict[str, Any]) -> list[str]:
    along = tuple(map(float, growth["along"]))
    best, every = (tuple(map(_read, growth[name])) for name in ("hidden", "released"))
    curves = [
        ChartLine("only what is released", "best", along, best),
        ChartLine("every iterate released", "every", along, every),
    ]
    return chart(f"ε at δ = {claimed.delta:g} during training.", str(growth["unit"]), "ε", curves)


def _assumptions(claimed: Claimed) -> Iterator[str]:
    yield "<h2>Assumptions you must guarantee</h2>"
    if claimed.caveats:
        yield from _listed(claimed.assumptions)
        return
    yield "<p>No program can check these. The signer initials each box.</p>"
    yield '<ol class="initialled">'
    for one in claimed.assumptions:
        yield f'<li><span class="box" role="img" aria-label="box for initials"></span><span>{escape(one)}</span></li>'
    yield "</ol>"


def _signature(claimed: Claimed) -> Iterator[str]:
    yield '<div class="signature">'
    yield "<h2>Signature</h2>"
    if claimed.caveats:
        yield f"<p><strong>This page cannot be signed:</strong> {escape(claimed.caveats[0])}</p>"
    else:
        yield f"<p>{_PROMISE}</p>"
        yield "<table>"
        yield from (f"<tr><th>{name}</th><td></td></tr>" for name in ("Name", "Role", "Date", "Signature"))
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


def _tried(sheet: ReportSheet) -> Iterator[str]:
    claimed = sheet.claimed
    yield "<section><h2>All theorems tried</h2>"
    yield f"<details><summary>{len(sheet.shown['guarantees'])} theorems apply</summary>"
    yield "<table>"
    for name, epsilon in sheet.shown["guarantees"]:
        found, cited = "∞" if epsilon is None else f"{epsilon:.6g}", f"{name}: {THEOREMS[name].citation}"
        yield f'<tr><td class="number">ε = {found}</td><td>{escape(cited)}</td></tr>'
    yield "</table></details>"
    yield "<details><summary>Theorems that do not apply, and why</summary>"
    yield from _listed(claimed.refusals(sheet.shown["refusals"]))
    yield "</details></section>"


def _label(label: dict[str, Any]) -> Iterator[str]:
    yield "<section><h2>Label</h2>"
    yield "<details><summary>The fields of public registries and of NIST SP 800-226</summary>"
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
    yield "</details></section>"


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


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<h2>{title}</h2>"
    yield from _listed(lines)


def _listed(lines: Iterable[str]) -> Iterator[str]:
    yield "<ul>"
    yield from (f"<li>{escape(line)}</li>" for line in lines)
    yield "</ul>"


def _read(value: float | None) -> float:
    return math.inf if value is None else float(value)
