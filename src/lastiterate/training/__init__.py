"""Runs a Run: samplers, clipping, linear models in numpy. It knows no theorem."""

from lastiterate.algorithms.arithmetic import Arithmetic
from lastiterate.training.train import Trained, train

__all__ = ["Arithmetic", "Trained", "train"]


def __dir__() -> list[str]:
    return __all__
