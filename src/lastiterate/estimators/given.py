"""What users give an estimator, or leave out: what is learnt from the data instead is said aloud."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lastiterate.errors import (
    INSIDE_UNIT,
    POSITIVE,
    InvalidInput,
    PrivacyLeak,
    checked_choice,
    checked_count,
    checked_number,
)
from lastiterate.estimators.leaks import Leaks, outside
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, Adjacency
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
    leaks.say(
        f"feature_norm was not given: the norm of the longest row, {norm:.4g}, was read from the data, and the scale "
        "of the noise now reveals it.",
        "Set feature_norm= to a bound that you know without the data; longer rows are scaled down to it.",
    )
    return norm


def seed_of(random_state: Any, leaks: Leaks) -> int | None:
    """None where noise is to be drawn securely; a seed is said aloud."""
    if random_state is None:
        return None
    leaks.say(
        "random_state is set: anyone who knows it can subtract the noise, so this model is not private.",
        "Remove it before you release a model.",
    )
    if isinstance(random_state, Integral):
        return checked_count("random_state", random_state, least=0)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InvalidInput(
            f"random_state must be None, an integer or a RandomState: {error}.", field="random_state"
        ) from error


def warn_of_longer(norms: Floats, most: float) -> None:
    """Rows that are longer than this are scaled down to it."""
    count = count_longer(norms, most)
    if count:
        warnings.warn(
            f"{count} of {len(norms)} rows were longer than feature_norm = {most:g} and were scaled down to it. "
            "This number is not private.",
            PrivacyLeak,
            stacklevel=outside(),
        )


def delta_of(delta: float | None, records: int, leaks: Leaks) -> float:
    """As it was given; else from the number of records, which is said aloud."""
    if delta is not None:
        return checked_number("delta", delta, INSIDE_UNIT)
    taken = 1 / (10 * records)
    leaks.say(
        f"delta was not given: 1/(10·{records}) = {taken:.3g} was used, which reveals the number of records.",
        "Set delta=.",
    )
    return taken


def adjacency_of(adjacency: Adjacency | None) -> Adjacency:
    return REPLACE_ONE if adjacency is None else checked_choice("adjacency", adjacency, Adjacency)


def say_if_counted(adjacency: Adjacency, records: int, leaks: Leaks) -> None:
    """Whether a record is there or not, the number of records tells; and sums are divided by it."""
    if adjacency is ADD_OR_REMOVE_ONE:
        leaks.say(
            f"the number of records, {records}, was treated as public: noise and step sizes depend on it, but under "
            "li.ADD_OR_REMOVE_ONE it is not public.",
            "Use adjacency=li.ZERO_OUT, which needs the same noise and keeps the number of records public.",
        )
