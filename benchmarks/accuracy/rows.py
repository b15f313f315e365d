"""Rows of the accuracy tables: one fit each, kept in a file, so that an interrupted study goes on where it was."""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy import groups
from benchmarks.accuracy.datasets import Dataset

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-5
ZEROED = "zero out one"  # with Poisson batches, the same as to add or remove one
REPLACED = "replace one"
ADJACENCIES = (ZEROED, REPLACED)

Row = dict[str, Any]
Fit = Callable[[Dataset, float | None, int], float]


@dataclass(frozen=True)
class Method:
    """One line of the table: its name, the neighbours of its ε, its settings on a data set at an ε, and a fit's score."""

    name: str
    adjacency: str | None
    settings: Callable[[str, float | None], str]
    score: Fit
    epsilons: Sequence[float | None] = EPSILONS
    random: bool = True


def add_rows(
    out: Path, methods: list[Method], name: str, seeds: Sequence[int], epsilons: Sequence[float | None] = EPSILONS
) -> None:
    """The rows of one data set that `out` does not have yet."""
    rows = read_rows(out)
    wanted = (None, *epsilons)
    todo = [
        (method, row) for method in methods for row in planned_rows(method, name, seeds) if row["epsilon"] in wanted
    ]
    load = functools.cache(lambda split: groups.load(name, split))  # not at all where every row is there
    for method, row in todo:
        if any(row.items() <= done.items() for done in rows):
            continue
        rows = [done for done in rows if place(done) != place(row)]
        data = load(groups.split_of(name, row["seed"]))
        rows.append({**row, "accuracy": method.score(data, row["epsilon"], row["seed"])})
        write_rows(out, rows)


def planned_rows(method: Method, name: str, seeds: Sequence[int]) -> Iterator[Row]:
    drawn = method.random or name in groups.SPLIT_ANEW
    for epsilon, seed in itertools.product(method.epsilons, seeds if drawn else [0]):
        yield {
            "method": method.name,
            "dataset": name,
            "epsilon": epsilon,
            "seed": seed,
            "adjacency": method.adjacency,
            "settings": method.settings(name, epsilon),
        }


def place(row: Row) -> tuple[Any, ...]:
    return row["method"], row["adjacency"], row["dataset"], row["epsilon"], row["seed"]


def read_rows(out: Path) -> list[Row]:
    rows: list[Row] = json.loads(out.read_text()) if out.exists() else []
    return rows


def write_rows(out: Path, rows: list[Row]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_suffix(".tmp")
    draft.write_text(json.dumps(rows, indent=1) + "\n")
    os.replace(draft, out)
