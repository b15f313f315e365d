"""Settings that users give an estimator or leave out, and what is learnt outside the mechanism, with warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from numbers import Integral
from types import FrameType
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
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
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.report.english import warning
from lastiterate.training.data import count_longer

# Settings: what is left out and learnt from the data instead is said aloud.


FLOATS = (np.float64, np.float32)
_SHORTEST = 1e-6  # where all rows are 0


def dense(features: Any) -> Floats:
    """Return the features as dense rows."""
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features)


def norm_of(feature_norm: float | None, norms: Floats, leaks: Leaks) -> float:
    """Return the given norm, or else that of the longest row, with a warning."""
    if feature_norm is not None:
        return checked_number("feature_norm", feature_norm, POSITIVE)
    norm = max(float(norms.max()), _SHORTEST)
    leaks.say(fact("feature_norm_read", norm=norm))
    return norm


def seed_of(random_state: Any, leaks: Leaks) -> int | None:
    """Return None if noise is to be drawn securely, or else a seed, with a warning."""
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
    """Warn of rows that are longer than `most` and are scaled down to it."""
    count = count_longer(norms, most)
    if count:
        said = worded("rows_shortened", count=count, rows=len(norms), norm=most)
        warnings.warn(said, PrivacyLeak, stacklevel=outside())


def delta_of(delta: float | None, records: int, leaks: Leaks) -> float:
    """Return the given delta, or else one from the number of records, with a warning."""
    if delta is not None:
        return checked_number("delta", delta, INSIDE_UNIT)
    taken = 1 / (10 * records)
    leaks.say(fact("delta_from_records", records=records, delta=taken))
    return taken


def adjacency_of(adjacency: Adjacency | str | None) -> Adjacency:
    return REPLACE_ONE if adjacency is None else checked_choice("adjacency", adjacency, Adjacency)


def say_if_counted(adjacency: Adjacency, records: int, leaks: Leaks) -> None:
    """Add to the leaks that the number of records is used, which tells whether a record is there."""
    if adjacency is ADD_OR_REMOVE_ONE:
        leaks.say(fact("records_counted", records=records))


# Leaks: said aloud, and kept for the report.


# Parts of scikit-learn that neither fit a second model nor look at records: wrappers of `fit`, and pipelines, whose steps
# estimators/upstream.py looks at. Whatever else calls a private fit may do either.
_HARMLESS = (
    "sklearn.base",
    "sklearn.pipeline",
    "sklearn.utils",
    "sklearn.compose._column_transformer",
    "sklearn._config",
    "sklearn.callback",
)
_OURS = "lastiterate.estimators"


class Leaks:
    """Facts that one fit has learnt outside the mechanism."""

    def __init__(self) -> None:
        self.found: list[Fact] = []

    def say(self, leak: Fact) -> None:
        """Warn of what was learnt, with advice, and keep it for the report."""
        self.found.append(leak)
        warnings.warn(PrivacyLeak(warning(leak), leak), stacklevel=outside())

    def say_if_repeated(self) -> None:
        """Say aloud that something else than a pipeline calls this fit: a search, an ensemble, a chain, an unknown object.

        Such fits are many on the same records, often compared by their scores, or see records that were looked at before.
        """
        callers = list(_unknown_callers())
        if found := dict.fromkeys([name for name, known in callers if known] or [name for name, _ in callers]):
            self.say(fact("called_by", callers=" and ".join(found)))


def _unknown_callers() -> Iterator[tuple[str, bool]]:
    """The callers of this fit that are part of scikit-learn, or have a `fit` of their own, and are not known to be harmless.

    Each with whether it is the name of a class. A job of joblib is a caller, too: in another process nothing else is left
    of an ensemble that fits in parallel.
    """
    frame, in_pipeline = sys._getframe(1).f_back, False
    while frame is not None:
        module, name = str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
        caller = _owner(frame)
        if module.startswith(_HARMLESS):
            in_pipeline = in_pipeline or module == "sklearn.pipeline"
            if isinstance(caller, Pipeline) and type(caller) is not Pipeline:
                yield type(caller).__name__, True
        elif module.startswith("sklearn."):
            yield (name, False) if caller is None else (type(caller).__name__, True)
        elif module.startswith("joblib.parallel"):
            if not in_pipeline:
                yield "a parallel job", False
        elif caller is not None and not module.startswith(_OURS):
            yield type(caller).__name__, True
        frame = frame.f_back


def _owner(frame: FrameType) -> Any:
    """Return the object with a `fit` whose method the frame executes; None if it is no such method."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    return first if callable(getattr(type(first), "fit", None)) and hasattr(type(first), code.co_name) else None


def _callers() -> list[str]:
    names: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        names.append(str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back
    return names


def outside() -> int:
    """Number of frames up to the caller that is neither this package nor scikit-learn."""
    names = _callers()
    own = [name.startswith(("lastiterate.estimators", "sklearn.")) for name in names]
    return own.index(False) if False in own else 1
