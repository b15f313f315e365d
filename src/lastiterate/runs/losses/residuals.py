"""Losses of a residual, score − target: Huber's, and the squared one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from lastiterate.errors import POSITIVE, InvalidInput, checked_count, checked_number
from lastiterate.facts import fact
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.losses.loss import Loss, Model, Sides, of_a_score, one_or_many
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
    """Squared loss whose residual is cut at `bound`: Huber's loss, or ridge with a declared bound."""

    bound: float

    def values(self, scores: Floats, targets: Floats) -> Floats:
        far = np.abs(scores - targets)
        near = np.minimum(far, self.bound)
        return np.asarray(near * (far - near / 2))

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return np.clip(scores - targets.astype(scores.dtype, copy=False), -self.bound, self.bound)


# Losses of the margin target·score: logistic, and the smooth hinge.


def logistic(*, feature_norm: float, l2: float = 0.0, clip: PerStep | None = None, classes: int | None = None) -> Loss:
    """log(1 + e^{−y⟨θ, x⟩}) with y = ±1 and ‖x‖ ≤ feature_norm; the constant feature of an intercept counts.

    With `classes`, one such problem for each class against the rest; a clip is divided among them, clip/√classes each.
    """
    norm = checked_number("feature_norm", feature_norm, POSITIVE)
    count = checked_classes(classes)
    given = {"feature_norm": norm, "classes": count}
    model = one_or_many(_Logistic(), count)
    return of_a_score("logistic", given, model, first=_side_by_side(count), second=0.25, clip=clip, l2=l2)


def smooth_hinge(
    *,
    feature_norm: float,
    width: float = 1.0,
    l2: float = 0.0,
    clip: PerStep | None = None,
    classes: int | None = None,
) -> Loss:
    """The hinge of y⟨θ, x⟩ with its corner rounded over an interval of this width, ‖x‖ ≤ feature_norm.

    With `classes`, one such problem for each class against the rest; a clip is divided among them, clip/√classes each.
    """
    norm = checked_number("feature_norm", feature_norm, POSITIVE)
    corner = checked_number("width", width, POSITIVE)
    count = checked_classes(classes)
    given = {"feature_norm": norm, "width": corner, "classes": count}
    model = one_or_many(_SmoothHinge(corner), count)
    return of_a_score("smooth_hinge", given, model, first=_side_by_side(count), second=1 / corner, clip=clip, l2=l2)


def checked_classes(classes: int | None) -> int | None:
    return None if classes is None else checked_count("classes", classes, least=2)


def _side_by_side(classes: int | None) -> float:
    """Norm of one gradient in the score of at most 1 for each class: they add up in squares."""
    return 1.0 if classes is None else math.nextafter(math.sqrt(classes), math.inf)


@dataclass(frozen=True)
class _Logistic(Sides):
    def cost(self, margins: Floats) -> Floats:
        return np.logaddexp(0.0, -margins)

    def pull(self, margins: Floats) -> Floats:
        return np.asarray(expit(-margins))


@dataclass(frozen=True)
class _SmoothHinge(Sides):
    """Smooth hinge: its slope in the margin rises from −1 to 0 over an interval of this width that ends at 1."""

    width: float

    def cost(self, margins: Floats) -> Floats:
        short = np.maximum(1 - margins, 0.0)
        return np.where(short < self.width, np.square(short) / (2 * self.width), short - self.width / 2)

    def pull(self, margins: Floats) -> Floats:
        return np.clip((1 - margins) / self.width, 0.0, 1.0)
