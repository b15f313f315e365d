"""A data scientist trains a private logistic regression in a scikit-learn pipeline, and hands over a certificate."""

from __future__ import annotations

from steps import Steps, expect, holds, journey

TRAIN = """
import json

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from lastiterate.estimators import EachRow, PrivateLogisticRegression

features, labels = load_breast_cancer(return_X_y=True)
scales = np.array([30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.2, 0.3, 0.1] * 3)  # public: what such cells can measure
train_x, test_x, train_y, test_y = train_test_split(features, labels, test_size=0.3, random_state=0)
model = make_pipeline(
    EachRow(lambda rows: rows / scales),
    Normalizer(),
    PrivateLogisticRegression(epsilon=2.0, delta=1e-5, feature_norm=1.0, classes=[0, 1]),
)
model = clone(model).fit(train_x, train_y)
classifier = model[-1]
classifier.report_.save_certificate("certificate.json")
print(
    json.dumps(
        {
            "epsilon": classifier.report_.epsilon,
            "private": classifier.private_,
            "accuracy": model.score(test_x, test_y),
            "guessing": max(np.mean(test_y), 1 - np.mean(test_y)),
        }
    )
)
"""


def walk(steps: Steps) -> None:
    found = steps.scripted("train.py", TRAIN)
    holds("the model is private at the target", found["private"] and 1.9 < found["epsilon"] <= 2)
    holds("and better than guessing", found["accuracy"] > found["guessing"])
    expect(steps.typed("verify certificate.json"), "accepted: epsilon = ")


if __name__ == "__main__":
    journey("scientist", walk)
