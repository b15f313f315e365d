"""`make accuracy`: test accuracy against ε on four data sets, ours beside the peers and the limit without privacy.

The second column says what ε is about. Ours is trained for one record that is zeroed out, which for the Poisson batches of
Opacus is the same as one that is added or removed, and for one that is replaced, as in diffprivlib. Every row is kept in
out/accuracy, so an interrupted study goes on where it was. `--ours` leaves the peers out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from benchmarks.accuracy import datasets
from benchmarks.accuracy.datasets import Dataset
from benchmarks.accuracy.peers import ADD_OR_REMOVE, DELTA, EPSILONS, REPLACE, Method, Row, add_rows
from benchmarks.environments import ROOT, environment
from lastiterate.estimators import PrivateLogisticRegression
from lastiterate.privacy.adjacency import REPLACE_ONE, ZERO_OUT, Adjacency

OUT = ROOT / "out" / "accuracy"
PEERS = {"opacus": "peers", "diffprivlib": "diffprivlib"}
# What one would write down without thinking, at the step size that the smoothness of unit rows allows.
FIXED = {"batches": 10, "epochs": 10, "step_size": 1.0, "l2": 0.0}
LIMIT = "no privacy"
ZEROED = "lastiterate, zero-out"
# Together what compares the same neighbours.
ORDER = {
    ZEROED: "zero out one",
    "opacus": ADD_OR_REMOVE,
    "lastiterate": REPLACE,
    "lastiterate, fixed settings": REPLACE,
    "diffprivlib, C tuned": REPLACE,
    "diffprivlib": REPLACE,
    LIMIT: "-",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", action="store_true", help="leave the peers out")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--datasets", nargs="+", choices=datasets.NAMES, default=list(datasets.NAMES))
    parser.add_argument("--epsilons", type=float, nargs="+", choices=EPSILONS, default=list(EPSILONS))
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    arguments = parser.parse_args()
    chosen = [name for name in arguments.datasets if datasets.available(name)]
    epsilons = arguments.epsilons
    for name in chosen:
        print(f"ours on {name} …", file=sys.stderr, flush=True)
        add_rows(OUT / "lastiterate.json", _ours(), name, range(arguments.seeds), epsilons)
    if not arguments.ours:
        for peer in arguments.peers:
            print(f"{peer} (up to an hour) …", file=sys.stderr, flush=True)
            _run_peer(peer, arguments.seeds, chosen, epsilons)
    rows = _rows()
    print(table(rows, chosen, epsilons))
    _draw(rows, chosen, epsilons, OUT / "accuracy.png")
    print(f"\nplot: {(OUT / 'accuracy.png').relative_to(ROOT)}")


def _ours() -> list[Method]:
    told = "PrivateLogisticRegression, settings "
    return [
        _method(ZEROED, told + "chosen from public numbers", {}, ZERO_OUT),
        _method("lastiterate", told + "chosen from public numbers", {}, REPLACE_ONE),
        _method("lastiterate, fixed settings", told + str(FIXED), FIXED, REPLACE_ONE),
    ]


def _method(name: str, told: str, given: dict[str, Any], adjacency: Adjacency) -> Method:
    settings = dict.fromkeys(datasets.NAMES, told)
    return Method(name, ORDER[name], settings, _accuracy_with({**given, "adjacency": adjacency}))


def _accuracy_with(given: dict[str, Any]) -> Callable[[Dataset, float | None, int], float]:
    def accuracy(data: Dataset, epsilon: float | None, seed: int) -> float:
        model = PrivateLogisticRegression(
            epsilon=epsilon,
            delta=DELTA,
            feature_norm=data.feature_norm,
            classes=range(data.classes),
            random_state=seed,
            **given,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a seed, so that the table can be made again
            model.fit(data.train_features, data.train_labels)
        return float(model.score(data.test_features, data.test_labels))

    return accuracy


def _run_peer(peer: str, seeds: int, chosen: list[str], epsilons: list[float]) -> None:
    command = [str(environment(PEERS[peer])), "-m", "benchmarks.accuracy.peers", peer]
    options = ["--out", str(OUT / f"{peer}.json"), "--seeds", str(seeds), "--datasets", *chosen]
    options += ["--epsilons", *map(str, epsilons)]
    subprocess.run([*command, *options], cwd=ROOT, check=True)


def _rows() -> list[Row]:
    return [row for file in sorted(OUT.glob("*.json")) for row in json.loads(file.read_text())]


def _of(rows: list[Row], method: str, name: str, epsilon: float | None) -> list[float]:
    found = [row for row in rows if (row["method"], row["dataset"]) == (method, name)]
    return [row["accuracy"] for row in found if method == LIMIT or row["epsilon"] == epsilon]


def table(rows: list[Row], chosen: list[str], epsilons: list[float]) -> str:
    """Mean and standard deviation in percent; in brackets the number of repetitions, where it is not ten."""
    titles = " ".join(f"{f'epsilon {epsilon:g}':>14}" for epsilon in epsilons)
    lines = [f"{'data set':14} {'neighbours':18} {'method':28} {titles}"]
    for name in chosen:
        for method, adjacency in ORDER.items():
            cells = [_cell(_of(rows, method, name, epsilon)) for epsilon in epsilons]
            if any(cells):
                lines.append(f"{name:14} {adjacency:18} {method:28} " + " ".join(f"{cell:>14}" for cell in cells))
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    if len(values) < 2:
        return "".join(f"{100 * value:.1f}" for value in values)
    few = "" if len(values) == 10 else f" [{len(values)}]"
    return f"{100 * statistics.mean(values):.1f} ± {100 * statistics.stdev(values):.1f}{few}"


def _draw(rows: list[Row], chosen: list[str], epsilons: list[float], path: Path) -> None:
    matplotlib.use("Agg")
    figure = Figure(figsize=(11, 7), layout="constrained")
    for place, name in enumerate(chosen):
        axes = figure.add_subplot(2, 2, place + 1)
        for method in ORDER:
            _curve(axes, rows, method, name, epsilons)
        axes.set_title(name)
        axes.set_xscale("log", base=2)
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.set_xlabel(f"epsilon, delta = {DELTA:g}")
        axes.set_ylabel("test accuracy, %")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _curve(axes: Any, rows: list[Row], method: str, name: str, epsilons: list[float]) -> None:
    values = [_of(rows, method, name, epsilon) for epsilon in epsilons]
    if method == LIMIT and values[0]:
        axes.axhline(100 * values[0][0], color="black", linestyle=":", label=LIMIT)
    elif all(values):
        means = [100 * statistics.mean(one) for one in values]
        spread = [100 * statistics.pstdev(one) for one in values]
        told = f"{method} ({ORDER[method]})"
        axes.errorbar(epsilons, means, spread, marker="o", markersize=4, capsize=3, label=told)


if __name__ == "__main__":
    main()
