"""`python -m benchmarks.speed.plans`: how long `li.plan` takes, and what it says of training times beside what they are."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

import lastiterate as li
from benchmarks.timing import measured

SIZES = ((50_000, 20, 1), (5_000, 200, 1), (5_000, 50, 10))
REPEATS = 3


def main() -> None:
    print("records  features  classes   li.plan  plan                       said  trained  ratio")
    for records, features, classes in SIZES:
        plans = measured(partial(_planned, records, features, classes), REPEATS, clock=time.perf_counter)
        for place, one in enumerate(plans["value"]):
            data = _data(one.run.batches.records, features, classes)
            train = partial(li.train, data=data, classes=classes if classes > 1 else None)
            training = measured(train, REPEATS, prepare=one.run.with_noise, clock=time.perf_counter)["seconds"]
            head = f"{records:7}  {features:8}  {classes:7}  {plans['seconds']:6.2f} s" if not place else " " * 38
            ratio = training / one.seconds
            print(
                f"{head}  {one.settings.way.called:25}  {one.seconds:4.2f}  {training:7.2f}  {ratio:5.2f}", flush=True
            )


def _planned(records: int, features: int, classes: int, factor: float) -> li.training.Plans:
    logistic, softmax = li.losses.logistic, li.losses.softmax
    loss = softmax(feature_norm=1.0, classes=classes) if classes > 1 else logistic(feature_norm=1.0)
    return li.plan(loss=loss, records=records, features=features, epsilon=2.0 * factor, delta=1e-5)


def _data(records: int, features: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(0)
    rows = source.normal(size=(records, features)) / np.sqrt(2 * features)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    targets = source.integers(classes, size=records) if classes > 1 else source.choice([-1.0, 1.0], size=records)
    return rows, targets


if __name__ == "__main__":
    main()
