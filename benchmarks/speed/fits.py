"""`python -m benchmarks.speed.fits`: how long a private logistic regression takes to fit, at ε = 1, zero-out.

Calibration included, in a process that has fitted a small model before. The data are those of `make accuracy`.
"""

from __future__ import annotations

import statistics
import time
import warnings

import lastiterate as li
from benchmarks.accuracy import datasets
from benchmarks.accuracy.rows import DELTA
from lastiterate.estimators import PrivateLogisticRegression

REPEATS = {"breast-cancer": 5, "digits": 5, "adult": 3, "mnist": 1}


def main() -> None:
    _fitted("breast-cancer", epsilon=2.0)
    print("data set        records  features  classes   wall s    CPU s")
    for name in filter(datasets.available, datasets.NAMES):
        times = [_fitted(name, epsilon=1.0 + 1e-6 * place) for place in range(REPEATS[name])]  # each is calibrated anew
        wall, cpu = (statistics.median(part) for part in zip(*times, strict=True))
        data = datasets.load(name)
        records, features = data.train_features.shape
        print(f"{name:14} {records:8} {features:9} {data.classes:8} {wall:8.2f} {cpu:8.2f}", flush=True)


def _fitted(name: str, epsilon: float) -> tuple[float, float]:
    data = datasets.load(name)
    model = PrivateLogisticRegression(
        epsilon, DELTA, feature_norm=1.0, classes=range(data.classes), adjacency=li.ZERO_OUT
    )
    begin, used = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.train_features, data.train_labels)
    return time.perf_counter() - begin, time.process_time() - used


if __name__ == "__main__":
    main()
