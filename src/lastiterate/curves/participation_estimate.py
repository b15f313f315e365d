"""Hidden participation without its law: what it is compared with before anything is computed. Estimates, never reported.

All faces of a convex minorant have the slope of their sum at least in the mean, so that a window of k steps with h heads
costs about k·ψ(h/k) or more, ψ convex and below the cost of a step on a face of each slope.
"""

from __future__ import annotations

import numpy as np
from scipy.special import bdtr

from lastiterate.curves.hidden_participation import hidden_participation
from lastiterate.curves.profile import Profile
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.convex import lower_hull
from lastiterate.numerics.minorant_law import face_costs

_SLOPES = 400  # of faces that ψ is drawn through
_GAPS = 60  # steps before the end at which a last turn is looked at by itself
_HEADS = 200
_NEGLIGIBLE = 1e-16


def _per_step(slopes: Floats, factor: float) -> Floats:
    """ψ: the greatest convex function below the cost of a step on faces of these slopes."""
    if factor >= 1:
        return np.square(slopes)
    points = np.linspace(0.0, 1.0, _SLOPES + 1)[1:] ** 3
    costs = face_costs(np.ones_like(points), 1 / points, factor) * points
    return np.asarray(np.interp(slopes, *lower_hull(np.append(0.0, points), np.append(0.0, costs))))


def _rough_law(length: int, rate: float, factor: float) -> tuple[Floats, Floats]:
    """Costs with probabilities: of all heads spread evenly, or of the last head alone, whichever is more."""
    heads = np.unique(np.linspace(1, length, min(length, _HEADS)).round())
    gaps = np.arange(1.0, min(length, _GAPS) + 1)
    of_heads, of_gaps = length * _per_step(heads / length, factor), face_costs(np.ones_like(gaps), gaps, factor)
    costs = np.unique(np.concatenate([[0.0], of_heads, of_gaps]))
    most = np.concatenate([[0.0], heads])[np.searchsorted(of_heads, costs, side="right")]
    free = len(gaps) - np.searchsorted(of_gaps[::-1], costs, side="right")
    below = (1 - rate) ** free * bdtr(np.minimum(most, length - free), length - free, rate)
    chances = np.diff(np.maximum.accumulate(below), prepend=0.0)
    kept = chances > _NEGLIGIBLE
    return costs[kept], chances[kept]


def rough_window(length: int, rate: float, mu: float, factor: float) -> Profile:
    """About the profile of one window, and mostly below it."""
    costs, chances = _rough_law(length, rate, factor)
    return hidden_participation(mu * np.sqrt(costs), chances, 0.0)
