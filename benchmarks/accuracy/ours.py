"""Our estimators in the tables: given ε, δ and public bounds, with nothing tuned."""

from __future__ import annotations

import warnings
from typing import Any

from benchmarks.accuracy.datasets import Dataset
from benchmarks.accuracy.rows import DELTA, REPLACED, ZEROED, Method
from lastiterate.curves.adjacency import REPLACE_ONE, ZERO_OUT, Adjacency
from lastiterate.estimators import PrivateLinearRegression, PrivateLogisticRegression

NAME = "lastiterate"


def our_methods() -> list[Method]:
    return [_method(ZEROED, ZERO_OUT), _method(REPLACED, REPLACE_ONE)]


def _method(name: str, adjacency: Adjacency) -> Method:
    def score(data: Dataset, epsilon: float | None, seed: int) -> float:
        model = _model(data, epsilon=epsilon, delta=DELTA, adjacency=adjacency, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a seed, so that the table can be made again
            model.fit(data.train_features, data.train_labels)
        return float(model.score(data.test_features, data.test_labels))

    return Method(NAME, name, lambda dataset, epsilon: "nothing tuned", score)


def _model(data: Dataset, **given: Any) -> Any:
    if data.classes:
        return PrivateLogisticRegression(feature_norm=data.feature_norm, classes=range(data.classes), **given)
    return PrivateLinearRegression(feature_norm=data.feature_norm, target_bound=data.target_bound, **given)
