"""`make passes`: accuracy when one, three or ten passes over the data are all one can pay for, at the same ε.

Three ways to spend a pass, each without momentum, under zero-out: batches in a new secret order each epoch, of which only
the last iterate is released (prepayment, hidden places); Poisson batches by composition; balls and bins. The number of
batches and the step size of each are chosen from the same grid on a synthetic problem with as many records, features and
classes, never on the data. Every row is kept in out/passes, so an interrupted study goes on where it was.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.accuracy import datasets, dp_sgd
from benchmarks.accuracy.datasets import Dataset, unit_rows
from benchmarks.accuracy.rows import DELTA, ZEROED, Row, read_rows, write_rows
from benchmarks.environments import ROOT

OUT = ROOT / "out" / "passes"
NAMES = ("adult", "mnist", "million")
PASSES = (1, 3, 10)
EPSILONS = (1.0, 4.0)
KINDS = ("shuffled, hidden", "Poisson, composed", "balls and bins")
SHUFFLED, POISSON, BINS = KINDS
BATCHES = (30, 200)  # in a pass
# Step sizes, times the smoothness. Beyond 2 steps bring iterates apart, and hidden states save nothing.
FRACTIONS = (0.1, 0.5, 2.0, 8.0)
MOST_HIDDEN = 2.0
CONSTANT = 0.25  # the feature that stands for the intercept
SEEDS = {"million": 3}
TEST_ROWS = 10_000


@dataclass(frozen=True)
class Choice:
    """What is chosen on the synthetic problem."""

    batches: int
    fraction: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--passes", type=int, nargs="+", choices=PASSES, default=list(PASSES))
    parser.add_argument("--seeds", type=int, default=5, help=f"for {', '.join(SEEDS)} fewer")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    chosen = [name for name in arguments.datasets if name == "million" or datasets.available(name)]
    for name in chosen:
        seeds = range(min(arguments.seeds, SEEDS.get(name, arguments.seeds)))
        _add_rows(arguments.out, name, arguments.passes, seeds)
    print(table(read_rows(arguments.out / "rows.json"), chosen))


def _add_rows(out: Path, name: str, wanted: list[int], seeds: range) -> None:
    rows = read_rows(out / "rows.json")
    data = functools.cache(lambda: _loaded(name))
    for passes, epsilon, kind in itertools.product(wanted, EPSILONS, KINDS):
        row = {"dataset": name, "passes": passes, "epsilon": epsilon, "kind": kind}
        if sum(row.items() <= done.items() for done in rows) >= len(seeds):
            continue
        choice = _choice(out, data(), passes, epsilon, kind)
        run = exact_run(data(), kind, choice, passes, epsilon)
        scores = [_accuracy(data(), run, seed) for seed in seeds]
        rows = [done for done in rows if not row.items() <= done.items()]
        rows += [{**row, **asdict(choice), "seed": seed, "accuracy": score} for seed, score in enumerate(scores)]
        write_rows(out / "rows.json", rows)
        print(f"{name} {passes} {epsilon:g} {kind}: {100 * statistics.mean(scores):.2f} {choice}", flush=True)


def exact_run(data: Dataset, kind: str, choice: Choice, passes: int, epsilon: float) -> li.Run:
    """With the least noise that the best theorem allows; for Poisson batches, composition."""
    run = plain_run(data, kind, choice, passes, multiplier(POISSON, choice, passes, epsilon))
    return run if kind == POISSON else li.calibrate(run, epsilon=epsilon, delta=DELTA)


def plain_run(data: Dataset, kind: str, choice: Choice, passes: int, noise_multiplier: float) -> li.Run:
    """Noise on the sum of a batch, over what bounds the gradient of a record."""
    size = len(data.train_labels) // choice.batches
    loss = _loss(data)
    noise = li.OnMeanGradient(std=noise_multiplier * loss.gradient_bound / size)
    batches = _batches(kind, size * choice.batches, choice.batches)
    steps = choice.batches * passes
    return li.Run(loss, batches, choice.fraction / loss.smoothness, noise, steps, adjacency=li.ZERO_OUT)


def _batches(kind: str, records: int, count: int) -> Any:
    if kind == SHUFFLED:
        return li.Shuffled(records, records // count)
    return li.Poisson(records, 1 / count) if kind == POISSON else li.BallsAndBins(records, count)


def _loss(data: Dataset) -> li.Loss:
    norm = float(np.hypot(1, CONSTANT)) * (1 + 1e-6)
    if data.classes > 2:
        return li.losses.softmax(feature_norm=norm, pull=0.7, classes=data.classes)
    return li.losses.logistic(feature_norm=norm, clip=norm / 2)


@functools.cache
def multiplier(kind: str, choice: Choice, passes: int, epsilon: float) -> float:
    """For choosing: that of a loss with smoothness 1, which for steps of that length is the same for all losses."""
    if kind == POISSON:
        return dp_sgd.noise_multiplier(epsilon, ZEROED, choice.batches, passes)
    if kind == BINS and choice.fraction < FRACTIONS[-1]:  # by composition, which knows of no step size
        return multiplier(kind, replace(choice, fraction=FRACTIONS[-1]), passes, epsilon)
    loss = li.losses.logistic(feature_norm=2.0)
    batches = _batches(kind, 1000 * choice.batches, choice.batches)
    noise = li.OnMeanGradient(std=loss.gradient_bound / 1000)
    run = li.Run(loss, batches, choice.fraction, noise, choice.batches * passes, adjacency=li.ZERO_OUT)
    exact = li.calibrate(run, epsilon=epsilon, delta=DELTA)
    return float(exact.process.noise[0] / run.process.noise[0])


def _accuracy(data: Dataset, run: li.Run, seed: int) -> float:
    used = run.batches.records
    targets = data.train_labels[:used] if data.classes > 2 else 2.0 * data.train_labels[:used] - 1
    classes = data.classes if data.classes > 2 else None
    weights = li.train(run, (data.train_features[:used], targets), classes=classes, seed=seed).weights
    scores = data.test_features @ weights
    predicted = scores.argmax(axis=1) if data.classes > 2 else scores.ravel() > 0
    return float(np.mean(predicted == data.test_labels))


def _choice(out: Path, data: Dataset, passes: int, epsilon: float, kind: str) -> Choice:
    """The best on the synthetic problem, kept in a file."""
    path = out / "choices.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    place = f"{data.name}, {passes}, {epsilon:g}, {kind}"
    if place not in kept:
        like = _like(data.name, data.train_features.shape, data.classes)
        best = max(_grid(kind), key=lambda choice: _tried(like, kind, choice, passes, epsilon))
        kept[place] = asdict(best)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept, indent=1) + "\n")
    return Choice(**kept[place])


def _grid(kind: str) -> Iterator[Choice]:
    for batches, fraction in itertools.product(BATCHES, FRACTIONS):
        if kind != SHUFFLED or fraction <= MOST_HIDDEN:
            yield Choice(batches, fraction)


def _tried(like: Dataset, kind: str, choice: Choice, passes: int, epsilon: float) -> float:
    noise = multiplier(kind, choice, passes, epsilon)
    return _accuracy(like, plain_run(like, kind, choice, passes, noise), seed=1000)


@functools.lru_cache(maxsize=1)
def _like(name: str, shape: tuple[int, int], classes: int) -> Dataset:
    """As many records, features and classes; directions fade like 1/j, as in the planner's model."""
    return synthetic(f"like {name}", shape[0], shape[1] - 1, classes, power=0.5, seed=11)


