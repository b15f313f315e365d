"""Read whatever holds a certificate, find the checker of its format, and make a verdict of what it answers or raises."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from lastiterate.certificate.certificate import (
    BUDGET_FORMAT,
    FORGETTING_FORMAT,
    FORMAT,
    SELECTION_FORMAT,
    check_run_certificate,
)
from lastiterate.certificate.verdict import Request, Verdict, differences, rejected, told_by
from lastiterate.errors import LastIterateError
from lastiterate.kernel.steps import Refused
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import checked_theorems
from lastiterate.theorems.theorem import Theorem

Checker = Callable[[dict[str, Any], Request], Verdict]
# Each is fetched when a certificate has its format: certificates of budgets and of selections contain others.
CHECKERS: dict[str, Callable[[], Checker]] = {
    FORMAT: lambda: check_run_certificate,
    BUDGET_FORMAT: lambda: import_module("lastiterate.budget.certificate").check_budget_certificate,
    FORGETTING_FORMAT: lambda: import_module("lastiterate.forgetting.certificate").check_forgetting_certificate,
    SELECTION_FORMAT: lambda: import_module("lastiterate.selection.certificate").check_selection_certificate,
}
_NEAR = 1e-6  # of ε: curves that were drawn for other questions are as sharp as that
_OF_THE_CLAIM = ("delta", "unit", "releases")
_OF_THE_CERTIFICATE = ("theorem", "assumptions", "caveats", "run")


def verify(
    certificate: dict[str, Any] | str, run: Run | None = None, theorems: Iterable[Theorem] | None = None
) -> Verdict:
    """Check a certificate (a dictionary, or its JSON), a trained model that holds one, or the HTML of a report.

    A report must agree with the certificate in it. With `run`, the certificate must also be about that run. A certificate by
    a theorem that is not part of the library needs `theorems`, such as [*li.theorems.CATALOGUE, MINE]; the verdict then
    assumes it.
    """
    return verdict_on(certificate, Request(run, theorems=checked_theorems(theorems)))


def verdict_on(certificate: dict[str, Any] | str, question: Request) -> Verdict:
    """Return the verdict on a certificate, a trained model or a report page; whatever cannot be read is rejected."""
    kind = "report page" if isinstance(certificate, str) and is_page(certificate) else "certificate"
    try:
        if kind == "report page":
            from lastiterate.report.page import check_page  # a page holds a certificate, which is checked here

            return check_page(str(certificate), question)
        return check(json.loads(certificate) if isinstance(certificate, str) else certificate, question)
    except Refused as error:
        return rejected(str(error))
    except KeyError as error:
        return rejected("entry_missing", kind=kind, entry=error.args[0])
    except (LastIterateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        return rejected("unreadable", kind=kind, because=told_by(error))
    except (RecursionError, MemoryError):
        return rejected("too_deep", kind=kind)


def is_page(text: str) -> bool:
    """Return whether a text is HTML, as the page of a report is, rather than JSON."""
    return text.lstrip("\ufeff \r\n\t").startswith("<")


def check(content: dict[str, Any], question: Request) -> Verdict:
    """Check a certificate, or a trained model that holds one, by its format; raise an error if it cannot be read."""
    if "format" not in content and "certificate" in content:  # a trained model, as `lastiterate train` writes it
        if otherwise := _misreported(content.get("report"), content["certificate"]):
            return otherwise
        content = content["certificate"]
    given = content["format"]
    if not isinstance(given, str) or given not in CHECKERS:
        return rejected("certificate_format", format=FORMAT)
    return CHECKERS[given]()(content, question)


def _misreported(report: Any, certificate: dict[str, Any]) -> Verdict | None:
    """Reject a report, as in the JSON of a trained model, whose entries are not those of its certificate."""
    if report is None:
        return None
    claim = certificate["claim"]
    if not math.isclose(_finite(report["epsilon"]), _finite(claim["epsilon"]), rel_tol=_NEAR):
        return rejected("report_epsilon_differs", reported=report["epsilon"], certified=claim["epsilon"])
    said = {name: report[name] for name in (*_OF_THE_CLAIM, *_OF_THE_CERTIFICATE)}
    meant = {name: claim[name] for name in _OF_THE_CLAIM} | {name: certificate[name] for name in _OF_THE_CERTIFICATE}
    found = differences(said, meant)
    return rejected("report_differs", differences=found) if found else None


def _finite(epsilon: float | None) -> float:
    """Return ε as a float; null stands for infinity."""
    return math.inf if epsilon is None else float(epsilon)
