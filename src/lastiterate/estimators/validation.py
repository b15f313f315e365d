"""How a trial is scored, as a part of its mechanism: on public records, or with noise on private ones kept from training."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring

from lastiterate.errors import INSIDE_UNIT, POSITIVE, InvalidInput, checked_number, shown
from lastiterate.estimators.base import PrivateLinearModel
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.randomness import Source, subset
from lastiterate.privacy.adjacency import Adjacency
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.notion import Notion
from lastiterate.training.leaving import leaves_with_normal_noise


class Validation(ABC):
    """`training` are the rows that trials are trained on."""

    training: Any

    @abstractmethod
    def score(self, model: Any, source: Source) -> float:
        """Of a trained model: the larger, the better."""

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

    def guarantees(self, adjacency: Adjacency) -> list[Notion]:
        return [GaussianDP(self.mu, adjacency)]


def _ranked(score: float) -> float:
    return -math.inf if math.isnan(score) else score


def validation_of(
    given: Any, scoring: Any, estimator: PrivateLinearModel, data: tuple[Any, Any], source: Source
) -> Validation:
    """Public records as they were given, or a share of the private ones, drawn without a look at them."""
    if isinstance(given, Real) and not isinstance(given, bool):
        if not is_classifier(estimator) or scoring is not None:
            raise InvalidInput(
                "validation must be public records (X, y) for regressions and for scores other than accuracy. Got a share "
                "of the records, on which only a noisy accuracy is computed.",
                field="validation",
            )
        return _held_out(checked_number("validation", given, INSIDE_UNIT), estimator, data, source)
    if not isinstance(given, tuple) or len(given) != 2:
        raise InvalidInput(
            f"validation must be public records (X, y), or the share of records to hold out. Got {shown(given):.60}.",
            field="validation",
        )
    return PublicRecords(*given, check_scoring(estimator, scoring), slice(None))


def _held_out(share: float, estimator: PrivateLinearModel, data: tuple[Any, Any], source: Source) -> HeldOut:
    features, targets = data
    count = round(share * len(targets))
    if not 0 < count < len(targets):
        raise InvalidInput(
            f"validation = {share:g} of {len(targets)} records leaves no records to train on or to score. Choose "
            "another share.",
            field="validation",
        )
    held: NDArray[np.bool_] = np.zeros(len(targets), bool)
    held[subset(source, len(targets), count)] = True
    delta = checked_number("delta", estimator.delta, INSIDE_UNIT)
    mu = float(shift_below(math.log(delta), checked_number("epsilon", estimator.epsilon, POSITIVE)))
    return HeldOut(features[held], targets[held], mu, ~held)
