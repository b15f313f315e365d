"""What is proved about the last iterate: one module per paper, one catalogue."""

from lastiterate.runs.process import Process
from lastiterate.theorems.catalogue import ALL, CATALOGUE, PAPERS
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import Assumption
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem

__all__ = ["ALL", "CATALOGUE", "PAPERS", "Assumption", "Evidence", "Guarantee", "Inapplicable", "Process", "Theorem"]


def __dir__() -> list[str]:
    return __all__
