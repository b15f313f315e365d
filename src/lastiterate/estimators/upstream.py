"""Steps of a pipeline before a private model, and what they have learnt from the same records."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import InvalidInput
from lastiterate.estimators.given import Leaks
from lastiterate.estimators.preparation import EachRow, PrivatePreparation
from lastiterate.facts import fact
from lastiterate.numerics.rounding import up

# Of scikit-learn: they treat each row alone, and learn no more than how many columns there are.
_LEARN_NOTHING = {
    "AdditiveChi2Sampler",
    "Binarizer",
    "FeatureHasher",
    "GaussianRandomProjection",
    "HashingVectorizer",
    "Normalizer",
    "PolynomialCountSketch",
    "PolynomialFeatures",
    "RBFSampler",
    "SparseRandomProjection",
}


@dataclass(frozen=True)
class Upstream:
    """Steps that came before this fit: those with noise, and the names of those that were fitted without any."""

    private: tuple[PrivatePreparation, ...]
    others: tuple[str, ...]

    def mu(self, adjacency: Adjacency) -> float:
        """Total mu of the steps that add noise."""
        for one in self.private:
            if one._learnt.adjacency is not adjacency:
                own = one._learnt.adjacency
                raise InvalidInput("preparation_adjacency", field="adjacency", own=own, adjacency=adjacency)
        return mu_of_steps([one._learnt.mu for one in self.private])

    def say(self, leaks: Leaks) -> None:
        """Add to the leaks what was learnt without noise, with a seed or without a bound."""
        if self.others:
            leaks.say(fact("learnt_before", steps=" and ".join(self.others)))
        for one in self.private:
            leaks.found += one.leaks_


def mu_of_steps(mus: list[float]) -> float:
    """Total mu of steps together, rounded up."""
    return up(math.hypot(*mus), operations=len(mus))


def upstream_of_this_fit() -> Upstream:
    """Return the steps before this fit in the pipelines that it is called from."""
    return _upstream(_steps_before_this_fit())


def upstream_of(pipelines: Iterable[Pipeline]) -> Upstream:
    """Return the steps before the last one of each of these pipelines."""
    return _upstream(step for pipeline in pipelines for _, step in pipeline.steps[:-1])


def _upstream(steps: Iterable[Any]) -> Upstream:
    parts = [part for step in steps for part in _parts(step)]
    private = tuple(part for part in parts if isinstance(part, PrivatePreparation))
    return Upstream(private, tuple(dict.fromkeys(type(part).__name__ for part in parts if _learns(part))))


def _steps_before_this_fit() -> Iterator[Any]:
    """Yield, for each pipeline whose `fit` is among the callers, the steps before the one that it is fitting."""
    frame: FrameType | None = sys._getframe(1)
    seen: list[Pipeline] = []
    while frame is not None:
        caller = frame.f_locals.get("self") if frame.f_globals.get("__name__") == "sklearn.pipeline" else None
        name = frame.f_code.co_name
        if isinstance(caller, Pipeline) and name in ("_fit", "fit", "fit_transform", "fit_predict"):
            if not any(caller is one for one in seen):
                at = frame.f_locals.get("step_idx", -1) if name == "_fit" else -1
                yield from (step for _, step in caller.steps[:at])
            seen.append(caller)
        frame = frame.f_back


def _parts(step: Any) -> Iterator[Any]:
    """Yield a step, or those inside it, without what is passed through or dropped."""
    if isinstance(step, Pipeline):
        inside = [one for _, one in step.steps]
    elif isinstance(step, FeatureUnion):
        inside = [one for _, one in step.transformer_list]
    elif isinstance(step, ColumnTransformer):
        inside = [one for _, one, _ in getattr(step, "transformers_", step.transformers)]
    else:
        inside = []
        if not (step is None or isinstance(step, str)):
            yield step
    for one in inside:
        yield from _parts(one)


def _learns(step: Any) -> bool:
    """Whether a step may have learnt from the records, which is assumed unless it is known not to."""
    if isinstance(step, EachRow | PrivatePreparation):
        return type(step) not in (EachRow, PrivatePreparation)
    if not type(step).__module__.startswith("sklearn."):
        return True
    return type(step).__name__ not in _LEARN_NOTHING and not _is_fixed(step)


def _is_fixed(step: BaseEstimator) -> bool:
    """Whether settings leave nothing to be learnt.

    A function may look at all rows, unless it is one of numpy that takes every number by itself. Encoders with all
    categories given learn none, unless rare ones are put together; nor does filling with a constant, unless columns with
    gaps are marked or columns without values are dropped.
    """
    settings = step.get_params(deep=False)
    if type(step) is FunctionTransformer:
        return settings["func"] is None or (isinstance(settings["func"], np.ufunc) and not settings["kw_args"])
    if type(step) in (OneHotEncoder, OrdinalEncoder):
        counted = settings["min_frequency"] is not None or settings["max_categories"] is not None
        return not isinstance(settings["categories"], str) and not counted
    if type(step) is not SimpleImputer or settings["strategy"] != "constant":
        return False
    return bool(settings["keep_empty_features"]) and not settings["add_indicator"]
