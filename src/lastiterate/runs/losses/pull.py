"""Probabilities of classes under a limit on what wrong ones may get: softmax gradients that are short and still convex."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up


@dataclass(frozen=True)
class PullLimit:
    """The wrong classes get a probability of at most `pull` together, and of pull/4 each (pull/2 of three classes, …).

    Probabilities above these limits are replaced by the most likely ones within them. The result is the gradient of a convex
    function that is as smooth as the softmax loss (docs/proofs.md).
    """

    pull: float
    classes: int

    @property
    def parts(self) -> int:
        """How many wrong classes it takes to exhaust the pull."""
        return min(4, self.classes - 1)

    @property
    def gradient_bound(self) -> float:
        """Of the gradient in the scores: (pull, and as many equal parts of it)."""
        return up(self.pull * math.sqrt(1 + 1 / self.parts))  # probabilities are rounded


def limit_shares(shares: Floats, scores: Floats, places: np.ndarray, limit: PullLimit) -> None:
    """Where `shares`, those of the softmax, exceed the limit, put the limited ones; `places` are the true classes."""
    rows = np.arange(len(shares))
    wrong = shares.copy()
    wrong[rows, places] = 0.0
    over = (wrong.max(axis=1) > limit.pull / limit.parts) | (wrong.sum(axis=1) > limit.pull)
    if over.any():
        shares[over] = limited(scores[over], places[over], limit)


def limited(scores: Floats, places: np.ndarray, limit: PullLimit) -> Floats:
    """argmax of ⟨p, scores⟩ + entropy(p) over probabilities p within the limit.

    Wrong classes get min(cap, e^(score + shift)) for some shift; the true one the rest, which is e^(score + shift) as well
    unless that leaves the wrong ones more than the pull.
    """
    rows = np.arange(len(scores))
    wrong = scores.astype(np.float64)
    true = wrong[rows, places]
    wrong[rows, places] = -np.inf
    cap = limit.pull / limit.parts
    found = _capped(wrong, true, 1.0, cap)
    too_much = found.sum(axis=1) > limit.pull
    found[too_much] = _capped(wrong[too_much], np.full(too_much.sum(), -np.inf), limit.pull, cap)
    found[rows, places] = 1 - found.sum(axis=1)
    return found


def _capped(scores: Floats, free: Floats, total: float, cap: float) -> Floats:
    """min(cap, e^(scores + shift)), with the shift at which these and e^(free + shift) add up to the total, row by row.

    One of the possible numbers of classes at their cap fits: the first at which the next class stays below it. In
    logarithms, because scores may lie thousands apart.
    """
    largest = -np.sort(-scores, axis=1)  # the last is the true class, at −∞
    rest = np.logaddexp(np.logaddexp.accumulate(largest[:, ::-1], axis=1)[:, ::-1], free[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):  # all at their cap and nothing free: never the first that fits
        shifts = np.log(np.maximum(total - np.arange(largest.shape[1]) * cap, 0.0)) - rest
        fits = shifts + largest <= np.log(cap) + 1e-12
    shift = shifts[np.arange(len(scores)), fits.argmax(axis=1)]
    return np.minimum(cap, np.exp(np.minimum(scores + shift[:, None], 0.0)))
