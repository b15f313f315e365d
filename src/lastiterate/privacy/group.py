"""Two steps from one data set to another: what replacing a record costs, where taking it away and putting one in is known.

With S the data set in between, E_{a+b}(P‖Q) ≤ E_a(P‖S) + e^a·E_b(S‖Q) for every a and b, also below 0.
"""

from __future__ import annotations

import math

import numpy as np

from lastiterate.numerics.rounding import up
from lastiterate.privacy.adjacency import Adjacency
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.profile import LARGEST_TABLED, Profile

_POINTS = 96  # of the profile, on either side of 0: every two of them give a point
_LOGS_SMALL = tuple(math.log(small) for small in (1e-30, 1e-15, 1e-10, 1e-5))  # where the points end, if δ gets there
_MOST = LARGEST_TABLED / 2 - 1


def of_two(notion: Notion, adjacency: Adjacency) -> Notion:
    """Of data sets with one between them that is a neighbour of both; exact for Gaussian differential privacy."""
    if isinstance(notion, GaussianDP):
        return GaussianDP(up(2 * notion.mu), adjacency)
    epsilons = _largest(notion) * np.linspace(0.0, 1.0, _POINTS) ** 1.5
    deltas = np.asarray(notion.delta(epsilons))
    mirrored = up(-np.expm1(-epsilons[:0:-1]) + np.exp(-epsilons[:0:-1]) * deltas[:0:-1])
    signed, values = np.append(-epsilons[:0:-1], epsilons), np.append(mirrored, deltas)
    together = up(values[:, None] + np.exp(signed)[:, None] * values)
    sums = signed[:, None] + signed
    kept = sums >= 0
    return Profile(epsilons=up(sums[kept]), deltas=np.minimum(together[kept], 1.0), adjacency=adjacency)


def _largest(notion: Notion) -> float:
    found = (float(notion._epsilon(np.array([log_small]))[0]) for log_small in _LOGS_SMALL)
    return min(next((one for one in found if math.isfinite(one)), _MOST), _MOST)
