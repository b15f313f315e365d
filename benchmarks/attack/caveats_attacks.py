"""Ways by which a guarantee once lost what was known to be wrong with it, and fits that were not seen to be several."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.attack.attacks import Shown, refused

DELTA = 1e-5
RUN = li.Run(
    li.losses.logistic(feature_norm=1.0, l2=0.1),
    li.Cyclic(records=40, batch_size=10),
    0.5,
    li.OnMeanGradient(std=0.1),
    12,
    adjacency=li.ZERO_OUT,
)


def laundered_seeds() -> list[Shown]:
    """A seeded training, by way of a part of its report."""
    data = np.eye(40, 3), np.where(np.arange(40) % 2, 1, -1)
    report = li.train(RUN, data, seed=0).report(DELTA)
    room = li.adapters.dp_accounting
    ways: dict[str, Callable[[], Any]] = {
        "compose report.under(...)": lambda: li.compose([report.under(li.REPLACE_ONE)]),
        "compose report.guarantees[0]": lambda: li.compose([report.guarantees[0]]),
        "compose report.notion": lambda: li.compose([report.notion]),
        "spend report.best.notion": lambda: li.Budget(99.0, DELTA, li.ZERO_OUT).spend(report.best.notion, "a model"),
        "event_of": lambda: room.event_of(report),
        "privacy_loss_distribution": lambda: room.privacy_loss_distribution(report),
    }
    return [refused(f"a seeded report: {name}", call, "caveat") for name, call in ways.items()]


def unseen_fits() -> list[Shown]:
    """Several models on the same records, or on records that were looked at."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    from lastiterate.estimators import PrivateLinearRegression

    rows = np.random.default_rng(0).normal(size=(200, 3))
    one = PrivateLinearRegression(1.0, DELTA, feature_norm=20.0, target_bound=5.0)
    centred = FunctionTransformer(lambda table: table - table.mean(axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = {
            "MultiOutputRegressor": MultiOutputRegressor(one).fit(rows, rows[:, :2]).estimators_[0],
            "TransformedTargetRegressor": TransformedTargetRegressor(one, transformer=StandardScaler())
            .fit(rows, rows[:, 0])
            .regressor_,
            "FunctionTransformer of all rows": make_pipeline(centred, one).fit(rows, rows[:, 0])[-1],
        }
    return [
        Shown(f"a fit inside {name}", "private_ = False", f"private_ = {model.private_}", not model.private_)
        for name, model in fitted.items()
    ]


CAVEATS: tuple[Callable[[], list[Shown]], ...] = (laundered_seeds, unseen_fits)
