"""A few dots of a privacy profile whose chords lie close above it: where each point takes its time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lastiterate.curves.best import Best
from lastiterate.curves.compose import largest_loss
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.numerics.arrays import Floats

# δ, and how many dots lie between it and the δ before: most where people ask.
_DOTS = ((1e-2, 40), (1e-4, 60), (1e-7, 80), (1e-10, 40), (1e-13, 20), (1e-16, 20))


def dotted(notion: Notion) -> Profile:
    """The profile on about 260 dots, equally far apart in log δ between the δ of the list.

    Of several guarantees for one release only those that are the best at one of these δ are asked: every choice is valid.
    """
    members = notion.members if isinstance(notion, Best) else (notion,)
    thresholds = np.array([member._epsilon(np.log([delta for delta, _ in _DOTS])) for member in members])
    useful = sorted({int(np.argmin(column)) for column in thresholds.T})
    epsilons = _places(thresholds.min(axis=0), notion)
    deltas = np.min([np.asarray(members[index].delta(epsilons)) for index in useful], axis=0)
    return Profile(epsilons=epsilons, deltas=deltas, adjacency=notion.adjacency)


def _places(thresholds: Floats, notion: Notion) -> Floats:
    if not np.isfinite(thresholds).all():
        thresholds = np.minimum(thresholds, largest_loss(notion))
    ends = np.append(0.0, np.minimum(np.maximum.accumulate(thresholds), 500.0))
    pieces = [np.linspace(*pair, count + 1) for pair, (_, count) in zip(pairwise(ends), _DOTS, strict=True)]
    return np.unique(np.concatenate(pieces))
