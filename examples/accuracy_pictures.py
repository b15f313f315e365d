"""Accuracy against epsilon, on the data of a tutorial: the median of ten fits, and their range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from examples.picture_style import BLACK, GREY, RED, name, picture, save
from lastiterate.estimators import EachRow, PrivateLogisticRegression

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
FITS = 10


def data_scientist(names: dict[str, Any]) -> None:
    figure, axes = picture("Breast cancer data, 398 training records: accuracy on the other 171")

    def fitted(model: Any) -> Any:
        scaled = EachRow(lambda rows: rows / names["scales"])
        return make_pipeline(scaled, Normalizer(), model).fit(names["train_x"], names["train_y"])

    def private(epsilon: float, seed: int) -> Any:
        return PrivateLogisticRegression(epsilon, 1e-5, feature_norm=1.0, classes=[0, 1], random_state=seed)

    draw(axes, fitted, private, names["test_x"], names["test_y"])
    axes.set(xlabel="ε at δ = 1e-5, replace one")
    save(figure, "data-scientist")


def pandas(names: dict[str, Any]) -> None:
    figure, axes = picture("4,000 customers: accuracy on the 1,000 test rows")

    def fitted(model: Any) -> Any:
        return make_pipeline(names["columns"], model).fit(names["train"], names["train_labels"])

    def private(epsilon: float, seed: int) -> Any:
        bounds: dict[str, Any] = {"feature_norm": 5**0.5, "classes": ["no", "yes"]}
        return PrivateLogisticRegression(epsilon, 1e-6, **bounds, random_state=seed)

    draw(axes, fitted, private, names["test"], names["test_labels"])
    axes.set(xlabel="ε at δ = 1e-6, replace one")
    save(figure, "pandas")


def draw(
    axes: Axes, fitted: Callable[[Any], Any], private: Callable[[float, int], Any], features: Any, labels: Any
) -> None:
    scores = 100 * np.array(
        [[fitted(private(epsilon, seed)).score(features, labels) for seed in range(FITS)] for epsilon in EPSILONS]
    )
    middle, best = (
        np.median(scores, axis=1),
        100 * fitted(LogisticRegression(C=1e4, max_iter=2000)).score(features, labels),
    )
    guess = 100 * np.unique(labels, return_counts=True)[1].max() / len(labels)
    axes.fill_between(EPSILONS, scores.min(axis=1), scores.max(axis=1), color=RED, alpha=0.15, linewidth=0)
    axes.plot(EPSILONS, middle, "o-", color=RED, linewidth=2.2, markersize=4)
    name(axes, EPSILONS[-1], middle[-1], "median and range\nof ten fits", RED, above=-16)
    for level, text, colour in ((best, "without privacy", BLACK), (guess, "majority class", GREY)):
        axes.axhline(level, linestyle=":", color=colour, linewidth=1.6)
        name(axes, EPSILONS[-1], level, text, colour, above=8)
    axes.set(xscale="log", xlim=(0.09, 22), ylim=(None, best + 3), ylabel="accuracy, %")
    axes.set_xticks(EPSILONS, ["0.1", "¼", "½", "1", "2", "4", "8"])
    axes.minorticks_off()
    print(
        f"median accuracy, %: {dict(zip(EPSILONS, middle.round(1).tolist(), strict=True))}; without privacy {best:.1f}"
    )
