"""Test accuracy against ε, one panel for each data set."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy import without_privacy
from benchmarks.accuracy.rows import DELTA, Row
from benchmarks.accuracy.verdict import ORDER, scores


def draw(rows: list[Row], names: Sequence[str], epsilons: Sequence[float], path: Path) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    lines = -(-len(names) // 2)
    figure = Figure(figsize=(11, 3.5 * lines), layout="constrained")
    for place, name in enumerate(names):
        axes = figure.add_subplot(lines, 2, place + 1)
        for adjacency, method in ORDER:
            _curve(axes, rows, method, adjacency, name, epsilons)
        axes.set_title(name)
        axes.set_xscale("log", base=2)
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.set_xlabel(f"epsilon, delta = {DELTA:g}")
        axes.set_ylabel("test accuracy, %")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _curve(
    axes: Any, rows: list[Row], method: str, adjacency: str | None, name: str, epsilons: Sequence[float]
) -> None:
    values = [[*scores(rows, method, adjacency, name, epsilon).values()] for epsilon in epsilons]
    if method == without_privacy.NAME and values[0]:
        axes.axhline(100 * values[0][0], color="black", linestyle=":", label=method)
    elif all(values):
        means = [100 * statistics.mean(one) for one in values]
        spread = [100 * statistics.pstdev(one) for one in values]
        axes.errorbar(epsilons, means, spread, marker="o", markersize=4, capsize=3, label=f"{method} ({adjacency})")
