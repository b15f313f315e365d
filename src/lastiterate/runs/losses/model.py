"""A loss of scores that are linear in the weights: what a record's scores cost, and its slope."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lastiterate.errors import checked_count, must_be
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.norms import row_norms


class Model(ABC):
    """A loss of the scores features @ weights, and of targets. `meant`: what targets have to be."""

    meant = "finite numbers"

    @property
    def columns(self) -> int | None:
        """Of the weights; None where they are a vector."""
        return None

    @property
    def directions(self) -> int | None:
        """Of the weights, through which a record's gradient sees them; None where the number of classes is not known."""
        return 1

    @abstractmethod
    def values(self, scores: Floats, targets: Floats) -> Floats:
        """Each record's loss, as it is written."""

    @abstractmethod
    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        """The derivative of each record's loss in its scores."""

    def with_classes(self, classes: int | None) -> Model:
        """The same, if it has so many classes."""
        asked = None if classes is None else checked_count("classes", classes, least=2)
        if asked not in (None, self.columns):
            raise must_be("classes", f"that of the loss, {self.columns or '2 (targets −1 and 1)'}", f"{asked}")
        return self

    def known(self, targets: Floats) -> NDArray[np.bool_]:
        """Which targets mean something to this loss."""
        return np.isfinite(targets)

    def check_targets(self, targets: Floats) -> None:
        known = self.known(targets)
        if not known.all():
            raise must_be("targets", f"{self.meant}", f"{float(targets[~known][0]):g}")

    @property
    def uncut(self) -> float:
        """The part of its limit up to which `cut` leaves the slopes of a record as they are, however they are spread."""
        return 1.0

    def cut(self, slopes: Floats, limits: Floats) -> Floats:
        """Slopes of gradients that are cut where the slopes of a record are longer than its limit."""
        return np.clip(slopes, -limits, limits)


class Sides(Model):
    """A loss of the margin target·score."""

    meant = "-1 or 1"

    @abstractmethod
    def cost(self, margins: Floats) -> Floats:
        """The loss at these margins."""

    @abstractmethod
    def pull(self, margins: Floats) -> Floats:
        """Minus its derivative in the margin."""

    def values(self, scores: Floats, targets: Floats) -> Floats:
        return self.cost(targets * scores)

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        sides = targets.astype(scores.dtype, copy=False)
        return np.asarray(-sides * self.pull(sides * scores))

    def known(self, targets: Floats) -> NDArray[np.bool_]:
        return np.abs(targets) == 1


@dataclass(frozen=True)
class Classes(Model):
    """One column of scores for each class."""

    classes: int | None
    meant = "the numbers of classes, from 0"

    def cut(self, slopes: Floats, limits: Floats) -> Floats:
        """Together, as one vector."""
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
    """One problem of two classes for each class, each with its part clip/√classes of the clip."""

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
