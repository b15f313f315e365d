"""Draws docs/images/earlier-noise.svg, ε against epochs. `python -m examples.earlier_noise_picture`."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from benchmarks.tightness.earlier_noise import DELTA, ORDERS, Row, bounds, logistic
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STEP_SIZE = 0.4
PASSES = [int(count) for count in np.unique(np.round(np.geomspace(1, 100, 20)))]
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "earlier-noise.svg"
COLOURS = {"composition": "#999999", "papers": "#e69f00", "engine": "#0072b2", "hidden": "#009e73", "ours": "#d55e00"}
KNOWN_ORDER = {
    "composition": ("every iterate released: composition", COLOURS["composition"], "-"),
    "papers": ("best theorem of the papers, corrected", COLOURS["papers"], "-"),
    "engine": ("shift engine (equal here)", COLOURS["engine"], "--"),
    "prepaid": ("prepayment", COLOURS["ours"], "-"),
    "chain": ("best linear chain: no bound of this kind is below", "black", ":"),
}
SECRET_ORDER = {
    "composition": ("every iterate released: composition", COLOURS["composition"], "-"),
    "papers": ("best theorem of the papers (equal here)", COLOURS["papers"], "--"),
    "engine": ("shift engine, averaged over the record's position", COLOURS["engine"], "-"),
    "hidden": ("hidden place alone", COLOURS["hidden"], "-"),
    "both": ("prepayment and hidden place", COLOURS["ours"], "-"),
    "instance": ("lower bound", "black", ":"),
}


def draw(axes: Axes, title: str, rows: list[Row], curves: dict[str, tuple[str, str, str]]) -> None:
    for name, (label, colour, line) in curves.items():
        width = 2.4 if colour == COLOURS["ours"] else 1.6
        axes.plot(PASSES, [row[name] for row in rows], line, color=colour, label=label, linewidth=width)
    axes.set_title(title, fontsize=10)
    axes.set_xscale("log")
    axes.set_ylim(0, 18)
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_xlabel("epochs")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize=9)


def main() -> None:
    matplotlib.rcParams["svg.hashsalt"] = "lastiterate"
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    panels = (
        (left, "Cyclic batches: the order is known", "cyclic", KNOWN_ORDER),
        (right, "A new secret order each epoch", "reshuffled", SECRET_ORDER),
    )
    for axes, title, order, curves in panels:
        rows = [bounds(logistic(ORDERS[order], STEP_SIZE, passes)) for passes in PASSES]
        draw(axes, title, rows, curves)
        last = {label: round(float(rows[-1][name] or 0.0), 3) for name, (label, _, _) in curves.items()}
        print(f"{title}, after {PASSES[-1]} epochs: {last}")
    left.set_ylabel(f"ε at δ = {DELTA:g}")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
