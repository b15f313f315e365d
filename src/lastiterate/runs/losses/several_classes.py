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
from lastiterate.runs.losses.loss import Loss, made
from lastiterate.runs.losses.margins import checked_classes
from lastiterate.runs.losses.model import Classes, Model
from lastiterate.runs.losses.pull import PullLimit, limit_shares, limited
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
    """With a `limit`, probabilities are cut as it says, so that no gradient is long and the loss stays convex."""

    limit: PullLimit | None = None

    @property
    def directions(self) -> int | None:
        """A number that is added to all scores changes nothing."""
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
