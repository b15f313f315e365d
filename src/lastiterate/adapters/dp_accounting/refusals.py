"""Events that are not accounted for, each with its reason."""

from __future__ import annotations

from typing import Any

import dp_accounting as dp

from lastiterate.errors import Unavailable

_REASONS = {
    dp.SampledWithReplacementDpEvent: "dp_event_with_replacement",
    dp.SingleEpochTreeAggregationDpEvent: "dp_event_shares_noise",
    dp.TruncatedSubsampledGaussianDpEvent: "dp_event_truncated",
    dp.UnsupportedDpEvent: "dp_event_of_no_mechanism",
}


class UnsupportedEvent(Unavailable):
    """An event of dp-accounting that this library does not support. `event` is the part that is not supported."""

    def __init__(self, code: str, *, event: Any, field: str = "event", **values: Any) -> None:
        super().__init__(code, field=field, event=event, **values)
        self.event = event


def unsupported(event: Any) -> UnsupportedEvent:
    """For a kind of event that is not in any list."""
    return UnsupportedEvent(_REASONS.get(type(event), "dp_event_unknown"), event=event)
