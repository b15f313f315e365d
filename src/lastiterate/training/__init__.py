"""Runs a Run: samplers, clipping, linear models in numpy. It knows no theorem."""

from lastiterate.runs.arithmetic import Arithmetic
from lastiterate.training.parquet import ParquetRecords
from lastiterate.training.plans.plans import PlannedRun, Plans
from lastiterate.training.sources import RecordSource
from lastiterate.training.trained import Trained

__all__ = ["Arithmetic", "ParquetRecords", "PlannedRun", "Plans", "RecordSource", "Trained"]


def __dir__() -> list[str]:
    return __all__
