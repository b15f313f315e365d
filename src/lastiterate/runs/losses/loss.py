"""What is known of the loss of one record: how curved it is, how far its gradient can move when the record is replaced."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lastiterate.display import summary
from lastiterate.errors import NON_NEGATIVE, POSITIVE, checked_number
from lastiterate.facts import Fact, fact
from lastiterate.runs.losses.model import Model
from lastiterate.runs.per_step import PerStep, checked_per_step, extremes, per_step_shown


@dataclass(frozen=True)
class Loss:
    """The loss of one record, without its l2 term. Its Hessian lies between `curvature` and `smoothness`.

    `gradient_bound` bounds the norm of the gradient and `gradient_sensitivity` its change when the record is replaced, both
    before clipping (∞ if unknown). The l2 term is added after clipping. `keeps_convexity`: the clipped gradient is still the
    gradient of a convex function that is as smooth. `declared`: the curvature is stated by the user. `model`: the loss as a
    function of linear scores, if it is one. `given`: the arguments it was made from.
    """

    kind: str
    smoothness: float
    curvature: float
    gradient_bound: float
    gradient_sensitivity: float
    clip: PerStep | None = None
    keeps_convexity: bool = False
    l2: float = 0.0
    promises: tuple[Fact, ...] = ()
    given: tuple[tuple[str, Any], ...] = ()
    model: Model | None = None
    declared: bool = False

    def __repr__(self) -> str:
        clip = "" if self.clip is None else f"clip={per_step_shown(self.clip)}"
        return summary(self, repr(self.kind), *(f"{name}={value!r}" for name, value in self.given), clip)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that the loss was made from, without the clip."""
        return dict(self.given)

    @property
    def linear(self) -> bool:
        """Whether the loss depends on scores that are linear in the weights."""
        return self.model is not None

    @property
    def feature_norm(self) -> float | None:
        """The largest norm of a feature vector, if there are features."""
        return self.arguments.get("feature_norm")

    @property
    def convex(self) -> bool:
        """Whether every per-record loss, after any clipping, is convex."""
        return self.convex_if(clipped=self.clip is not None)

    def convex_if(self, clipped: bool) -> bool:
        return self.curvature >= 0 and (self.keeps_convexity or not clipped)

    def clip_promise(self, clip: PerStep) -> Fact:
        """What clipping has to do for this loss."""
        least, most = extremes(np.asarray(clip, float))
        classes = self.arguments.get("classes")
        if classes is None or not self.keeps_convexity:
            return fact("clipped", least=least, most=most, per="record", classes=0)
        return fact("clipped", least=least, most=most, per="class", classes=classes)

    @property
    def described(self) -> str:
        if not math.isfinite(self.smoothness):
            return f"{self.kind}, no Hessian known"
        return f"{self.kind}, Hessian between {self.curvature:g} and {self.smoothness:g}"


def made(kind: str, given: Mapping[str, Any], *, clip: PerStep | None, l2: float, **facts: Any) -> Loss:
    """A loss with these facts; arguments that are None were not given."""
    clip = None if clip is None else checked_per_step("clip", clip, POSITIVE)
    l2 = checked_number("l2", l2, NON_NEGATIVE)
    kept = tuple((name, value) for name, value in {**given, "l2": l2 or None}.items() if value is not None)
    return Loss(kind, clip=clip, l2=l2, given=kept, **facts)


def of_a_score(
    kind: str,
    given: Mapping[str, Any],
    model: Model,
    *,
    first: float,
    second: float,
    clip: PerStep | None,
    l2: float,
    promises: tuple[Fact, ...] = (),
) -> Loss:
    """A convex function of ⟨θ, x⟩ with derivatives at most `first` and `second`.

    Clipping keeps it convex, because it cuts the derivative in the score, which is nondecreasing.
    """
    norm = given["feature_norm"]
    known = fact("feature_norm", at_most=norm, intercept=True)
    return made(
        kind,
        given,
        clip=clip,
        l2=l2,
        smoothness=second * norm * norm,
        curvature=0.0,
        gradient_bound=first * norm,
        gradient_sensitivity=2 * first * norm,
        promises=(known, *promises),
        keeps_convexity=True,
        model=model,
    )
