"""Result types of the library: reports, verdicts, selections, plans to forget."""

from lastiterate.accounting.account import RecordReport
from lastiterate.accounting.alternatives import Alternative
from lastiterate.accounting.report import Report
from lastiterate.budget.certificate import BudgetVerdict
from lastiterate.budget.entries import BudgetEntry
from lastiterate.certificate.verdict import PageVerdict, Verdict
from lastiterate.forgetting.certificate import ForgettingVerdict
from lastiterate.forgetting.forget import Forgetting, Removed
from lastiterate.selection.certificate import SelectionVerdict
from lastiterate.selection.select import Selection

__all__ = [
    "Alternative",
    "BudgetEntry",
    "BudgetVerdict",
    "Forgetting",
    "ForgettingVerdict",
    "PageVerdict",
    "RecordReport",
    "Removed",
    "Report",
    "Selection",
    "SelectionVerdict",
    "Verdict",
]


def __dir__() -> list[str]:
    return __all__
