"""How a trial is scored, as a part of its mechanism: on public records, or with noise on private ones kept from training."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.errors import INSIDE_UNIT, POSITIVE, InvalidInput, checked_number, shown
from lastiterate.estimators.base import PrivateLinearModel
from lastiterate.estimators.trial import model_of
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.randomness import Source, subset
from lastiterate.training.leaving import leaves_with_normal_noise

_GRID = 2.0**20  # steps of an error


class Validation(ABC):
    """`training` are the rows that trials are trained on."""

    training: Any

    @abstractmethod
    def score(self, model: Any, source: Source) -> float:
        """Of a trained model: the larger, the better."""

    def spending(self, epsilon: float, delta: float) -> Validation:
        """The same, where a score may cost as much as a training with this (ε, δ)."""
        return self

    @abstractmethod
    def guarantees(self, adjacency: Adjacency) -> list[Notion]:
        """For records that no trial is trained on."""


@dataclass(frozen=True, eq=False)
class PublicRecords(Validation):
    """A score on public records is computed from the model alone, and costs nothing."""

    features: Any
    targets: Any
    scorer: Any
    training: Any

    def score(self, model: Any, source: Source) -> float:
        return _ranked(float(self.scorer(model, self.features, self.targets)))

    def guarantees(self, adjacency: Adjacency) -> list[Notion]:
        return []


@dataclass(frozen=True, eq=False)
class HeldOut(Validation):
    """The share of private records that are classified correctly, with Gaussian noise: one of them moves the count by 1."""

    features: Any
    targets: Any
    mu: float
    training: Any

    def score(self, model: Any, source: Source) -> float:
        correct = float((model.predict(self.features) == self.targets).sum())
        return _ranked(float(leaves_with_normal_noise(np.array([correct]), 1 / self.mu, source)[0]) / len(self.targets))

    def spending(self, epsilon: float, delta: float) -> Validation:
        return replace(self, mu=float(shift_below(math.log(delta), checked_number("epsilon", epsilon, POSITIVE))))

    def guarantees(self, adjacency: Adjacency) -> list[Notion]:
        return [GaussianDP(self.mu, adjacency)]


@dataclass(frozen=True, eq=False)
class HeldOutErrors(HeldOut):
    """The mean absolute error on private records, negative, with Gaussian noise; an error counts as 2·`bound` at most.

    In units of 2·`bound` one record moves the sum by at most 1. Errors are rounded to a grid, on which sums are exact.
    """

    bound: float

    def score(self, model: Any, source: Source) -> float:
        unit = 2 * self.bound
        with np.errstate(over="ignore", invalid="ignore"):
            errors = np.abs(np.asarray(model.predict(self.features), float) - self.targets) / unit
        counted = np.ceil(np.where(errors < 1, errors, 1.0) * _GRID)  # what is not a number counts as the largest error
        total = np.array([float(counted.astype(np.int64).sum()) / _GRID])
        return _ranked(-unit * float(leaves_with_normal_noise(total, 1 / self.mu, source)[0]) / len(self.targets))


def _ranked(score: float) -> float:
    return -math.inf if math.isnan(score) else score


def validation_of(given: Any, scoring: Any, estimator: Any, data: tuple[Any, Any], source: Source) -> Validation:
    """Public records as they were given, or a share of the private ones, drawn independently of them."""
    if isinstance(given, Real) and not isinstance(given, bool):
        noisy = "accuracy" if is_classifier(estimator) else "neg_mean_absolute_error"
        if scoring not in (None, noisy):
            raise InvalidInput("search_scoring", field="scoring", allowed=noisy, got=f"{shown(scoring):.60}")
        return _held_out(checked_number("validation", given, INSIDE_UNIT), model_of(estimator), data, source)
    if not isinstance(given, tuple) or len(given) != 2:
        raise InvalidInput("search_validation_kind", field="validation", got=f"{shown(given):.60}")
    return PublicRecords(*given, check_scoring(estimator, scoring), slice(None))


def _held_out(share: float, model: PrivateLinearModel, data: tuple[Any, Any], source: Source) -> Validation:
    """Its noise is that of the model's (ε, δ)."""
    features, targets = data
    count = round(share * len(targets))
    if not 0 < count < len(targets):
        raise InvalidInput("search_share", field="validation", share=share, records=len(targets))
    held: NDArray[np.bool_] = np.zeros(len(targets), bool)
    held[subset(source, len(targets), count)] = True
    found: HeldOut = HeldOut(features[held], targets[held], math.nan, ~held)
    if not is_classifier(model):
        bound = checked_number("target_bound", getattr(model, "target_bound", None), POSITIVE)
        found = HeldOutErrors(found.features, found.targets, math.nan, ~held, bound)
    return found.spending(model.epsilon, checked_number("delta", model.delta, INSIDE_UNIT))
