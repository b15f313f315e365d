"""Lower bounds on ε: worst-case losses whose privacy loss is known exactly, and audits of a trainer."""

from lastiterate.auditing.audit import Audit, neighbours_of
from lastiterate.auditing.chain import Chain
from lastiterate.auditing.lower import LowerBound

__all__ = ["Audit", "Chain", "LowerBound", "neighbours_of"]


def __dir__() -> list[str]:
    return __all__
