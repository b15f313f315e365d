"""Settings for Opacus with the best mean score on the test data: `python -m benchmarks.accuracy.tune [--datasets …]`.

To choose on the test data flatters Opacus, which is intended. For each data set, adjacency and ε: a grid of learning rates
and clips, then one move at a time (learning rate, clip, epochs, batches, momentum) for as long as it helps, from the best of
the grid and of what was found at other ε and adjacencies. On MNIST and Adult only the learning rate moves, from settings
known to be good. It runs on `dp_sgd`, the same algorithm in numpy, with random numbers other than those of the tables, 30
trainings a look below 1,000 records, 8 below 5,000, one otherwise, and keeps what it finds in opacus_settings.json. What is
there is not looked for again, unless --anew, which starts from what was found before: the file was made by one search of
all, and one anew of all but breast-cancer, topics, MNIST and Adult.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.accuracy import dp_sgd, groups
from benchmarks.accuracy.dp_sgd import Setting
from benchmarks.accuracy.rows import ADJACENCIES, EPSILONS

KEPT = Path(__file__).with_name("opacus_settings.json")
FIRST_SEED = 1000  # not among those of the tables
SMALL, LARGE = 1000, 5000  # records; below the one a score varies much, from the other on little
MOST_STEPS, MOST_LOOKS = 800, 2e6  # in one training; a look is at one record
MOST_BATCHES = 16
MOST_MOVES = 12

# What is known to be good at ε = 1.
KNOWN = {
    "breast-cancer": Setting(batches=1, epochs=400, learning_rate=4.0, clip=0.3),
    "digits": Setting(batches=1, epochs=400, learning_rate=1.0, clip=0.3, momentum=0.9),
    "adult": Setting(batches=8, epochs=60, learning_rate=1.0, clip=1.0, momentum=0.9),
    "mnist": Setting(batches=30, epochs=20, learning_rate=4.0, clip=1.0, momentum=0.9),
}

TOO_LARGE = ("adult", "mnist")  # for more than learning rates

Tried = Callable[[Setting], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", choices=groups.NAMES, default=list(groups.NAMES))
    parser.add_argument("--anew", action="store_true", help="look again for what is kept")
    arguments = parser.parse_args()
    for name in arguments.datasets:
        for adjacency in ADJACENCIES:
            for epsilon in EPSILONS:
                if arguments.anew or not found(name, adjacency, epsilon):
                    _tune(name, adjacency, epsilon)


def setting_of(name: str, adjacency: str, epsilon: float) -> Setting:
    """As kept in the file."""
    kept = found(name, adjacency, epsilon)
    if kept is None:
        raise KeyError(f"{name}, {adjacency}, epsilon {epsilon:g} is not in {KEPT.name}: run benchmarks.accuracy.tune.")
    return Setting(**{key: value for key, value in kept.items() if key != "score"})


def found(name: str, adjacency: str, epsilon: float) -> dict[str, Any] | None:
    kept: dict[str, Any] | None = _kept().get(name, {}).get(adjacency, {}).get(f"{epsilon:g}")
    return kept


def _kept() -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return kept


def _keep(name: str, adjacency: str, epsilon: float, setting: Setting, score: float) -> None:
    kept = _kept()
    kept.setdefault(name, {}).setdefault(adjacency, {})[f"{epsilon:g}"] = {**asdict(setting), "score": round(score, 5)}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")


def _tune(name: str, adjacency: str, epsilon: float) -> None:
    began = time.perf_counter()
    load = functools.cache(lambda split: groups.load(name, split))
    records = len(load(0).train_labels)

    @functools.cache
    def tried(setting: Setting) -> float:
        return statistics.mean(
            dp_sgd.score(load(groups.split_of(name, count)), epsilon, adjacency, setting, FIRST_SEED + count)
            for count in range(_repetitions(records))
        )

    starts = [*_found_before(name), *([KNOWN[name]] if name in KNOWN else [])]
    if records < LARGE or not starts:
        starts += _grid(records, adjacency, epsilon)
    best = climbed(max(starts, key=tried), _rate_moves if name in TOO_LARGE else _moves(records), tried)
    _keep(name, adjacency, epsilon, best, tried(best))
    seconds, looks = time.perf_counter() - began, tried.cache_info().currsize
    print(f"{name} {adjacency} {epsilon:g}: {100 * tried(best):.2f} {best} {looks} looks {seconds:.0f} s", flush=True)


def climbed(start: Setting, moves: Callable[[Setting], Iterator[Setting]], tried: Tried) -> Setting:
    """To the best neighbour, for as long as there is a better one."""
    best = start
    for _ in range(MOST_MOVES):
        better = max(moves(best), key=tried)
        if tried(better) <= tried(best):
            return best
        best = better
    return best


def _rate_moves(setting: Setting) -> Iterator[Setting]:
    for factor in (0.5, 0.7, 1.4, 2.0):
        yield replace(setting, learning_rate=_round(setting.learning_rate * factor))


def _moves(records: int) -> Callable[[Setting], Iterator[Setting]]:
    most = min(MOST_STEPS, MOST_LOOKS / records)

    def moves(setting: Setting) -> Iterator[Setting]:
        rate, clip, epochs = setting.learning_rate, setting.clip, setting.epochs
        yield from _rate_moves(setting)
        yield replace(setting, clip=clip * 2)
        yield replace(setting, clip=clip / 2)
        yield replace(
            setting, clip=clip / 2, learning_rate=_round(rate * 2)
        )  # as long a step where every gradient is clipped
        yield replace(setting, epochs=max(epochs // 2, 1), learning_rate=_round(rate * 2))
        if epochs * 2 <= most and setting.batches * epochs * 2 <= MOST_STEPS:
            yield replace(setting, epochs=epochs * 2, learning_rate=_round(rate / 2))
        if setting.momentum:
            yield replace(setting, momentum=0.0, learning_rate=_round(rate / (1 - setting.momentum)))
        else:
            yield replace(setting, momentum=0.9, learning_rate=_round(rate * 0.1))
        if setting.batches < MOST_BATCHES and dp_sgd.is_cut_into(records, setting.batches * 4):
            if setting.batches * 4 * epochs <= MOST_STEPS:
                yield replace(setting, batches=setting.batches * 4, learning_rate=_round(rate / 4))
            yield replace(setting, batches=setting.batches * 4, epochs=max(epochs // 4, 1))
        if setting.batches > 1:
            yield replace(setting, batches=setting.batches // 4, epochs=int(min(epochs * 4, most)))

    return moves


def _grid(records: int, adjacency: str, epsilon: float) -> Iterator[Setting]:
    """Full batches with momentum: each clip with the lengths of the whole way, in what the noise lets one resolve."""
    epochs = int(min(200, MOST_LOOKS / records))
    resolved = records / dp_sgd.noise_multiplier(epsilon, adjacency, 1, epochs) * epochs**0.5
    for clip in (0.1, 0.3, 1.0):
        for way in (0.3, 1.0, 3.0, 10.0):
            yield Setting(1, epochs, _round(0.1 * way * resolved / epochs), clip, 0.9)


def _round(rate: float) -> float:
    return float(f"{rate:.2g}")


def _found_before(name: str) -> Iterator[Setting]:
    """At any ε under any adjacency."""
    for adjacency, kept in _kept().get(name, {}).items():
        for epsilon in kept:
            yield setting_of(name, adjacency, float(epsilon))


def _repetitions(records: int) -> int:
    if records < SMALL:
        return 30
    return 8 if records < LARGE else 1


if __name__ == "__main__":
    main()
