"""The best of a random number of trials: its profile, from that of one trial.

A trial is better than z with probability `tail` on one data set, and on the other it is worse with probability u at least
T(tail), T the trade-off function. The best of the trials has density f'(1 − tail)·g relative to that, against f'(u) on the
other data set, g the likelihood ratio of one trial. So δ(ε) is at most E Φ(g), Φ(x) = sup over tails of
(f'(1 − tail)·x − e^ε·f'(T(tail)))₊, a convex function of x: a sum of (x − e^ε·κ)₊ with weights, which makes δ(ε) a sum of
profiles of one trial at shifted ε. Proof: docs/proofs.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.curves.trials import Trials
from lastiterate.numerics.arrays import ROUNDOFF, Floats
from lastiterate.numerics.convex import lower_hull
from lastiterate.numerics.rounding import down, up

_POINTS = 1025  # of f', a geometric grid: the error falls with their square


@dataclass(frozen=True, eq=False)
class Selected(Notion):
    """Of the best of so many trials, where one trial is quick to ask."""

    trial: Notion
    trials: Trials

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.trial.adjacency

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, trial=self.trial.relabelled(adjacency))

    @cached_property
    def pieces(self) -> tuple[Floats, Floats]:
        """(log κ, weights): δ(ε) ≤ Σ weight·δ_trial(ε + log κ). The weights add up to the mean number of trials."""
        heights, others = self._heights()
        heights, others = lower_hull(np.append(0.0, heights), np.append(0.0, others))
        weights = np.diff(heights)
        slopes = np.minimum.accumulate((np.diff(others) / weights)[::-1])[::-1]
        reached = np.cumsum(weights * slopes)
        slopes = down(slopes * min(1.0, float((others[1:] / reached).min())))
        return np.log(slopes), up(weights)

    def _heights(self) -> tuple[Floats, Floats]:
        """f' on one data set, increasing, and a lower bound on f' on the other; between two of them both are chords.

        f' and T are convex, so that f'(T) lies above the continuation of the chord to its left; and it increases.
        """
        falls = np.linspace(float(self.trials.fall(np.ones(1))[0]), 0.0, _POINTS)
        tails = np.clip(self.trials.tail(falls), 0.0, 1.0)
        tails[0], tails[-1] = 1.0, 0.0
        worse = np.asarray(self.trial.tradeoff(tails))
        other = self.trials.mean * np.exp(-self.trials.fall(1 - worse))
        steps = -np.diff(tails)
        continued = other[1:-1] + np.diff(other)[:-1] * steps[1:] / steps[:-1]
        # `worse` is off by a few 1e-16, and so are its differences.
        doubt = 1e-10 + 4 * float(self.trials.fall(np.array([1e-14]))[0])
        lower = np.concatenate([other[:1], other[:1], np.maximum(down(continued, by=doubt), down(other[1:-1]))])
        return self.trials.mean * np.exp(-falls), down(lower, by=1e-12)

    def _log_delta(self, epsilons: Floats) -> Floats:
        log_slopes, weights = self.pieces
        levels = epsilons[:, None] + log_slopes
        levels = levels - 8 * ROUNDOFF * (epsilons[:, None] + np.abs(log_slopes))
        logs = np.logaddexp.reduce(log_delta_anywhere(self.trial, levels) + np.log(weights), axis=1)
        return np.minimum(logs + ROUNDOFF * (2 * weights.size + 8 + 2 * np.abs(np.maximum(logs, -1e300))), 0.0)


def log_delta_anywhere(notion: Notion, epsilons: Floats) -> Floats:
    """log δ(ε) also below 0, where the other order of the data sets tells: δ(−ε) = 1 − e^{−ε}(1 − δ(ε))."""
    logs = notion._log_delta(np.abs(epsilons).ravel()).reshape(epsilons.shape)
    sizes = np.minimum(np.abs(epsilons), 700.0)
    with np.errstate(divide="ignore"):
        mirrored = np.log(up(-np.expm1(-sizes) + np.exp(-sizes + np.minimum(logs, 0.0))))
    return np.where(epsilons >= 0, logs, np.minimum(mirrored, 0.0))
