"""The two groups of data sets: one to look at while building, and one that no constant was ever chosen on."""

from __future__ import annotations

from benchmarks.accuracy import datasets, held_out
from benchmarks.accuracy.datasets import Dataset

MAIN = "main"
HELD_OUT = "held-out"
GROUPS = {MAIN: datasets.NAMES, HELD_OUT: held_out.NAMES}
NAMES = (*datasets.NAMES, *held_out.NAMES)
# So few rows that one test set would decide: every seed splits them anew.
SPLIT_ANEW = held_out.SMALL
# Below 1,000 rows a score varies by points: more repetitions, lest luck decides.
VARYING = ("breast-cancer", *held_out.SMALL)


def available(name: str) -> bool:
    """Whether `load` would find what it reads."""
    return name in held_out.NAMES or datasets.available(name)


def load(name: str, split: int = 0) -> Dataset:
    """The data set of that name; `split` is for those in SPLIT_ANEW."""
    return held_out.load(name, split) if name in held_out.NAMES else datasets.load(name)


def split_of(name: str, seed: int) -> int:
    return seed if name in SPLIT_ANEW else 0


def repetitions(name: str) -> int:
    return 30 if name in VARYING else 10
