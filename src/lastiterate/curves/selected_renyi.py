"""The best of a random number of trials in Rényi divergences: Papernot and Steinke 2022, Theorems 2 and 6.

At every order α the divergence is at most ρ(α) + c(α) + log(mean)/(α − 1), where c(α) bounds by how much f' can differ on
the two data sets. Proofs, also for numbers of trials that may be 0 or are less than 1 on average: docs/proofs.md.
"""

from __future__ import annotations

import math

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.renyi import DEFAULT_ORDERS, RenyiDP
from lastiterate.curves.trials import NegativeBinomial, PoissonTrials, Trials
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up


def has_divergences(notion: Notion) -> bool:
    """Whether it knows Rényi divergences at once."""
    return isinstance(notion, GaussianDP | RenyiDP)


def selected_renyi(trial: Notion, trials: Trials) -> RenyiDP:
    """The curve of the best of so many trials, at the orders of one trial."""
    known = np.array(trial.orders) if isinstance(trial, RenyiDP) and trial.rho is None else DEFAULT_ORDERS
    divergences = np.asarray(trial.rdp(known))
    paid = _difference(trial, trials, known, divergences) + math.log(trials.mean) / (known - 1)
    together = divergences + np.maximum(paid, 0.0)
    finite = np.isfinite(together)
    return RenyiDP(orders=known[finite], divergences=up(together[finite]), adjacency=trial.adjacency)


def _difference(trial: Notion, trials: Trials, orders: Floats, divergences: Floats) -> Floats:
    match trials:
        case NegativeBinomial():
            least = ((1 - 1 / orders) * divergences - math.log(trials.stop) / orders).min()
            return np.full_like(orders, up((1 + trials.shape) * float(least)))
        case PoissonTrials():
            deltas = np.asarray(trial.delta(np.log1p(1 / (orders - 1))))
            # Bretagnolle and Huber: the total variation, from the divergence at the least order.
            variation = math.sqrt(-math.expm1(-float(divergences.min())))
            return up(trials.mean * np.minimum(deltas, variation))
    return np.full_like(orders, math.inf)
