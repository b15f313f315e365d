"""Runs a Run: samplers, clipping, linear models in numpy. It knows no theorem."""

from lastiterate.algorithms.arithmetic import Arithmetic
from lastiterate.training.train import Trained

__all__ = ["Arithmetic", "Trained"]


def __dir__() -> list[str]:
    return __all__
