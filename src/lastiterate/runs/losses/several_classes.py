"""The multi-class logistic loss, with or without a limit on its pull."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, xlogy

from lastiterate.errors import POSITIVE, RATE, InvalidInput, checked_count, checked_number
from lastiterate.facts import fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.losses.loss import Classes, Loss, Model, made
from lastiterate.runs.losses.residuals import checked_classes
from lastiterate.runs.per_step import PerStep


def softmax(
    *,
    feature_norm: float,
    l2: float = 0.0,
    clip: PerStep | None = None,
    pull: float | None = None,
    classes: int | None = None,
) -> Loss:
    """Multi-class logistic loss of the scores ⟨θ_k, x⟩ with ‖x‖ ≤ feature_norm.

    Unclipped it is convex. Clipped as one vector it is not (errata E4.1), so theorems for convex losses do not apply. A
    `pull` below 1 shortens gradients and keeps the loss convex: see `PullLimit`. It needs `classes`.
    """
    norm = checked_number("feature_norm", feature_norm, POSITIVE)
    count = checked_classes(classes)
    limit = None if pull is None else _limit(pull, count, clip)
    bound = math.sqrt(2.0) * norm
    given: dict[str, Any] = {"feature_norm": norm, "classes": count}
    promises = [fact("feature_norm", at_most=norm, intercept=False)]
    if limit is not None:
        bound, given["pull"] = min(bound, limit.gradient_bound * norm), limit.pull
        promises.append(fact("pull_limit", together=limit.pull, each=limit.pull / limit.parts))
    return made(
        "softmax",
        given,
        clip=clip,
        l2=l2,
        smoothness=norm * norm / 2,
        curvature=0.0,
        gradient_bound=bound,
        gradient_sensitivity=2 * bound,
        promises=tuple(promises),
        model=_Softmax(count, limit),
    )


def _limit(pull: float, classes: int | None, clip: PerStep | None) -> PullLimit:
    if classes is None or clip is not None:
        raise InvalidInput("pull_and_clip", field="pull")
    return PullLimit(checked_number("pull", pull, RATE), classes)


@dataclass(frozen=True)
class _Softmax(Classes):
    """Multi-class logistic loss; a `limit` cuts probabilities: gradients are bounded and the loss stays convex."""

    limit: PullLimit | None = None

    @property
    def directions(self) -> int | None:
        """Number of directions that matter: classes − 1, since adding a number to all scores changes nothing."""
        return None if self.classes is None else self.classes - 1

    def with_classes(self, classes: int | None) -> Model:
        if self.classes is not None:
            return super().with_classes(classes)
        if classes is None:
            raise InvalidInput("classes_missing", field="classes")
        return replace(self, classes=checked_count("classes", classes, least=2))

    def values(self, scores: Floats, targets: Floats) -> Floats:
        """log Σ e^score, or the greatest ⟨p, scores⟩ + entropy within the limit; minus the score of the true class."""
        places = targets.astype(np.intp)
        true = scores[np.arange(len(scores)), places]
        if self.limit is None:
            return np.asarray(logsumexp(scores, axis=1) - true)
        shares = limited(scores, places, self.limit)
        return np.asarray((shares * scores).sum(axis=1) - xlogy(shares, shares).sum(axis=1) - true)

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        places = targets.astype(np.intp)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        if self.limit is not None:
            limit_shares(shares, scores, places, self.limit)
        shares[np.arange(len(shares)), places] -= 1
        return shares


# The pull limit: bounded softmax gradients of a loss that stays convex.


@dataclass(frozen=True)
class PullLimit:
    """Limit on wrong classes: probability at most `pull` together, and pull/4 each (pull/2 of three classes, …).

    Probabilities above these limits are replaced by the most likely ones within them. The result is the gradient of a convex
    function that is as smooth as the softmax loss (docs/proofs.md).
    """

    pull: float
    classes: int

    @property
    def parts(self) -> int:
        """Number of wrong classes that exhaust the pull."""
        return min(4, self.classes - 1)

    @property
    def gradient_bound(self) -> float:
        """Bound on the norm of the gradient in the scores: that of (pull, pull/parts, …, pull/parts)."""
        return up(self.pull * math.sqrt(1 + 1 / self.parts))  # probabilities are rounded


def limit_shares(shares: Floats, scores: Floats, places: np.ndarray, limit: PullLimit) -> None:
    """Replace rows of `shares`, the softmax, that exceed the limit by limited ones; `places`: the true classes."""
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
    """Return min(cap, e^(scores + shift)) where these and e^(free + shift) add up to the total, row by row.

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
