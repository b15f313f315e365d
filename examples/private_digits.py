"""A private classifier of handwritten digits, on data that comes with scikit-learn: accuracy, and what it costs."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from lastiterate.estimators import PrivateLogisticRegression

features, labels = load_digits(return_X_y=True)
train_features, test_features, train_labels, test_labels = train_test_split(
    features, labels, test_size=0.2, random_state=0, stratify=labels
)
classifier = PrivateLogisticRegression(epsilon=4.0, delta=1e-5, feature_norm=1.0, classes=np.arange(10))
model = make_pipeline(Normalizer(), classifier)  # each row by itself, so nothing is learnt from others
model.fit(train_features, train_labels)

report, plan = classifier.report_, classifier.plan_
print(f"test accuracy {model.score(test_features, test_labels):.3f}, for one record in {len(train_labels)}:")
print(f"epsilon = {report.epsilon:.4g} at delta = {report.delta:g}, centring and scaling of the features included")
print(plan)
