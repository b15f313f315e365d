"""What users give an estimator, or leave out: what is learnt from the data instead is said aloud."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, Adjacency
from lastiterate.errors import (
    INSIDE_UNIT,
    POSITIVE,
    InvalidInput,
    PrivacyLeak,
    checked_choice,
    checked_count,
    checked_number,
    worded,
)
from lastiterate.estimators.leaks import Leaks, outside
from lastiterate.facts import fact
from lastiterate.numerics.arrays import Floats
from lastiterate.training.records import count_longer

FLOATS = (np.float64, np.float32)
_SHORTEST = 1e-6  # where all rows are 0


def dense(features: Any) -> Floats:
    """Training is on dense rows."""
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features)


def norm_of(feature_norm: float | None, norms: Floats, leaks: Leaks) -> float:
    """As it was given; else that of the longest row, which is said aloud."""
    if feature_norm is not None:
        return checked_number("feature_norm", feature_norm, POSITIVE)
    norm = max(float(norms.max()), _SHORTEST)
    leaks.say(fact("feature_norm_read", norm=norm))
    return norm


def seed_of(random_state: Any, leaks: Leaks) -> int | None:
    """None where noise is to be drawn securely; a seed is said aloud."""
    if random_state is None:
        return None
    leaks.say(fact("random_state_set"))
    if isinstance(random_state, Integral):
        return checked_count("random_state", random_state, least=0)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InvalidInput("random_state_kind", field="random_state", error=error) from error


def warn_of_longer(norms: Floats, most: float) -> None:
    """Rows that are longer than this are scaled down to it."""
    count = count_longer(norms, most)
    if count:
        said = worded("rows_shortened", count=count, rows=len(norms), norm=most)
        warnings.warn(said, PrivacyLeak, stacklevel=outside())


def delta_of(delta: float | None, records: int, leaks: Leaks) -> float:
    """As it was given; else from the number of records, which is said aloud."""
    if delta is not None:
        return checked_number("delta", delta, INSIDE_UNIT)
    taken = 1 / (10 * records)
    leaks.say(fact("delta_from_records", records=records, delta=taken))
    return taken


def adjacency_of(adjacency: Adjacency | str | None) -> Adjacency:
    return REPLACE_ONE if adjacency is None else checked_choice("adjacency", adjacency, Adjacency)


def say_if_counted(adjacency: Adjacency, records: int, leaks: Leaks) -> None:
    """Whether a record is there or not, the number of records tells; and sums are divided by it."""
    if adjacency is ADD_OR_REMOVE_ONE:
        leaks.say(fact("records_counted", records=records))
