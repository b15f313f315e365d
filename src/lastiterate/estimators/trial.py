"""One trial of a search: a private estimator, or a pipeline that ends in one, and what it will run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from lastiterate.errors import InvalidInput, shown
from lastiterate.estimators.base import PrivateLinearModel
from lastiterate.estimators.given import FLOATS, dense
from lastiterate.estimators.preparation import PrivatePreparation
from lastiterate.estimators.upstream import mu_of_steps, upstream_of
from lastiterate.runs.run import Run

# What an estimator would otherwise learn from the data, outside its budget.
_TO_BE_GIVEN = ("delta", "feature_norm", "classes", "target_bound")
_OF_THE_SEARCH = ("random_state", "delta")
_FEW = 10  # rows, which show how many columns a pipeline hands on


def model_of(estimator: Any) -> PrivateLinearModel:
    """The private estimator itself, or the one that a pipeline ends in."""
    *_, last = _along(estimator)
    if not isinstance(last, PrivateLinearModel):
        raise InvalidInput("search_estimator_kind", field="estimator", got=type(last).__name__)
    return last


def prefix_of(estimator: Any) -> str:
    """Of the names of the model's settings, as scikit-learn writes them: `step__` in a pipeline."""
    return "".join(f"{one.steps[-1][0]}__" for one in _along(estimator) if type(one) is Pipeline)


def _along(estimator: Any) -> Iterator[Any]:
    """A pipeline, the pipeline at its end, and so on to the model."""
    yield estimator
    if type(estimator) is Pipeline:
        yield from _along(estimator.steps[-1][1])


def trial_of(estimator: Any, setting: dict[str, Any], decided: tuple[str, ...] = ()) -> Any:
    """A fresh trial with this setting; `decided` are names that belong to the search."""
    trial, prefix = clone(estimator), prefix_of(estimator)
    known = {name for name in trial.get_params(deep=bool(prefix)) if "__" in name or not prefix}
    for name in setting:
        if name not in known or name in {prefix + one for one in (*_OF_THE_SEARCH, *decided)}:
            raise InvalidInput("search_setting", field="param_grid", prefix=prefix, got=shown(name))
    return trial.set_params(**setting)


def check_trial(trial: Any) -> None:
    """Whatever a trial needs to know is given, and nothing is learnt or kept outside its guarantee."""
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
    """The private model of a trial, and the private steps before it."""
    return [model_of(trial), *upstream_of(_pipelines(trial)).private]


def planned_run(trial: Any, features: Any) -> Run:
    """What the trial will run on so many records, from public numbers alone: how many rows and columns there are."""
    rows = features[:_FEW]
    for pipeline in _pipelines(trial):
        if len(pipeline.steps) > 1:
            rows = clone(pipeline[:-1]).fit_transform(rows)
    seen = dense(check_array(rows, dtype=FLOATS, accept_sparse="csr"))
    before = mu_of_steps([one._mu() for one in upstream_of(_pipelines(trial)).private])
    return model_of(trial)._run_for(len(features), seen.shape[1], seen.dtype, before)


def silent(trial: Any, seed: int | None) -> Any:
    """It prints nothing that could be counted; a seed is for tests."""
    settings = trial.get_params()
    quiet = {name: False for name in settings if name.split("__")[-1] == "verbose"}
    noisy = [prefix_of(trial), *(f"{name}__" for name, one in settings.items() if isinstance(one, PrivatePreparation))]
    return trial.set_params(**quiet, **{f"{name}random_state": seed for name in noisy})
