"""The loss of one record: its curvature, and how far its gradient can move when the record is replaced."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastiterate.display import summary
from lastiterate.errors import NON_NEGATIVE, POSITIVE, checked_count, checked_number, must_be
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.norms import row_norms
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
        """Return the fact that promises the clipping which this loss needs."""
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
    """Return a loss with these facts; arguments that are None count as not given."""
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


# Losses of scores that are linear in the weights.


class Model(ABC):
    """A loss of the scores features @ weights, and of targets. `meant`: what targets have to be."""

    meant = "finite numbers"

    @property
    def columns(self) -> int | None:
        """Number of columns of the weights; None where they are a vector."""
        return None

    @property
    def directions(self) -> int | None:
        """Number of directions of the weights that a record's gradient depends on; None if classes are unknown."""
        return 1

    @abstractmethod
    def values(self, scores: Floats, targets: Floats) -> Floats:
        """Return the loss of each record."""

    @abstractmethod
    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        """The derivative of each record's loss in its scores."""

    def with_classes(self, classes: int | None) -> Model:
        """Return this model, or raise an error if it does not have this number of classes."""
        asked = None if classes is None else checked_count("classes", classes, least=2)
        if asked not in (None, self.columns):
            raise must_be("classes", f"that of the loss, {self.columns or '2 (targets −1 and 1)'}", f"{asked}")
        return self

    def known(self, targets: Floats) -> NDArray[np.bool_]:
        """Return for each target whether it is one that this loss is defined for."""
        return np.isfinite(targets)

    def check_targets(self, targets: Floats) -> None:
        known = self.known(targets)
        if not known.all():
            raise must_be("targets", f"{self.meant}", f"{float(targets[~known][0]):g}")

    @property
    def uncut(self) -> float:
        """Share of the limit up to which `cut` never changes the slopes of a record, however they are spread."""
        return 1.0

    def cut(self, slopes: Floats, limits: Floats) -> Floats:
        """Return slopes with those of each record cut to its limit."""
        return np.clip(slopes, -limits, limits)


class Sides(Model):
    """A loss of the margin target·score."""

    meant = "-1 or 1"

    @abstractmethod
    def cost(self, margins: Floats) -> Floats:
        """Return the loss at these margins."""

    @abstractmethod
    def pull(self, margins: Floats) -> Floats:
        """Return minus the derivative of the loss in the margin."""

    def values(self, scores: Floats, targets: Floats) -> Floats:
        return self.cost(targets * scores)

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        sides = targets.astype(scores.dtype, copy=False)
        return np.asarray(-sides * self.pull(sides * scores))

    def known(self, targets: Floats) -> NDArray[np.bool_]:
        return np.abs(targets) == 1


@dataclass(frozen=True)
class Classes(Model):
    """Models with one column of scores for each class."""

    classes: int | None
    meant = "the numbers of classes, from 0"

    def cut(self, slopes: Floats, limits: Floats) -> Floats:
        """Clip the slopes of each record together, as one vector."""
        sizes = row_norms(slopes)
        over = np.flatnonzero(sizes > limits)
        if len(over):
            slopes[over] *= (limits[over] / sizes[over]).astype(slopes.dtype)[:, None]
        return slopes

    @property
    def columns(self) -> int | None:
        return self.classes

    @property
    def directions(self) -> int | None:
        return self.classes

    def known(self, targets: Floats) -> NDArray[np.bool_]:
        return (targets == np.floor(targets)) & (targets >= 0) & (targets < (self.classes or np.inf))


@dataclass(frozen=True)
class OneAgainstTheRest(Classes):
    """One problem of two classes for each class, each clipped at clip/√classes."""

    classes: int
    each: Sides

    def values(self, scores: Floats, targets: Floats) -> Floats:
        return np.asarray(self.each.values(scores, self._sides(targets)).sum(axis=1))

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        return self.each.slopes(scores, self._sides(targets))

    def _sides(self, targets: Floats) -> Floats:
        return np.where(targets[:, None] == np.arange(self.classes), 1.0, -1.0)

    @property
    def uncut(self) -> float:
        return 1 / math.sqrt(self.classes)

    def cut(self, slopes: Floats, limits: Floats) -> Floats:
        each = (limits / limits.dtype.type(math.sqrt(self.classes)))[:, None]
        return np.clip(slopes, -each, each)


def one_or_many(each: Sides, classes: int | None) -> Model:
    return each if classes is None else OneAgainstTheRest(classes, each)
