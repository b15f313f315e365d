"""What the steps of a pipeline before a private model have learnt from the same records."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils import get_tags

from lastiterate.errors import InvalidInput
from lastiterate.estimators.leaks import Leaks
from lastiterate.estimators.preparation import PrivatePreparation
from lastiterate.numerics.rounding import up
from lastiterate.privacy.adjacency import Adjacency

# They ask to be fitted, but learn no more than how many columns there are.
_LEARN_NOTHING = {
    "PolynomialFeatures",
    "GaussianRandomProjection",
    "SparseRandomProjection",
    "RBFSampler",
    "PolynomialCountSketch",
}


@dataclass(frozen=True)
class Upstream:
    """Steps that came before this fit: those with noise, and the names of those that were fitted without any."""

    private: tuple[PrivatePreparation, ...]
    others: tuple[str, ...]

    def mu(self, adjacency: Adjacency) -> float:
        """Of those with noise, together."""
        for one in self.private:
            if one.guarantee_.adjacency is not adjacency:
                raise InvalidInput(
                    f"PrivatePreparation in this pipeline has adjacency {one.guarantee_.adjacency!r}, the model has "
                    f"{adjacency!r}. Use the same adjacency for both.",
                    field="adjacency",
                )
        return mu_of_steps([one.guarantee_.mu for one in self.private])

    def say(self, leaks: Leaks) -> None:
        """What was learnt without noise, and what was learnt from records with a seed or without a bound."""
        if self.others:
            leaks.say(
                f"{' and '.join(self.others)} in this pipeline learnt from the same records without noise. This is "
                "released with the model, and epsilon does not cover it.",
                "Use PrivatePreparation, or a step that treats each row alone, such as Normalizer.",
            )
        for one in self.private:
            leaks.found += one.leaks_


def mu_of_steps(mus: list[float]) -> float:
    """Of all of them together, rounded up."""
    return up(math.hypot(*mus), operations=len(mus))


def upstream_of_this_fit() -> Upstream:
    """Of the pipelines that this fit is called from."""
    return upstream_of(_pipelines())


def upstream_of(pipelines: Iterable[Pipeline]) -> Upstream:
    """Of the steps before the last one of each."""
    steps = [step for pipeline in pipelines for _, step in pipeline.steps[:-1]]
    parts = [part for step in steps for part in _parts(step)]
    private = tuple(part for part in parts if isinstance(part, PrivatePreparation))
    return Upstream(private, tuple(dict.fromkeys(type(part).__name__ for part in parts if _learns(part))))


def _pipelines() -> Iterator[Pipeline]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self") if frame.f_globals.get("__name__") == "sklearn.pipeline" else None
        if isinstance(caller, Pipeline) and frame.f_code.co_name in ("fit", "fit_transform", "fit_predict"):
            yield caller
        frame = frame.f_back


def _parts(step: Any) -> Iterator[Any]:
    """A step, or those inside it; what is passed through or dropped is none."""
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
    """What says nothing of itself may learn anything."""
    if not isinstance(step, BaseEstimator):
        return True
    if isinstance(step, PrivatePreparation) or type(step).__name__ in _LEARN_NOTHING:
        return False
    return bool(get_tags(step).requires_fit) and not _told(step)


def _told(step: BaseEstimator) -> bool:
    """Whether settings leave nothing to be learnt.

    Encoders with all categories given learn none, unless rare ones are put together; nor does filling with a constant,
    unless columns with gaps are marked or columns without values are dropped.
    """
    settings = step.get_params(deep=False)
    if type(step) in (OneHotEncoder, OrdinalEncoder):
        counted = settings["min_frequency"] is not None or settings["max_categories"] is not None
        return not isinstance(settings["categories"], str) and not counted
    if type(step) is not SimpleImputer or settings["strategy"] != "constant":
        return False
    return bool(settings["keep_empty_features"]) and not settings["add_indicator"]
