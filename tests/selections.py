"""The best of a random number of trials, exactly: trials with finitely many outcomes, ranked from the worst to the best."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
from scipy.special import ndtr, ndtri

import lastiterate as li
from lastiterate.curves.trials import NegativeBinomial, PoissonTrials, Trials


def generated(trials: Trials, x: np.ndarray) -> np.ndarray:
    """E x^K, from the formulas of Papernot and Steinke 2022."""
    if isinstance(trials, PoissonTrials):
        return np.exp(trials.mean * (x - 1))
    assert isinstance(trials, NegativeBinomial)
    inside = 1 - (1 - trials.stop) * x
    if trials.shape == 0:
        return np.log(inside) / math.log(trials.stop)
    return np.expm1(-trials.shape * np.log(inside)) / math.expm1(-trials.shape * math.log(trials.stop))


def of_the_best(trials: Trials, chances: np.ndarray) -> np.ndarray:
    """The chance of each outcome to be the best; that of no trial at all is the same whatever the data are."""
    return np.diff(generated(trials, np.append(np.append(0.0, np.cumsum(chances)[:-1]), 1.0)))


def hockey_sticks(p: np.ndarray, q: np.ndarray, epsilons: np.ndarray) -> np.ndarray:
    """In the worse order."""
    both = [np.maximum(a - np.exp(epsilons)[:, None] * b, 0.0).sum(axis=1) for a, b in ((p, q), (q, p))]
    return np.maximum(*both)


def profile_of(p: np.ndarray, q: np.ndarray) -> li.notions.Profile:
    """Exact: its kinks are at the losses."""
    kinks = np.unique(np.append(0.0, np.abs(np.log(p / q))))
    return li.notions.Profile(epsilons=kinks, deltas=np.minimum(hockey_sticks(p, q, kinks) + 1e-16, 1.0))


def worst_ranking(trials: Trials, p: np.ndarray, q: np.ndarray, epsilons: np.ndarray) -> np.ndarray:
    """δ of the best of the trials, whichever outcomes are the better ones."""
    found = np.zeros_like(epsilons)
    for order in map(list, permutations(range(len(p)))):
        best_p, best_q = of_the_best(trials, p[order]), of_the_best(trials, q[order])
        found = np.maximum(found, hockey_sticks(best_p, best_q, epsilons))
    return found


def gaussian_cells(mu: float, count: int = 1200) -> tuple[np.ndarray, np.ndarray]:
    """N(μ, 1) and N(0, 1) in cells, from the most likely under the first to the least."""
    edges = np.linspace(-9.0, 9.0 + mu, count + 1)
    upper = [ndtr(-(edges - mean)) for mean in (mu, 0.0)]
    p, q = (-np.diff(one)[::-1] for one in upper)
    return p / p.sum(), q / q.sum()


def delta_of_gaussian_trials(trials: Trials, mu: float, epsilon: float) -> float:
    """δ where outcomes that tell much rank lowest, those that tell most right above them, and all others higher still."""
    p, q = gaussian_cells(mu)
    most = np.searchsorted(np.cumsum(p), [1e-7, 1e-6, 1e-5, 1e-4, 1e-3])
    found = 0.0
    for first in most:
        for second in range(first, len(p), 12):
            order = np.r_[first:second, 0:first, second : len(p)]
            a, b = of_the_best(trials, p[order]), of_the_best(trials, q[order])
            found = max(found, float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()))
    return found


def delta_by_the_integral(trials: Trials, mu: float, epsilon: float) -> float:
    """E Φ(g) of the proof for Gaussian trials, g the likelihood ratio, by quadrature: no pieces and no tables."""
    tails = np.append(np.geomspace(1e-12, 1.0, 2000), np.linspace(0.0, 1.0, 2001))
    heights, others = (slope(trials, worse) for worse in (1 - tails, ndtr(-ndtri(tails) - mu)))
    points = np.linspace(-8.0, 10.0 + mu, 4001)
    density = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    ratios = np.exp(mu * points - mu**2 / 2)
    largest = [max(float((heights * ratio - math.exp(epsilon) * others).max()), 0.0) for ratio in ratios]
    return float(np.trapezoid(density * np.array(largest), points))


def slope(trials: Trials, x: np.ndarray) -> np.ndarray:
    """f'(x), f as above, from the same formulas."""
    if isinstance(trials, PoissonTrials):
        return trials.mean * np.exp(trials.mean * (x - 1))
    assert isinstance(trials, NegativeBinomial)
    inside = (1 - (1 - trials.stop) * x) / trials.stop
    return trials.mean * inside ** -(1 + trials.shape)
