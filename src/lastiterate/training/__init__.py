"""Runs a Run: samplers, clipping, linear models in numpy. It knows no theorem."""

from lastiterate.runs.noise import Arithmetic
from lastiterate.training.data import RecordSource
from lastiterate.training.parquet import ParquetRecords
from lastiterate.training.plans.planning import PlannedRun, Plans
from lastiterate.training.train import Trained

__all__ = ["Arithmetic", "ParquetRecords", "PlannedRun", "Plans", "RecordSource", "Trained"]


def __dir__() -> list[str]:
    return __all__
