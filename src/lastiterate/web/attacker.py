"""The trade-off curve as an attacker's chance: how often a record is detected at most, for each rate of false alarms."""

from __future__ import annotations

from typing import Any

import numpy as np

from lastiterate.accounting.detection import detection_rates
from lastiterate.accounting.report import Report

_RATES = np.concatenate([[0.0, 1e-4, 1e-3, 0.003], np.arange(0.01, 0.2, 0.01), np.linspace(0.2, 1.0, 33)])


def attack(report: Report) -> dict[str, Any]:
    """Both as shares of 1."""
    found = np.broadcast_to(detection_rates(report.best._proved, _RATES), _RATES.shape)
    return {"false_positive_rates": _RATES.tolist(), "detection_rates": found.tolist()}
