"""Whether a report page agrees with its certificate: a page of this version must be the very page its certificate makes."""

from __future__ import annotations

import math
import re
from html import unescape
from importlib.metadata import version
from itertools import zip_longest

import numpy as np

from lastiterate.accounting.certificate import checked
from lastiterate.accounting.sandwich import lower_bound_for
from lastiterate.accounting.verdict import PageVerdict, Verdict, rejected
from lastiterate.algorithms.run import Run
from lastiterate.report.page_file import page_of, sheet_in
from lastiterate.report.sheet import SAME, ReportSheet, detected

_ENTRY = re.compile(r'id="([\w-]+)">([^<]*)<')
_TAG = re.compile(r"<[^>]*>")
_LONGEST = 160


def checked_page(page: str, run: Run | None, called: str) -> Verdict:
    """The certificate first, then what the page shows."""
    sheet = sheet_in(page)
    verdict = checked(sheet.certificate, run, called)
    if not verdict.accepted:
        return verdict
    if type(verdict) is not Verdict:
        return rejected("its certificate is not that of a run")
    same_version = sheet.version == version("lastiterate")
    if reason := (_other_words(page, sheet) if same_version else _other_numbers(page, sheet)) or _beyond(sheet):
        return rejected(reason)
    known = {name: value for name, value in vars(verdict).items() if name in Verdict.__dataclass_fields__}
    return PageVerdict(
        **known, written=sheet.date, version=sheet.version, digests=tuple(sheet.digests.items()), compared=same_version
    )


def _other_words(page: str, sheet: ReportSheet) -> str:
    """What stands on the page and is not what its certificate makes."""
    said, meant = _lines(page), _lines(page_of(sheet))
    if said == meant:
        return ""
    entries, proved = dict(_ENTRY.findall(page)), dict(_ENTRY.findall("\n".join(meant)))
    for name, text in proved.items():
        if entries.get(name) != text:
            stands = _short(entries[name]) if name in entries else "nothing"
            return f"the page says {name} = {stands}, its certificate proves {_short(text)}"
    pairs = zip_longest(said, meant, fillvalue="")
    number, one, two = next((at, *pair) for at, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return f"line {number} of the page says “{_short(one)}”, its certificate makes “{_short(two)}”"


def _other_numbers(page: str, sheet: ReportSheet) -> str:
    """Which number on a page of another version is not that of its certificate."""
    claimed, entries = sheet.claimed, _ENTRY.findall(page)
    for name, value in (("epsilon", claimed.epsilon), ("delta", claimed.delta)):
        shown = [text for entry, text in entries if entry == name]
        if len(shown) != 1 or not math.isclose(float(shown[0]), value, rel_tol=1e-9):
            return (
                f"the page says {name} = {_short(', '.join(shown)) or 'nothing'}, its certificate proves {value:.12g}"
            )
    return ""


def _beyond(sheet: ReportSheet) -> str:
    """What is shown beside the claim and is not so: the lower bound and the attacker's chances are computed again."""
    claimed, given = sheet.claimed, float(sheet.shown["lower_bound"])
    found = lower_bound_for(claimed.run, claimed.delta, claimed.releases, claimed.members).epsilon
    if not math.isclose(given, found, rel_tol=SAME):
        return f"the page says that epsilon is at least {given:.6g}, its run gives {found:.6g}"
    if math.isfinite(claimed.epsilon):
        chances = np.array(sheet.shown["detected"], float), np.array(detected(claimed.proved))
        if chances[0].shape != chances[1].shape or not (chances[0] >= chances[1] * (1 - SAME)).all():
            return "the page gives an attacker smaller chances than its certificate proves"
    growth = sheet.shown["growth"]
    if growth is not None and not math.isclose(float(growth["hidden"][-1]), claimed.epsilon, rel_tol=SAME):
        ends = growth["hidden"][-1]
        return f"the curve of the page ends at epsilon = {ends}, its certificate proves {claimed.epsilon:.6g}"
    return ""


def _lines(page: str) -> list[str]:
    """Mail and version control may have changed how lines end."""
    return page.lstrip("\ufeff").replace("\r\n", "\n").split("\n")


def _short(line: str) -> str:
    """What a reader sees of it; all of it where a reader sees nothing."""
    text = unescape(_TAG.sub("", line)).strip() or line.strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
