"""Account, calibrate, certify, report."""

from lastiterate.accounting.certificate import Verdict
from lastiterate.accounting.each import RecordReport
from lastiterate.accounting.report import Report
from lastiterate.accounting.sandwich import Sandwich

__all__ = ["RecordReport", "Report", "Sandwich", "Verdict"]


def __dir__() -> list[str]:
    return __all__
