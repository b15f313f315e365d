"""Whether a report page agrees with its certificate: it must be the very page that its certificate makes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import unescape
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

from lastiterate.accounting.certificate import checked
from lastiterate.accounting.sandwich import lower_bound_for
from lastiterate.accounting.signed.html import page_of, sheet_in
from lastiterate.accounting.signed.sheet import SAME, ReportSheet
from lastiterate.accounting.verdict import Verdict, rejected
from lastiterate.algorithms.run import Run

_ENTRY = re.compile(r'id="([\w-]+)">([^<]*)<')
_TAG = re.compile(r"<[^>]*>")
_LONGEST = 160


@dataclass(frozen=True, repr=False)
class PageVerdict(Verdict):
    """The verdict on a report page, with its owner's statements: its date (`written`), `version` and `digests`."""

    written: str = ""
    version: str = ""
    digests: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{super().__str__()}; the page says the same" if self.accepted else super().__str__()

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "digests": dict(self.digests)}


def checked_page(page: str, run: Run | None, called: str) -> Verdict:
    """The certificate first, then every line of the page."""
    sheet = sheet_in(page)
    verdict = checked(sheet.certificate, run, called)
    if not verdict.accepted:
        return verdict
    if type(verdict) is not Verdict:
        return rejected("its certificate is not that of a run")
    if reason := _otherwise(page, sheet) or _beyond(sheet):
        return rejected(reason)
    known = {name: value for name, value in vars(verdict).items() if name in Verdict.__dataclass_fields__}
    return PageVerdict(**known, written=sheet.date, version=sheet.version, digests=tuple(sheet.digests.items()))


def _otherwise(page: str, sheet: ReportSheet) -> str:
    """What stands on the page and is not what its certificate makes."""
    said, meant = _lines(page), _lines(page_of(sheet))
    if said == meant:
        return ""
    of_another = "" if sheet.version == version("lastiterate") else f" (it was written by lastiterate {sheet.version})"
    entries, proved = dict(_ENTRY.findall(page)), dict(_ENTRY.findall("\n".join(meant)))
    for name, text in proved.items():
        if entries.get(name) != text:
            stands = _short(entries[name]) if name in entries else "nothing"
            return f"the page says {name} = {stands}, its certificate proves {_short(text)}{of_another}"
    pairs = zip_longest(said, meant, fillvalue="")
    number, one, two = next((at, *pair) for at, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return f"line {number} of the page says “{_short(one)}”, its certificate makes “{_short(two)}”{of_another}"


def _beyond(sheet: ReportSheet) -> str:
    """What is shown beside the claim and is not so: the lower bound is computed again."""
    epsilon, given = sheet.claimed.epsilon, sheet.shown["lower_bound"]
    claimed = sheet.claimed
    found = lower_bound_for(claimed.run, claimed.delta, sheet.certificate["claim"]["releases"], claimed.members)
    if not math.isclose(float(given["epsilon"]), found.epsilon, rel_tol=SAME):
        return f"the page says that epsilon is at least {given['epsilon']:.6g}, its run gives {found.epsilon:.6g}"
    if given["instance"] != found.instance:
        return (
            f"the page says of its lower bound “{_short(given['instance'])}”, its run gives “{_short(found.instance)}”"
        )
    growth = sheet.shown["growth"]
    if growth is not None and not math.isclose(float(growth["hidden"][-1]), epsilon, rel_tol=SAME):
        return f"the curve of the page ends at epsilon = {growth['hidden'][-1]}, its certificate proves {epsilon:.6g}"
    return ""


def _lines(page: str) -> list[str]:
    """Mail and version control may have changed how lines end."""
    return page.lstrip("\ufeff").replace("\r\n", "\n").split("\n")


def _short(line: str) -> str:
    """What a reader sees of it; all of it where a reader sees nothing."""
    text = unescape(_TAG.sub("", line)).strip() or line.strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
