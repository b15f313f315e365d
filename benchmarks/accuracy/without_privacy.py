"""What a linear model of scikit-learn reaches without privacy."""

from __future__ import annotations

from benchmarks.accuracy.datasets import Dataset
from benchmarks.accuracy.rows import Method

NAME = "no privacy"
# Roughly the best inverse regularisation, by accuracy on parts of the training data held out.
INVERSE_REGULARISATION = {"breast-cancer": 100.0, "digits": 100.0, "adult": 10.0, "mnist": 10.0}


def without_privacy() -> Method:
    return Method(NAME, None, _settings, _score, epsilons=[None], random=False)


def _settings(name: str, epsilon: float | None) -> str:
    return f"scikit-learn LogisticRegression, C {INVERSE_REGULARISATION[name]:g}"


def _score(data: Dataset, epsilon: float | None, seed: int) -> float:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=INVERSE_REGULARISATION[data.name], max_iter=5000)
    model.fit(data.train_features, data.train_labels)
    return float(model.score(data.test_features, data.test_labels))
