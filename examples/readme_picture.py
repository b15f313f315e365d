"""Draws docs/images/epsilon-against-epochs.svg: ε of the MNIST run of Bok et al. 2024, by older and by newer theorems."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import lastiterate as li

DELTA = 1e-5
EPOCHS = [int(count) for count in np.unique(np.round(np.geomspace(1, 1000, 28)))]
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "epsilon-against-epochs.svg"


def run_of(batches: type, epochs: int) -> li.Run:
    loss = li.losses.logistic(feature_norm=8.0, l2=0.002, clip=5.0)
    return li.Run(loss, batches(60_000, 1_500), 0.05, li.OnMeanGradient(std=0.01), li.epochs(epochs))


def epsilon(batches: type, epochs: int, theorem: str | None = None) -> float:
    """By one theorem, or the smallest that is proved."""
    report = li.account(run_of(batches, epochs), DELTA)
    named = {one.theorem.name: value for one, value in zip(report.guarantees, report.epsilons, strict=True)}
    return report.epsilon if theorem is None else named[theorem]


# The curve's name, its values, its colour and style, and where its label stands: epochs, height.
CURVES = [
    (
        "every iterate released",
        [epsilon(li.Cyclic, count, "bok2024/cyclic/composition") for count in EPOCHS],
        ("#777777", "-"),
        (48, 24.5),
    ),
    (
        "Ye & Shokri 2022, cyclic",
        [epsilon(li.Cyclic, count, "ye2022/shuffled") for count in EPOCHS],
        ("#c98500", "-"),
        (5.2, 5.2),
    ),
    (
        "Bok et al. 2024, cyclic",
        [epsilon(li.Cyclic, count, "bok2024/cyclic/strongly-convex") for count in EPOCHS],
        ("#0072b2", "-"),
        (1.15, 1.55),
    ),
    ("lastiterate, shuffled", [epsilon(li.Shuffled, count) for count in EPOCHS], ("#d55e00", "-"), (190, 4.6)),
    (
        "lower bound, shuffled",
        [li.lower_bound(run_of(li.Shuffled, count), DELTA).epsilon for count in EPOCHS],
        ("black", ":"),
        (30, 0.4),
    ),
]

matplotlib.rcParams["svg.hashsalt"] = "lastiterate"
figure = Figure(figsize=(8, 4.2), layout="constrained")
axes = figure.add_subplot()
for name, values, (colour, line), place in CURVES:
    axes.plot(EPOCHS, values, line, color=colour, linewidth=2.4 if name.startswith("lastiterate") else 1.6)
    axes.text(*place, name, color=colour, fontsize=9.5)
axes.set_xscale("log")
axes.set_ylim(0, 28)
axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
axes.set_title("Only the last iterate released: ε grows slowly, then levels off", loc="left", fontsize=11)
axes.set_xlabel("epochs (60,000 records, batches of 1,500, convex loss)")
axes.set_ylabel(f"ε at δ = {DELTA:g}")
axes.grid(alpha=0.25)
PICTURE.parent.mkdir(exist_ok=True)
figure.savefig(PICTURE, metadata={"Date": None})
for name, values, _, _ in CURVES:
    print(f"{name:24} epsilon {values[-1]:8.3f} after {EPOCHS[-1]} epochs")
