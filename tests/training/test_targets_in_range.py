"""Targets that are infinite in the precision of the products are bad data, and not a step size that is too large."""

from __future__ import annotations

import numpy as np
import pytest

import lastiterate as li
from raising import raises

LOSSES = (li.losses.ridge(feature_norm=1.0, clip=1.0), li.losses.huber(feature_norm=1.0))
FEATURES = np.full((4, 2), 0.5)


def trained(loss: li.Loss, target: float, **precision: object) -> np.ndarray:
    run = li.Run(loss, li.FullBatch(4), 0.5, li.OnMeanGradient(0.1), 3)
    features = FEATURES.astype(precision.pop("features", np.float64))  # type: ignore[call-overload]
    return li.train(run, (features, [1.0, 2.0, 3.0, target]), seed=1, **precision).weights  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
@pytest.mark.parametrize("precision", [{"features": np.float32}, {"dtype": np.float32}], ids=str)
@pytest.mark.parametrize("target", [1e39, -1e39, 1e300])
def test_infinite_in_single_precision(loss: li.Loss, precision: dict[str, object], target: float) -> None:
    with raises("targets_too_large", "targets", kind=li.errors.InvalidInput, dtype="float32"):
        trained(loss, target, **precision)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_finite_in_double_precision(loss: li.Loss) -> None:
    assert np.isfinite(trained(loss, 1e39)).all()
    assert np.isfinite(trained(loss, 1e39, features=np.float32, dtype=np.float64)).all()
