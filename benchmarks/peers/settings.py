"""What is measured: the same settings for us and for the peers."""

from __future__ import annotations

import random

DELTA = 1e-5
MULTIPLIER = 1.0
RATE = 0.01
STEPS = (100, 10_000, 1_000_000)
SMALL_DELTA = 1e-14  # at 10,000 steps: where the round-off of an FFT shows
SMALL_DELTA_TASK = "epsilon of 10000, delta 1e-14"

CALIBRATION = {"rate": 0.004, "steps": 2500, "epsilons": (1.0, 8.0)}


def different_steps(count: int) -> list[tuple[float, float]]:
    """(noise multiplier, sampling rate) of `count` different steps, always the same ones."""
    draw = random.Random(2024)
    return [(draw.uniform(0.8, 2.0), draw.uniform(0.001, 0.02)) for _ in range(count)]
