"""Losses of a residual, score − target: Huber's, and the squared one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lastiterate.errors import POSITIVE, InvalidInput, checked_number
from lastiterate.facts import fact
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.losses.loss import Loss, of_a_score
from lastiterate.runs.losses.model import Model
from lastiterate.runs.per_step import PerStep


def huber(*, feature_norm: float, threshold: float = 1.0, l2: float = 0.0, clip: PerStep | None = None) -> Loss:
    """Huber's loss of ⟨θ, x⟩ − y: quadratic up to threshold, linear beyond, with ‖x‖ ≤ feature_norm."""
    norm = checked_number("feature_norm", feature_norm, POSITIVE)
    limit = checked_number("threshold", threshold, POSITIVE)
    given = {"feature_norm": norm, "threshold": limit}
    return of_a_score("huber", given, _Residual(limit), first=limit, second=1.0, clip=clip, l2=l2)


def ridge(
    *, feature_norm: float, residual_bound: float | None = None, l2: float = 0.0, clip: PerStep | None = None
) -> Loss:
    """(⟨θ, x⟩ − y)²/2 with ‖x‖ ≤ feature_norm. Its gradient is not bounded: give `clip`, or a bound on |⟨θ, x⟩ − y|.

    `residual_bound` must hold on the whole domain: feature_norm·radius + largest |y|, for a ball around 0.
    """
    norm = checked_number("feature_norm", feature_norm, POSITIVE)
    if residual_bound is None and clip is None:
        raise InvalidInput("ridge_unbounded", field="clip")
    if residual_bound is None:
        return of_a_score(
            "ridge", {"feature_norm": norm}, _Residual(math.inf), first=math.inf, second=1.0, clip=clip, l2=l2
        )
    bound = checked_number("residual_bound", residual_bound, POSITIVE)
    given = {"feature_norm": norm, "residual_bound": bound}
    return of_a_score(
        "ridge",
        given,
        _Residual(bound),
        first=bound,
        second=1.0,
        clip=clip,
        l2=l2,
        promises=(fact("residual", at_most=bound),),
    )


@dataclass(frozen=True)
class _Residual(Model):
    """A squared loss whose residual is cut at `bound`: Huber's loss, or ridge with the bound that it declares."""

    bound: float

    def values(self, scores: Floats, targets: Floats) -> Floats:
        far = np.abs(scores - targets)
        near = np.minimum(far, self.bound)
        return np.asarray(near * (far - near / 2))

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.clip(scores - targets.astype(scores.dtype, copy=False), -self.bound, self.bound)