def _loaded(name: str) -> Dataset:
    if name == "million":
        return synthetic(name, 1_000_000, 50, 2, power=0.25, seed=12)
    data = datasets.load(name)
    parts = (
        _with_constant(data.train_features),
        data.train_labels,
        _with_constant(data.test_features),
        data.test_labels,
    )
    return Dataset(name, *parts, data.classes)


def synthetic(name: str, records: int, features: int, classes: int, power: float, seed: int) -> Dataset:
    """Rows around a mean, each divided by its norm; the variance of direction j is j^(−2·power)."""
    random = np.random.default_rng(seed)
    deviations = np.arange(1, features + 1, dtype=np.float32) ** -power
    rows = random.standard_normal((records + TEST_ROWS, features), dtype=np.float32) * deviations
    scores = rows @ random.standard_normal((features, classes), dtype=np.float32)
    labels = (6 * scores / scores.std() + random.gumbel(size=scores.shape)).argmax(axis=1)
    rows += 0.5 * np.linalg.norm(deviations) * unit_rows(random.standard_normal((1, features), dtype=np.float32))
    rows = _with_constant(unit_rows(rows))
    return Dataset(name, rows[:records], labels[:records], rows[records:], labels[records:], classes)


def _with_constant(features: np.ndarray) -> np.ndarray:
    return np.column_stack([features, np.full(len(features), CONSTANT)]).astype(np.float32)


def table(rows: list[Row], names: list[str]) -> str:
    """Mean and standard deviation in percent, and in brackets the number of repetitions."""
    lines = [f"{'data set':10} {'epsilon':>7} {'passes':>6} " + " ".join(f"{kind:>20}" for kind in KINDS)]
    for name, epsilon, passes in itertools.product(names, EPSILONS, PASSES):
        cells = [_cell(rows, {"dataset": name, "passes": passes, "epsilon": epsilon, "kind": kind}) for kind in KINDS]
        lines.append(f"{name:10} {epsilon:7g} {passes:6d} " + " ".join(f"{cell:>20}" for cell in cells))
    return "\n".join(lines)


def _cell(rows: list[Row], wanted: Row) -> str:
    values = [100 * row["accuracy"] for row in rows if wanted.items() <= row.items()]
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.2f} ± {spread:.2f} [{len(values)}]" if values else "-"


if __name__ == "__main__":
    main()
