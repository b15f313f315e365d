"""Whether a report page agrees with its certificate: a page of this version must be the very page its certificate makes."""

from __future__ import annotations

import math
import re
from html import unescape
from importlib.metadata import version
from itertools import zip_longest

import numpy as np

from lastiterate.accounting.certificate import checked
from lastiterate.accounting.lower_bound import lower_bound_for
from lastiterate.accounting.verdict import PageVerdict, Verdict, rejected
from lastiterate.report.page_file import page_of, sheet_in
from lastiterate.report.sheet import SAME, ReportSheet, detected
from lastiterate.runs.run import Run

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
        return rejected("page_not_of_run")
    same_version = sheet.version == version("lastiterate")
    if otherwise := (_other_words(page, sheet) if same_version else _other_numbers(page, sheet)) or _beyond(sheet):
        return otherwise
    known = {name: value for name, value in vars(verdict).items() if name in Verdict.__dataclass_fields__}
    return PageVerdict(
        **known, written=sheet.date, version=sheet.version, digests=tuple(sheet.digests.items()), compared=same_version
    )


def _other_words(page: str, sheet: ReportSheet) -> Verdict | None:
    """What stands on the page and is not what its certificate makes."""
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
    """Which number on a page of another version is not that of its certificate."""
    claimed, entries = sheet.claimed, _ENTRY.findall(page)
    for name, value in (("epsilon", claimed.epsilon), ("delta", claimed.delta)):
        shown = [text for entry, text in entries if entry == name]
        if len(shown) != 1 or not math.isclose(float(shown[0]), value, rel_tol=1e-9):
            stands = _short(", ".join(shown)) or "nothing"
            return rejected("page_entry_differs", entry=name, said=stands, proved=f"{value:.12g}")
    return None


def _beyond(sheet: ReportSheet) -> Verdict | None:
    """What is shown beside the claim and is not so: the lower bound and the attacker's chances are computed again."""
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
    """Mail and version control may have changed how lines end."""
    return page.lstrip("\ufeff").replace("\r\n", "\n").split("\n")


def _short(line: str) -> str:
    """What a reader sees of it; all of it where a reader sees nothing."""
    text = unescape(_TAG.sub("", line)).strip() or line.strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
