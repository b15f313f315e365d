"""The trade-off curve as an attacker's chance: how often a record is detected at most, for each rate of false alarms."""

from __future__ import annotations

from typing import Any

import numpy as np

from lastiterate.accounting.detection import detection_rates
from lastiterate.accounting.report import Report

_FINE = np.concatenate([[0.0, 1e-4, 1e-3, 0.003], np.arange(0.01, 0.2, 0.01), np.linspace(0.2, 1.0, 33)])
_COARSE = np.array([0.0, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0])


def attack(report: Report, *, fine: bool = True) -> dict[str, Any]:
    """Both as shares of 1: `fine`, or at a few rates where each takes long."""
    rates = _FINE if fine else _COARSE
    found = np.broadcast_to(detection_rates(report, rates), rates.shape)
    return {"false_positive_rates": rates.tolist(), "detection_rates": found.tolist()}
