"""`make speed`: seconds an epoch of 60000 × 784 numbers, 10 classes, batches of 1500, beside Opacus and bare products.

The limit is what no trainer can do without: one product for the scores and one for the gradient of every batch. All are
warm, medians, wall-clock time, with the same number of threads; the ratios are what to look at.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.environments import ROOT, environment

RECORDS, FEATURES, CLASSES, BATCH = 60_000, 784, 10, 1_500
Data = tuple[np.ndarray, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--ours", action="store_true", help="leave the peers out")
    arguments = parser.parse_args()
    seconds = _ours(arguments.repeats)
    if not arguments.ours:
        print("measuring the peers …", file=sys.stderr, flush=True)
        seconds |= _peers()
    _show(seconds)
    out = ROOT / "out" / "speed.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({"threads": _threads(), "seconds an epoch": seconds}, indent=1))


def _threads() -> int:
    return int(os.environ.get("OPENBLAS_NUM_THREADS", os.cpu_count() or 1))


def _data() -> Data:
    source = np.random.default_rng(0)
    rows = source.random((RECORDS, FEATURES), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, source.integers(0, CLASSES, RECORDS)


def _ours(repeats: int) -> dict[str, float]:
    """An epoch is a tenth of what ten more epochs take; the sides take turns, so that a busy machine slows all of them."""
    data = _data()
    ways: dict[str, Callable[[], float]] = {
        "products of matrices (the limit)": lambda: _seconds(lambda: _products(data[0], 10)) / 10,
        "lastiterate, cyclic": lambda: _an_epoch(data, _run(li.Cyclic(RECORDS, BATCH), clip=None)),
        "lastiterate, cyclic, clipped": lambda: _an_epoch(data, _run(li.Cyclic(RECORDS, BATCH), clip=0.5)),
        "lastiterate, reshuffled": lambda: _an_epoch(data, _run(li.Shuffled(RECORDS, BATCH), clip=None)),
        "lastiterate, 10 epochs with preparation": lambda: _train(data, _run(li.Cyclic(RECORDS, BATCH), None), 10) / 10,
    }
    measured: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats + 1):
        for name, way in ways.items():
            measured[name].append(way())
    return {name: statistics.median(values[1:]) for name, values in measured.items()}


def _run(batches: Any, clip: float | None) -> li.Run:
    loss = li.losses.softmax(feature_norm=1.0, l2=0.002, clip=clip)
    return li.Run(loss, batches, 0.05, li.OnMeanGradient(std=0.01), li.epochs(1))


def _products(rows: np.ndarray, epochs: int) -> None:
    weights = np.zeros((FEATURES, CLASSES), np.float32)
    for _ in range(epochs):
        for first in range(0, RECORDS, BATCH):
            batch = rows[first : first + BATCH]
            batch.T @ (batch @ weights)


def _an_epoch(data: Data, run: li.Run) -> float:
    return (_train(data, run, 11) - _train(data, run, 1)) / 10


def _train(data: Data, run: li.Run, epochs: int) -> float:
    return _seconds(lambda: li.train(run.first(epochs * RECORDS // BATCH), data, classes=CLASSES))


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _peers() -> dict[str, float]:
    command = [str(environment("peers")), "-m", "benchmarks.speed.training_peers", str(_threads())]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found = json.loads(answer.stdout.strip().splitlines()[-1])["seconds an epoch"]
    return {f"{way}, {loader}": seconds for loader, ways in found.items() for way, seconds in ways.items()}


def _show(seconds: dict[str, float]) -> None:
    limit, ours = seconds["products of matrices (the limit)"], seconds["lastiterate, cyclic"]
    print(f"{'':60} {'seconds an epoch':>16} {'times the limit':>16} {'times ours':>11}")
    for name, value in seconds.items():
        print(f"{name:60} {value:16.4f} {value / limit:16.2f} {value / ours:11.1f}")


if __name__ == "__main__":
    main()
