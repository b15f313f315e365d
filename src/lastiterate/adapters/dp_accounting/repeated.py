"""The random number of repetitions of a `RepeatAndSelectDpEvent`, as one of our distributions."""

from __future__ import annotations

import math
from typing import Any

from lastiterate.adapters.dp_accounting.refusals import UnsupportedEvent
from lastiterate.curves.trials import NegativeBinomial, PoissonTrials, Trials
from lastiterate.errors import FINITE, InvalidInput, checked_number


def trials_of_event(event: Any) -> Trials | None:
    """Poisson where its shape is infinite, else truncated negative binomial; None where it runs exactly once."""
    try:
        return _trials(event)
    except InvalidInput as error:
        raise UnsupportedEvent("dp_event_wrong", event=event, error=error) from error


def _trials(event: Any) -> Trials | None:
    if event.shape == math.inf:
        return PoissonTrials(mean=event.mean)
    if event.mean == 1:
        checked_number("shape", event.shape, FINITE)
        return None
    return NegativeBinomial(mean=event.mean, shape=event.shape)
