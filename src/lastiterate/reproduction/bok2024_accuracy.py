"""Bok et al. 2024, Tables 2, 5 and 6: accuracy on MNIST, trained by `li.train`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from statistics import fmean, stdev

from lastiterate.errors import Unavailable
from lastiterate.parallel import every_core, in_parallel
from lastiterate.progress import tracked
from lastiterate.reproduction.bok2024_mnist import CYCLIC, FEATURE_NORM, SAMPLED, SETTING_OF_MNIST, executed
from lastiterate.reproduction.bok2024_printed import TABLE_5, TABLE_6
from lastiterate.reproduction.exhibit import Cell, Claim, Exhibit, Made, Setting, judged
from lastiterate.reproduction.mnist import CLASSES, Images, accuracy, read_images
from lastiterate.reproduction.pictures import Role
from lastiterate.reproduction.tables import Row, dots, number, tabled
from lastiterate.training.train import train

Place = tuple[str, float, int]  # algorithm, λ, epochs
Found = dict[Place, tuple[float, float]]  # training and test accuracy in percent
_LENGTHS = (50, 100, 200)
_RUNS = 10
_DOUBT = 4.0  # standard errors of a difference of means


def _trained(job: tuple[str, float, int], folder: Path, lengths: Sequence[int]) -> Found:
    """One model, measured after 50, 100 and 200 epochs: each run starts where the one before ended."""
    algorithm, l2, seed = job
    images, weights, done = _images(folder), None, 0
    found: Found = {}
    for length in lengths:
        run = executed(l2, length - done, CYCLIC if algorithm == "NoisyCGD" else SAMPLED)
        data = images.train_features, images.train_labels
        weights = train(run, data, start=weights, classes=CLASSES, seed=1000 * seed + length).weights
        right = [accuracy(weights, *pair) for pair in (data, (images.test_features, images.test_labels))]
        found[algorithm, l2, length] = (right[0], right[1])
        done = length
    return found


@lru_cache(maxsize=1)
def _images(folder: Path) -> Images:
    return read_images(folder).with_norm(FEATURE_NORM, constant=1.0)


@lru_cache(maxsize=2)
def _accuracies(folder: Path, quick: bool) -> Mapping[Place, Sequence[tuple[float, float]]]:
    """Of every run; if it has to be quick, one run of 50 epochs."""
    every = [
        (algorithm, l2, seed)
        for seed in range(_RUNS)
        for algorithm in ("NoisyCGD", "NoisySGD")
        for l2 in (0.002, 0.004)
    ]
    jobs, lengths = (every[:1], _LENGTHS[:1]) if quick else (every, _LENGTHS)
    train = partial(_trained, folder=folder.resolve(), lengths=lengths)
    results = in_parallel(train, [(job,) for job in jobs], every_core(), ordered=False)
    found: dict[Place, list[tuple[float, float]]] = {}
    for _ in tracked(jobs, "trainings"):
        for place, right in next(results).items():
            found.setdefault(place, []).append(right)
    return found


def _rows(setting: Setting, printed: Mapping[Place, tuple[str, str]], part: int) -> list[Row]:
    if setting.mnist is None:
        raise Unavailable("MNIST was not found. Download its four files into a folder DIR and add --mnist DIR.")
    found = _accuracies(setting.mnist, setting.quick)
    return [
        _row(place, mean, spread, [right[part] for right in found[place]])
        for place, (mean, spread) in printed.items()
        if place in found
    ]


def _row(place: Place, mean: str, spread: str, values: Sequence[float]) -> Row:
    own = stdev(values) if len(values) > 1 else float(spread)
    algorithm, l2, passes = place
    return {
        "algorithm": algorithm,
        "λ": l2,
        "epochs": passes,
        "mean, printed": mean,
        "deviation, printed": spread,
        "mean, computed": fmean(values),
        "deviation, computed": own,
        "runs": len(values),
        "allowed": _DOUBT * math.sqrt(float(spread) ** 2 / _RUNS + own**2 / len(values)) + 0.005,
    }


def _where(row: Row) -> str:
    return f"{row['algorithm']}, {row['λ']}, {row['epochs']}"


def _table(rows: Sequence[Row], title: str) -> Made:
    cells = [
        Cell(_where(row), str(row["mean, printed"]), number(row["mean, computed"]), tolerance=number(row["allowed"]))
        for row in rows
    ]
    marks = (("paper", "mean, printed", Role.PAPER), ("ours, by li.train", "mean, computed", Role.OURS))
    panel = dots(title, "percent", [_where(row) for row in rows], rows, marks)
    claims = [Claim(f"{title}, {_where(row)} epochs", row["mean, printed"], row["mean, computed"]) for row in rows]
    note = f"means of {rows[0]['runs']} runs, compared within {_DOUBT:g} standard errors of the difference"
    return tabled(rows, (panel,), judged(cells, note=note), claims)


def _table_2(setting: Setting) -> Made:
    training, test = (
        [row for row in _rows(setting, *chosen) if _in_table_2(row)] for chosen in ((TABLE_5, 0), (TABLE_6, 1))
    )
    rows = [{"part": name, **row} for name, part in (("training", training), ("test", test)) for row in part]
    return _table([{**row, "algorithm": f"{row['part']}, {row['algorithm']}"} for row in rows], "accuracy")


def _in_table_2(row: Row) -> bool:
    return row["algorithm"] == "NoisyCGD" and row["λ"] == 0.002


def _table_5(setting: Setting) -> Made:
    return _table(_rows(setting, TABLE_5, 0), "training accuracy")


def _table_6(setting: Setting) -> Made:
    return _table(_rows(setting, TABLE_6, 1), "test accuracy")


_SETTING = (*SETTING_OF_MNIST[:-1], ("runs", _RUNS))
ACCURACIES = (
    Exhibit("bok2024", "table-2", "Accuracy of NoisyCGD on MNIST, λ = 0.002", _SETTING, _table_2, uses_all_cores=True),
    Exhibit("bok2024", "table-5", "Training accuracy on MNIST", _SETTING, _table_5, uses_all_cores=True),
    Exhibit("bok2024", "table-6", "Test accuracy on MNIST", _SETTING, _table_6, uses_all_cores=True),
)
