"""Account, calibrate, certify, report."""

from lastiterate.accounting.account import account
from lastiterate.accounting.calibrate import NOISE, STEPS, calibrate
from lastiterate.accounting.certificate import Verdict, verify
from lastiterate.accounting.each import RecordReport, account_each
from lastiterate.accounting.report import Report
from lastiterate.accounting.sandwich import Sandwich, lower_bound

__all__ = [
    "NOISE",
    "STEPS",
    "RecordReport",
    "Report",
    "Sandwich",
    "Verdict",
    "account",
    "account_each",
    "calibrate",
    "lower_bound",
    "verify",
]


def __dir__() -> list[str]:
    return __all__
