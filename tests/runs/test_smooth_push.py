"""The constants of prepayment, by loss: those of the table in docs/new.md, worked out there and written down again here."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.kernel.prepaid import Smooth

NORM, STEP_SIZE, BATCH = 2.0, 0.01, 10
PAGE = Path(__file__).parents[2] / "docs" / "new.md"
R2 = NORM**2
LIMITED = 0.7 * math.sqrt(1 + 1 / 4) * NORM
# The row of the table, the loss, and G, M, ℓ, k.
ROWS = [
    ("logistic", li.losses.logistic(feature_norm=NORM), NORM, R2 / 4, NORM / 8, 2),
    ("logistic, clipped", li.losses.logistic(feature_norm=NORM, clip=0.5), 0.5, R2 / 4, R2 / 8 / 0.5, 2),
    (
        "logistic, K classes",
        li.losses.logistic(feature_norm=NORM, clip=0.5, classes=10),
        0.5,
        R2 / 4,
        R2 / 8 / 0.5,
        20,
    ),
    ("Huber", li.losses.huber(feature_norm=NORM, threshold=0.3), 0.3 * NORM, R2, NORM / 0.6, 2),
    ("squared error", li.losses.ridge(feature_norm=NORM, clip=0.5), 0.5, R2, R2 / 2 / 0.5, 2),
    ("smoothed hinge", li.losses.smooth_hinge(feature_norm=NORM, width=0.4), NORM, R2 / 0.4, NORM / 0.8, 2),
    (
        "softmax, not clipped",
        li.losses.softmax(feature_norm=NORM, classes=10),
        2**0.5 * NORM,
        R2 / 2,
        NORM / (4 * 2**0.5),
        18,
    ),
    (
        "softmax, pull limited",
        li.losses.softmax(feature_norm=NORM, classes=10, pull=0.7),
        LIMITED,
        R2 / 2,
        R2 / 2 / (2 * LIMITED),
        18,
    ),
]


def smooth_and_sensitivity(loss: li.losses.Loss, dimension: int | None = None) -> tuple[Smooth, float]:
    batches, domain = li.Cyclic(10 * BATCH, BATCH), li.Unbounded(dimension=dimension)
    process = li.Run(loss, batches, STEP_SIZE, li.OnMeanGradient(std=0.1), 20, domain).process
    assert isinstance(process.smooth, Smooth)
    return process.smooth, float(process.sensitivity[0])


@pytest.mark.parametrize(("row", "loss", "bound", "smoothness", "turning", "rank"), ROWS, ids=[row[0] for row in ROWS])
def test_linear_models(
    row: str, loss: li.losses.Loss, bound: float, smoothness: float, turning: float, rank: int
) -> None:
    assert f"\n| {row}" in PAGE.read_text()
    found, sensitivity = smooth_and_sensitivity(loss)
    assert found.movement[0] == pytest.approx(STEP_SIZE * bound)
    assert sensitivity == pytest.approx(2 * STEP_SIZE * bound / BATCH)
    assert found.center[0] == pytest.approx(1 - STEP_SIZE * smoothness / 2)
    assert found.radius[0] == pytest.approx(STEP_SIZE * smoothness / 2)
    assert found.turning == pytest.approx(turning)
    assert found.rank == rank


def test_clipped_networks() -> None:
    assert "\n| clipped, not a linear model" in PAGE.read_text()
    found, _ = smooth_and_sensitivity(li.losses.network(clip=0.5, smoothness=3.0), dimension=50)
    assert found.movement[0] == pytest.approx(STEP_SIZE * 0.5)
    assert found.center[0] == 1
    assert found.radius[0] == pytest.approx(STEP_SIZE * 3.0)
    assert found.turning == pytest.approx(3.0 / 0.5)
    assert found.rank == 50
