"""Events that are not accounted for, each with its reason."""

from __future__ import annotations

from typing import Any

import dp_accounting as dp

from lastiterate.errors import Unavailable

_REASONS = {
    dp.SampledWithReplacementDpEvent: (
        "a record can occur in a batch several times; use PoissonSampledDpEvent or SampledWithoutReplacementDpEvent"
    ),
    dp.SingleEpochTreeAggregationDpEvent: (
        "its steps share noise; use dp_accounting.rdp.RdpAccountant under REPLACE_SPECIAL"
    ),
    dp.TruncatedSubsampledGaussianDpEvent: (
        "large batches are truncated; use dp_accounting.pld.PLDAccountant, or PoissonSampledDpEvent without truncation"
    ),
    dp.UnsupportedDpEvent: "it does not describe a mechanism; use another event",
}
_UNKNOWN = "its type is unknown; use another accountant, or describe the mechanism by another event"


class UnsupportedEvent(Unavailable):
    """An event of dp-accounting that this library does not support. `event` is the part that is not supported."""

    def __init__(self, event: Any, reason: str) -> None:
        super().__init__(f"{type(event).__name__} is not supported: {reason}.", field="event")
        self.event = event


def unsupported(event: Any) -> UnsupportedEvent:
    """For a kind of event that is not in any list."""
    return UnsupportedEvent(event, _REASONS.get(type(event), _UNKNOWN))
