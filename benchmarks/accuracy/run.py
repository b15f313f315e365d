"""`make accuracy`, `make accuracy-held-out`: test accuracy against ε, ours untuned beside Opacus tuned on the test data.

Each under two adjacencies: one record zeroed out, which for the Poisson batches of Opacus is the same as one added or
removed, and one record replaced. The main group has diffprivlib and the limit without privacy as well. Every row is kept in
out/accuracy, so an interrupted study goes on where it was.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accuracy import groups
from benchmarks.accuracy.drawing import draw
from benchmarks.accuracy.opacus_fits import opacus_methods
from benchmarks.accuracy.ours import our_methods
from benchmarks.accuracy.rows import EPSILONS, Method, Row, add_rows, read_rows, write_rows
from benchmarks.accuracy.verdict import sentence, table
from benchmarks.accuracy.without_privacy import without_privacy
from benchmarks.environments import ROOT, environment

OUT = ROOT / "out" / "accuracy"
METHODS = ("lastiterate", "opacus", "diffprivlib", "no-privacy")
QUICK = ("breast-cancer", "digits")
QUICK_SEEDS = 3
QUICK_EPSILONS = (1.0, 4.0)


def main(words: Sequence[str] | None = None) -> None:
    arguments = _arguments(words)
    chosen = [name for name in arguments.datasets if groups.available(name)]
    if arguments.ours_anew:
        kept = [row for row in read_rows(arguments.out / "lastiterate.json") if row["dataset"] not in chosen]
        write_rows(arguments.out / "lastiterate.json", kept)
    for method in arguments.methods:
        for name in chosen:
            print(f"{method} on {name} …", file=sys.stderr, flush=True)
            _add(method, name, arguments)
    _show([row for method in METHODS for row in read_rows(arguments.out / f"{method}.json")], chosen, arguments)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", nargs="+", choices=list(groups.GROUPS), default=list(groups.GROUPS))
    parser.add_argument("--datasets", nargs="+", choices=groups.NAMES, help="some of the groups' only")
    parser.add_argument("--epsilons", type=float, nargs="+", choices=EPSILONS)
    parser.add_argument("--seeds", type=int, help="10 unless told otherwise, 30 below 1,000 records")
    parser.add_argument("--methods", nargs="*", choices=METHODS, help="none: only show what is kept")
    parser.add_argument("--ours-anew", action="store_true", help="forget our rows: the estimators have changed")
    parser.add_argument(
        "--quick", action="store_true", help="two small data sets, two epsilons, 3 seeds, ours and Opacus"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    told = parser.parse_args(words)
    quick = told.quick
    told.datasets = told.datasets or (
        QUICK if quick else [name for group in told.group for name in groups.GROUPS[group]]
    )
    told.epsilons = told.epsilons or list(QUICK_EPSILONS if quick else EPSILONS)
    told.seeds = told.seeds or (QUICK_SEEDS if quick else None)
    told.methods = (METHODS[:2] if quick else METHODS) if told.methods is None else told.methods
    return told


def _add(method: str, name: str, arguments: argparse.Namespace) -> None:
    """The rows of one method on one data set."""
    if name not in groups.GROUPS[groups.MAIN] and method in ("diffprivlib", "no-privacy"):
        return
    if method == "diffprivlib":
        _run_diffprivlib(name, arguments)
        return
    seeds = range(arguments.seeds or groups.repetitions(name))
    add_rows(arguments.out / f"{method}.json", _methods(method), name, seeds, arguments.epsilons)


def _methods(method: str) -> list[Method]:
    if method == "no-privacy":
        return [without_privacy()]
    return our_methods() if method == "lastiterate" else opacus_methods()


def _run_diffprivlib(name: str, arguments: argparse.Namespace) -> None:
    command = [str(environment("diffprivlib")), "-m", "benchmarks.accuracy.diffprivlib_fits", "--datasets", name]
    options = [
        "--out",
        str(arguments.out / "diffprivlib.json"),
        "--seeds",
        str(arguments.seeds or groups.repetitions(name)),
    ]
    subprocess.run([*command, *options, "--epsilons", *map(str, arguments.epsilons)], cwd=ROOT, check=True)


def _show(rows: list[Row], chosen: list[str], arguments: argparse.Namespace) -> None:
    """A table, a plot and a sentence for each group."""
    for group, members in groups.GROUPS.items():
        names = [name for name in members if name in chosen]
        if names:
            print(table(rows, names, arguments.epsilons))
            path = arguments.out / f"{group}.png"
            draw(rows, names, arguments.epsilons, path)
            print(f"\nplot: {path}")
            print(sentence(group, rows, names, arguments.epsilons) + "\n")


if __name__ == "__main__":
    main()
