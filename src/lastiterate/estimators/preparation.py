"""Centring and scaling as a step of a pipeline, with a guarantee of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import with_caveats
from lastiterate.errors import INSIDE_UNIT, POSITIVE, checked_number
from lastiterate.estimators.given import (
    FLOATS,
    Leaks,
    adjacency_of,
    delta_of,
    dense,
    norm_of,
    say_if_counted,
    seed_of,
    warn_of_longer,
)
from lastiterate.estimators.prepared import PreparationBudget, ShortRows
from lastiterate.facts import Fact
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.norms import row_norms_above
from lastiterate.numerics.randomness import Source
from lastiterate.training.data import check_unmasked
from lastiterate.training.preparation import Preparation, PrivateRows, Spent


class PrivatePreparation(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Centres and scales features with an (ε, δ)-differentially private mean and scale.

    A row x becomes (x − center_)/scale_; rows that are then longer than `reach` are scaled down to it, so the next step can
    use `feature_norm=reach`. Before that, rows longer than `feature_norm` are scaled down to `feature_norm`. The private
    estimators already do all this within their own budget: use this class for pipelines with steps in between, or with other
    models.

    In a pipeline, a private model adds it to its own epsilon. After `fit`: `center_`, the private mean; `scale_`, the
    private root mean squared distance from it; `guarantee_`; `private_`; `leaks_`. Outside a pipeline, compose the
    guarantees yourself: `li.compose([preparation.guarantee_, model.report_])`.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        feature_norm: float | None = None,
        reach: float = 2.0,
        adjacency: Adjacency | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_norm = feature_norm
        self.reach = reach
        self.adjacency = adjacency
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> PrivatePreparation:
        """Learn the centre and the scale, with noise. `y` is ignored."""
        check_unmasked(X)
        features, leaks = dense(validate_data(self, X, dtype=FLOATS, accept_sparse="csr")), Leaks()
        from lastiterate.estimators.upstream import upstream_of_this_fit  # which knows this class

        leaks.say_if_repeated()
        upstream_of_this_fit().say(leaks)
        seed, reach = seed_of(self.random_state, leaks), checked_number("reach", self.reach, POSITIVE)
        epsilon, delta = checked_number("epsilon", self.epsilon, POSITIVE), delta_of(self.delta, len(features), leaks)
        norms, adjacency = row_norms_above(features), self._adjacency()
        norm = norm_of(self.feature_norm, norms, leaks)
        spent = _spent(epsilon, delta)
        say_if_counted(adjacency, len(features), leaks)
        warn_of_longer(norms, norm)
        rows, source = ShortRows(features, norms, norm), Source(seed)
        learnt = PrivateRows(rows.pieces, len(rows), norm, adjacency).learnt(spent, reach, source)
        self.center_, self.scale_, self.feature_norm_ = learnt.center, learnt.scale, norm
        self._learnt = GaussianDP(spent.mu, adjacency)
        self._mark(leaks.found)
        return self

    def _mark(self, leaks: Iterable[Fact]) -> None:
        """Set what was found wrong with this fit, and mark its guarantee with it."""
        self.leaks_ = tuple(leaks)
        self.private_ = not self.leaks_
        self.guarantee_ = with_caveats(self._learnt, self.leaks_)

    def _adjacency(self) -> Adjacency:
        return adjacency_of(self.adjacency)

    def _mu(self) -> float:
        """Total mu of what `fit` will learn; delta has to be given."""
        epsilon, delta = (
            checked_number("epsilon", self.epsilon, POSITIVE),
            checked_number("delta", self.delta, INSIDE_UNIT),
        )
        return _spent(epsilon, delta).mu

    def transform(self, X: Any) -> Any:
        """Centre and scale each row, and shorten rows longer than `reach`."""
        check_is_fitted(self)
        features = dense(validate_data(self, X, reset=False, dtype=FLOATS, accept_sparse="csr"))
        rows = ShortRows(features, row_norms_above(features), self.feature_norm_)
        return Preparation(self.center_, self.scale_, self.reach).rows(rows[:])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class EachRow(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Applies a function to each row by itself, so that nothing is learnt from the records and no budget is needed.

    `function` is called with arrays (or sparse arrays) of one row and returns such an array; for example
    `EachRow(lambda rows: rows / scales)` with public scales. scikit-learn's FunctionTransformer calls a function with all
    rows at once, which may subtract their mean: the private estimators take only numpy's elementwise functions from it.
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def fit(self, X: Any, y: Any = None) -> EachRow:
        """Return the estimator unchanged: it learns nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Call the function with one row after the other."""
        table = X if issparse(X) else np.asarray(X)
        rows = [self.function(table[at : at + 1]) for at in range(table.shape[0])]
        return vstack(rows) if rows and issparse(rows[0]) else np.concatenate([np.asarray(row) for row in rows])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        return tags


def _spent(epsilon: float, delta: float) -> Spent:
    return PreparationBudget.all_of(float(shift_below(math.log(delta), epsilon)))
