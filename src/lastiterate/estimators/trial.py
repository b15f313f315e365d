"""Trials of a search: private estimators, or pipelines that end in one, and what each will run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.errors import INSIDE_UNIT, POSITIVE, InvalidInput, checked_number, shown
from lastiterate.estimators.base import PrivateLinearModel
from lastiterate.estimators.given import FLOATS, dense
from lastiterate.estimators.preparation import PrivatePreparation
from lastiterate.estimators.upstream import mu_of_steps, upstream_of
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.randomness import Source, subset
from lastiterate.runs.run import Run
from lastiterate.training.objectives import leaves_with_normal_noise

# Settings that an estimator would otherwise learn from the data, outside its budget.
_TO_BE_GIVEN = ("delta", "feature_norm", "classes", "target_bound")
_OF_THE_SEARCH = ("random_state", "delta")
_FEW = 10  # rows, which show how many columns a pipeline hands on


def model_of(estimator: Any) -> PrivateLinearModel:
    """Return the private estimator itself, or the one that a pipeline ends in."""
    *_, last = _along(estimator)
    if not isinstance(last, PrivateLinearModel):
        raise InvalidInput("search_estimator_kind", field="estimator", got=type(last).__name__)
    return last


def prefix_of(estimator: Any) -> str:
    """Prefix of the names of the model's settings, as scikit-learn writes them: `step__` in a pipeline."""
    return "".join(f"{one.steps[-1][0]}__" for one in _along(estimator) if type(one) is Pipeline)


def _along(estimator: Any) -> Iterator[Any]:
    """Yield a pipeline, the pipeline at its end, and so on to the model."""
    yield estimator
    if type(estimator) is Pipeline:
        yield from _along(estimator.steps[-1][1])


def trial_of(estimator: Any, setting: dict[str, Any], decided: tuple[str, ...] = ()) -> Any:
    """Return a fresh trial with this setting; `decided` are names that belong to the search."""
    trial, prefix = clone(estimator), prefix_of(estimator)
    known = {name for name in trial.get_params(deep=bool(prefix)) if "__" in name or not prefix}
    for name in setting:
        if name not in known or name in {prefix + one for one in (*_OF_THE_SEARCH, *decided)}:
            raise InvalidInput("search_setting", field="param_grid", prefix=prefix, got=shown(name))
    return trial.set_params(**setting)


def check_trial(trial: Any) -> None:
    """Raise an error if a trial lacks a setting, or learns or keeps anything outside its guarantee."""
    model, upstream = model_of(trial), upstream_of(_pipelines(trial))
    if upstream.others:
        raise InvalidInput("search_learning_step", field="estimator", steps=upstream.others)
    for one in (model, *upstream.private):
        _check_public(one)
    if any(one._adjacency() is not model._adjacency() for one in upstream.private):
        raise InvalidInput("search_adjacencies", field="adjacency", adjacency=model._adjacency())
    if any(value is not None for name, value in trial.get_params().items() if name.split("__")[-1] == "memory"):
        raise InvalidInput("search_memory", field="memory")


def _check_public(one: Any) -> None:
    given = one.get_params(deep=False)
    for name in _TO_BE_GIVEN:
        if given.get(name, name) is None:
            raise InvalidInput("search_not_given", field=name, step=type(one).__name__)
    if given["random_state"] is not None:
        raise InvalidInput("search_trial_seeded", field="random_state")


def _pipelines(trial: Any) -> list[Any]:
    return [one for one in _along(trial) if type(one) is Pipeline]


def private_parts_of(trial: Any) -> list[Any]:
    """Return the private model of a trial, and the private steps before it."""
    return [model_of(trial), *upstream_of(_pipelines(trial)).private]


def planned_run(trial: Any, features: Any) -> Run:
    """Return the run of a trial from public numbers alone: how many rows and columns there are."""
    rows = features[:_FEW]
    for pipeline in _pipelines(trial):
        if len(pipeline.steps) > 1:
            rows = clone(pipeline[:-1]).fit_transform(rows)
    seen = dense(check_array(rows, dtype=FLOATS, accept_sparse="csr"))
    before = mu_of_steps([one._mu() for one in upstream_of(_pipelines(trial)).private])
    return model_of(trial)._run_for(len(features), seen.shape[1], seen.dtype, before)


def silent(trial: Any, seed: int | None) -> Any:
    """Return the trial without output, which could be counted; a seed is for tests."""
    settings = trial.get_params()
    quiet = {name: False for name in settings if name.split("__")[-1] == "verbose"}
    noisy = [prefix_of(trial), *(f"{name}__" for name, one in settings.items() if isinstance(one, PrivatePreparation))]
    return trial.set_params(**quiet, **{f"{name}random_state": seed for name in noisy})


# Scores of trials: on public records, or with noise on private ones kept from training.


_GRID = 2.0**20  # steps of an error


class Validation(ABC):
    """A way to score trials; `training` are the rows that they are trained on."""

    training: Any

    @abstractmethod
    def score(self, model: Any, source: Source) -> float:
        """Return the score of a trained model; larger is better."""

    def spending(self, epsilon: float, delta: float) -> Validation:
        """Return the validation in which a score may cost as much as a training with this (ε, δ)."""
        return self

    @abstractmethod
    def guarantees(self, adjacency: Adjacency) -> list[Notion]:
        """Guarantees for the records that no trial is trained on."""


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
    """Return a validation on given public records, or on a random share of the private ones."""
    if isinstance(given, Real) and not isinstance(given, bool):
        noisy = "accuracy" if is_classifier(estimator) else "neg_mean_absolute_error"
        if scoring not in (None, noisy):
            raise InvalidInput("search_scoring", field="scoring", allowed=noisy, got=f"{shown(scoring):.60}")
        return _held_out(checked_number("validation", given, INSIDE_UNIT), model_of(estimator), data, source)
    if not isinstance(given, tuple) or len(given) != 2:
        raise InvalidInput("search_validation_kind", field="validation", got=f"{shown(given):.60}")
    return PublicRecords(*given, check_scoring(estimator, scoring), slice(None))


def _held_out(share: float, model: PrivateLinearModel, data: tuple[Any, Any], source: Source) -> Validation:
    """Return a validation on records held out at random, with noise for the model's (ε, δ)."""
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
