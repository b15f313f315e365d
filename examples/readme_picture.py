"""Draws docs/images/epsilon-against-epochs.svg: epsilon of the MNIST run of Bok et al. 2024, as more and more is proved."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import lastiterate as li

DELTA = 1e-5
PASSES = [int(count) for count in np.unique(np.round(np.geomspace(1, 1000, 28)))]
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "epsilon-against-epochs.svg"


def epsilon(batches: type, passes: int, theorem: str | None = None) -> float:
    """By one theorem, or the smallest that is proved."""
    loss = li.losses.logistic(feature_norm=8.0, l2=0.002, clip=5.0)
    run = li.Run(loss, batches(60_000, 1_500), 0.05, li.OnMeanGradient(std=0.01), li.epochs(passes))
    report = li.account(run, DELTA)
    named = {one.theorem.name: value for one, value in zip(report.guarantees, report.epsilons, strict=True)}
    return report.epsilon if theorem is None else named[theorem]


def lower(passes: int) -> float:
    loss = li.losses.logistic(feature_norm=8.0, l2=0.002, clip=5.0)
    run = li.Run(loss, li.Shuffled(60_000, 1_500), 0.05, li.OnMeanGradient(std=0.01), li.epochs(passes))
    return li.lower_bound(run, DELTA).epsilon


CURVES = {
    "every iterate released: composition": (
        [epsilon(li.Cyclic, passes, "bok2024/cyclic/composition") for passes in PASSES],
        "#999999",
        "-",
    ),
    "last iterate: Ye & Shokri 2022": (
        [epsilon(li.Cyclic, passes, "ye2022/shuffled") for passes in PASSES],
        "#e69f00",
        "-",
    ),
    "last iterate: Bok et al. 2024, Theorem 4.5": (
        [epsilon(li.Cyclic, passes, "bok2024/cyclic/strongly-convex") for passes in PASSES],
        "#0072b2",
        "-",
    ),
    "last iterate, order of records hidden: lastiterate": (
        [epsilon(li.Shuffled, passes) for passes in PASSES],
        "#d55e00",
        "-",
    ),
    "lower bound: an allowed loss has at least this ε": ([lower(passes) for passes in PASSES], "black", ":"),
}

matplotlib.rcParams["svg.hashsalt"] = "lastiterate"
figure = Figure(figsize=(8, 4.2), layout="constrained")
axes = figure.add_subplot()
for name, (values, colour, line) in CURVES.items():
    axes.plot(PASSES, values, line, color=colour, label=name, linewidth=2.2 if "lastiterate" in name else 1.6)
axes.set_xscale("log")
axes.set_ylim(0, 28)
axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
axes.set_xlabel("epochs")
axes.set_ylabel(f"epsilon at delta = {DELTA:g}")
axes.grid(alpha=0.25)
axes.legend(frameon=False, loc="upper right", fontsize=9)
PICTURE.parent.mkdir(exist_ok=True)
figure.savefig(PICTURE, metadata={"Date": None})
for name, (values, _, _) in CURVES.items():
    print(f"{name:52} epsilon {values[-1]:8.3f} after {PASSES[-1]} epochs")
