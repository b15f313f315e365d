"""`make tried`: the estimators' constants halved and doubled, and what was tried instead, on simulated problems.

Means of test accuracy (of regressions, 100·R², no less than −50) over problems, at ε = 0.5, 2 and 8, for a record that is
zeroed out and one that is replaced. All variants see the same problems with the same seeds.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import softmax

import lastiterate as li
from benchmarks.accuracy.datasets import Dataset
from benchmarks.accuracy.rows import DELTA
from benchmarks.accuracy.simulated import classification, regression
from lastiterate.estimators import (
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivatePreparation,
)

EPSILONS = (0.5, 2.0, 8.0)
ADJACENCIES = (li.ZERO_OUT, li.REPLACE_ONE)
Fit = Callable[[Dataset, float, Any, int], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    titles = " ".join(f"{f'{name} {epsilon:g}':>8}" for name in ("zero", "repl") for epsilon in EPSILONS)
    for problem, variants in ((classification, CLASSIFIERS), (regression, REGRESSIONS)):
        print(f"{problem.__name__ + ', ' + str(arguments.problems) + ' problems':46} {titles}     mean")
        for name, fit in variants.items():
            jobs = (delayed(_scores)(problem, fit, seed) for seed in range(arguments.problems))
            means = np.array(Parallel(arguments.workers)(jobs)).mean(axis=0)
            print(f"{name:46} {' '.join(f'{one:8.1f}' for one in means)} {means.mean():8.2f}", flush=True)


def _scores(problem: Callable[[int], Dataset], fit: Fit, seed: int) -> list[float]:
    data = problem(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seeds, so that the table can be made again
        return [100 * max(-0.5, fit(data, epsilon, one, seed)) for one in ADJACENCIES for epsilon in EPSILONS]


def _ours(kind: Any, guess: dict[str, float], given: dict[str, Any], *fitted: Any) -> float:
    """An estimator with other settings, or with another guess about data."""
    data, epsilon, adjacency, seed = fitted
    bounds = {"classes": range(data.classes)} if data.classes else {"target_bound": 1.0}
    model = _guessing(kind, guess)(
        epsilon, DELTA, **{"feature_norm": 1.0, **given}, **bounds, adjacency=adjacency, random_state=seed
    )
    return float(model.fit(data.train_features, data.train_labels).score(data.test_features, data.test_labels))


def _guessing(kind: Any, guess: dict[str, float]) -> Any:
    class Guessing(kind):  # type: ignore[misc]
        __init__ = kind.__init__

        def _guess(self, loss: Any) -> Any:
            return replace(super()._guess(loss), **guess)

    return Guessing


def _executed(change: Callable[[li.Run], li.Run], *fitted: Any) -> float:
    """The classifier, with a run that is changed before its noise is calibrated."""

    class Changed(PrivateLogisticRegression):
        __init__ = PrivateLogisticRegression.__init__

        def _run(self, *given: Any) -> li.Run:
            return change(super()._run(*given))

    return _ours(Changed, {}, {}, *fitted)


def _with_noise_along(run: li.Run, last: float) -> li.Run:
    """That changes evenly from the first step to the last, which has so many times as much."""
    sizes = np.geomspace(1.0, last, run.steps) * run.noise.multiplier  # type: ignore[attr-defined]
    return replace(run, noise=replace(run.noise, multiplier=tuple(sizes.tolist())))


def _decaying(run: li.Run) -> li.Run:
    """Steps that fade like a cosine, the last iterate instead of a mean; twice as long, so that they lead as far."""
    return replace(run, step_size=li.cosine(2 * run.step_size), released=li.LAST)  # type: ignore[operator]


CHANGES: dict[str, Callable[[li.Run], li.Run]] = {
    "Nesterov's momentum": lambda run: replace(run, optimizer=li.SGD(momentum=0.9, nesterov=True)),
    "momentum 0.8 (and steps twice as long)": lambda run: replace(
        run,
        optimizer=li.SGD(momentum=0.8),
        step_size=2 * run.step_size,  # type: ignore[operator]
    ),
    "steps that fade, last iterate released": _decaying,
    "noise that falls to a third": lambda run: _with_noise_along(run, 1 / 3),
    "noise that grows threefold": lambda run: _with_noise_along(run, 3.0),
    "the last iterate instead of the mean": lambda run: replace(run, released=li.LAST),
}


def _ensemble(clips: tuple[float, ...], *fitted: Any) -> float:
    """Scores of several models added up, each with its part of mu²."""
    data, epsilon, adjacency, seed = fitted
    share = float(li.notions.GaussianDP(_mu(epsilon) / math.sqrt(len(clips))).epsilon(DELTA))
    scores = 0.0
    for place, clip in enumerate(clips):
        model = PrivateLogisticRegression(
            share,
            DELTA,
            feature_norm=1.0,
            classes=range(data.classes),
            clip=clip,
            adjacency=adjacency,
            random_state=seed + 1000 * place,
        )
        model.fit(data.train_features, data.train_labels)
        scores = scores + model.predict_log_proba(data.test_features)
    return float(np.mean(np.argmax(scores, axis=1) == data.test_labels))


def _newton(rounds: int, *fitted: Any) -> float:
    """A fifth of mu² for second moments, half of which bounds the curvature of a softmax; the rest for clipped gradients."""
    data, epsilon, adjacency, seed = fitted
    mu, source = _mu(epsilon), np.random.default_rng(seed)
    share = float(li.notions.GaussianDP(math.sqrt(0.11) * mu).epsilon(DELTA))
    preparation = PrivatePreparation(share, DELTA, feature_norm=1.0, reach=1.0, adjacency=adjacency, random_state=seed)
    rows, test = (
        np.column_stack([part, np.full(len(part), 0.3)]) / math.sqrt(1.09)
        for part in (preparation.fit_transform(data.train_features), preparation.transform(data.test_features))
    )
    moments, noise = _noisy_moments(rows, math.sqrt(0.2) * mu, adjacency, source)
    bound = np.linalg.inv(moments / 2 + 2 * noise * math.sqrt(len(moments)) * np.eye(len(moments)))
    change = 0.3 * (2 if adjacency.replaces else 1) / len(rows)
    spread = change / (math.sqrt(0.69 / rounds) * mu)
    weights, targets = np.zeros((rows.shape[1], data.classes)), np.eye(data.classes)[data.train_labels]
    for _ in range(rounds):
        wrong = softmax(rows @ weights, axis=1) - targets
        lengths = np.linalg.norm(wrong, axis=1) * np.linalg.norm(rows, axis=1)
        gradient = (rows * np.minimum(1, 0.3 / np.maximum(lengths, 1e-12))[:, None]).T @ wrong / len(rows)
        weights -= bound @ (gradient + spread * source.normal(size=gradient.shape))
    return float(np.mean(np.argmax(test @ weights, axis=1) == data.test_labels))


def _mu(epsilon: float) -> float:
    return li.notions.largest_mu(epsilon=epsilon, delta=DELTA)


def _whitened(power: float, data: Dataset, epsilon: float, adjacency: Any, seed: int) -> float:
    """A tenth of mu² for second moments of prepared rows, which are then whitened by this power."""
    mu, source = _mu(epsilon), np.random.default_rng(seed)
    share = math.sqrt(0.11) * mu
    preparation = PrivatePreparation(
        float(li.notions.GaussianDP(share).epsilon(DELTA)),
        DELTA,
        feature_norm=1.0,
        reach=1.0,
        adjacency=adjacency,
        random_state=seed,
    )
    rows, test = preparation.fit_transform(data.train_features), preparation.transform(data.test_features)
    moments, noise = _noisy_moments(rows, math.sqrt(0.1) * mu, adjacency, source)
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, 2 * noise * math.sqrt(len(values)))
    turned = vectors * values**-power / math.sqrt(np.sum(values ** (1 - 2 * power)))
    whitened = replace(data, train_features=rows @ turned, test_features=test @ turned)
    left = float(li.notions.GaussianDP(mu * math.sqrt(1 - 0.21)).epsilon(DELTA))
    return _ours(
        PrivateLogisticRegression, {}, {"preparation": None, "feature_norm": 2.0}, whitened, left, adjacency, seed
    )


def _noisy_moments(rows: np.ndarray, mu: float, adjacency: Any, source: Any) -> tuple[np.ndarray, float]:
    """Of rows no longer than 1: of the symmetric matrix, one record moves the Frobenius norm by 1, or by √2."""
    width = rows.shape[1]
    noise = (math.sqrt(2) if adjacency.replaces else 1.0) / (mu * len(rows))
    drawn = np.triu(source.normal(size=(width, width)))
    drawn = np.where(np.eye(width, dtype=bool), drawn, (drawn + np.triu(drawn, 1).T) / math.sqrt(2))
    return rows.T @ rows / len(rows) + noise * drawn, noise


def _by_moments(data: Dataset, epsilon: float, adjacency: Any, seed: int) -> float:
    """Least squares from noisy moments, with a ridge as large as their noise (as AdaSSP): half of what is left for each."""
    mu, source = _mu(epsilon), np.random.default_rng(seed)
    together = np.column_stack([data.train_features, np.clip(data.train_labels, -1, 1)]) / math.sqrt(2)
    share = float(li.notions.GaussianDP(math.sqrt(0.11) * mu).epsilon(DELTA))
    preparation = PrivatePreparation(share, DELTA, feature_norm=1.0, reach=1.5, adjacency=adjacency, random_state=seed)
    rows = preparation.fit_transform(together) / 1.5
    moments, noise = _noisy_moments(rows, math.sqrt(0.89) * mu, adjacency, source)
    ridge = noise * math.sqrt(2 * len(moments)) * np.eye(len(moments) - 1)
    weights = np.linalg.solve(moments[:-1, :-1] + ridge, moments[:-1, -1])
    center, root = preparation.center_, math.sqrt(2)
    predicted = (data.test_features / root - center[:-1]) @ weights + center[-1]
    return float(1 - np.mean(np.square(predicted * root - data.test_labels)) / np.var(data.test_labels))


def _variants(kind: Any, *others: tuple[str, dict[str, float], dict[str, Any]]) -> dict[str, Fit]:
    return {name: partial(_ours, kind, guess, given) for name, guess, given in others}


CLASSIFIERS: dict[str, Fit] = {
    **_variants(
        PrivateLogisticRegression,
        ("PrivateLogisticRegression", {}, {}),
        ("no preparation", {}, {"preparation": None}),
        ("half the steps' length", {"spread": 0.9}, {}),
        ("twice the steps' length", {"spread": 3.6}, {}),
        ("gradients clipped at 0.15", {}, {"clip": 0.15}),
        ("gradients clipped at 1", {}, {"clip": 1.0}),
        ("60 steps instead of 250", {}, {"passes": 60, "batches": 1}),
        ("l2 of 0.001", {}, {"l2": 0.001}),
        ("10 passes, hidden iterates, 20 batches", {}, {"batches": 20, "epochs": 10}),
    ),
    **{name: partial(_executed, change) for name, change in CHANGES.items()},
    "3 rounds of private Newton steps": partial(_newton, 3),
    "10 rounds of private Newton steps": partial(_newton, 10),
    "mean of two models, clips 0.15 and 0.6": partial(_ensemble, (0.15, 0.6)),
    "half-whitened by private second moments": partial(_whitened, 0.25),
    "whitened by private second moments": partial(_whitened, 0.5),
    **_variants(PrivateLinearSVC, ("PrivateLinearSVC", {}, {})),
}
REGRESSIONS: dict[str, Fit] = {
    **_variants(
        PrivateLinearRegression,
        ("PrivateLinearRegression", {}, {}),
        ("no preparation", {}, {"preparation": None}),
        ("half the steps' length", {"spread": 0.25}, {}),
        ("twice the steps' length", {"spread": 1.0}, {}),
        ("gradients clipped at 0.12", {}, {"clip": 0.12}),
        ("gradients clipped at 0.5", {}, {"clip": 0.5}),
        ("gradients clipped at 1", {}, {"clip": 1.0}),
    ),
    "noisy second moments, ridge (as AdaSSP)": _by_moments,
}

if __name__ == "__main__":
    main()
