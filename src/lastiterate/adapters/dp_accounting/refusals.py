"""Events that are not accounted for, each with its reason."""

from __future__ import annotations

from typing import Any

import dp_accounting as dp

from lastiterate.errors import Unavailable

_REASONS = {
    dp.SampledWithReplacementDpEvent: (
        "a record may be drawn into a batch several times; use PoissonSampledDpEvent or SampledWithoutReplacementDpEvent"
    ),
    dp.SingleEpochTreeAggregationDpEvent: (
        "its steps share noise; use dp_accounting.rdp.RdpAccountant under REPLACE_SPECIAL"
    ),
    dp.dp_event.RepeatAndSelectDpEvent: "how often it runs is random; use dp_accounting.rdp.RdpAccountant",
    dp.TruncatedSubsampledGaussianDpEvent: (
        "large batches are cut; use dp_accounting.pld.PLDAccountant, or PoissonSampledDpEvent without the cut"
    ),
    dp.UnsupportedDpEvent: "it says nothing about what was done; describe it by another event",
}
_UNKNOWN = "its kind is not known here; account for it elsewhere, or describe it by another event"


class UnsupportedEvent(Unavailable):
    """An event of dp-accounting that is not accounted for: `event` is the part of it that is to blame."""

    def __init__(self, event: Any, reason: str) -> None:
        super().__init__(f"{type(event).__name__} is not supported: {reason}.", field="event")
        self.event = event


def unsupported(event: Any) -> UnsupportedEvent:
    """For a kind of event that is not in any list."""
    return UnsupportedEvent(event, _REASONS.get(type(event), _UNKNOWN))
