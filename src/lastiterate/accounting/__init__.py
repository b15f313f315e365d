"""Account, calibrate, certify, report."""

from lastiterate.accounting.alternatives import Alternative
from lastiterate.accounting.budget_certificate import BudgetVerdict
from lastiterate.accounting.budget_entry import BudgetEntry
from lastiterate.accounting.each import RecordReport
from lastiterate.accounting.forgetting_certificate import ForgettingVerdict
from lastiterate.accounting.forgotten import Forgetting, Removed
from lastiterate.accounting.report import Report
from lastiterate.accounting.select import Selection
from lastiterate.accounting.selection_certificate import SelectionVerdict
from lastiterate.accounting.verdict import PageVerdict, Verdict

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
