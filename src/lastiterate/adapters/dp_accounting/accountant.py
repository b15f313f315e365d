"""An accountant of dp-accounting that knows runs."""

from __future__ import annotations

from typing import Any

import dp_accounting

from lastiterate.adapters.dp_accounting.imported import checked_parts, composed
from lastiterate.adapters.dp_accounting.parts import Parts, counted
from lastiterate.adapters.dp_accounting.refusals import UnsupportedEvent
from lastiterate.adapters.dp_accounting.relations import adjacency_of
from lastiterate.errors import INSIDE_UNIT, NON_NEGATIVE, checked_number

_TYPICAL_DELTA = 1e-6  # chooses the theorem by which δ is found at first
_LEAST_DELTA, _LARGEST_DELTA = 1e-30, 0.5  # at which a theorem is chosen


class LastIterateAccountant(dp_accounting.PrivacyAccountant):  # type: ignore[misc]
    """Composes `LastIterateDpEvent` with the events of dp-accounting; ε and δ are certified upper bounds.

    For a single run, ε equals that of `li.account`. An event that is not supported raises `UnsupportedEvent`: a run with
    another neighboring relation, or a mechanism for which no bound is implemented.
    """

    def __init__(self, neighboring_relation: dp_accounting.NeighboringRelation) -> None:
        self._adjacency = adjacency_of(neighboring_relation)
        self._parts: Parts = []
        super().__init__(neighboring_relation)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            parts = checked_parts(event, self._adjacency, count)
        except UnsupportedEvent as refusal:
            return self.CompositionErrorDetails(invalid_event=refusal.event, error_message=str(refusal))
        if do_compose:
            self._parts = counted([*self._parts, *parts])
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """The smallest provable ε for everything composed so far."""
        delta = checked_number("target_delta", target_delta, INSIDE_UNIT)
        return float(composed(self._parts, self._adjacency, delta).epsilon(delta))

    def get_delta(self, target_epsilon: float) -> float:
        """The smallest provable δ for everything composed so far."""
        epsilon = checked_number("target_epsilon", target_epsilon, NON_NEGATIVE)
        found = self._delta_by_theorems_for(_TYPICAL_DELTA, epsilon)
        if not _LEAST_DELTA < found < _LARGEST_DELTA:
            return found
        return min(found, self._delta_by_theorems_for(found, epsilon))

    def _delta_by_theorems_for(self, delta: float, epsilon: float) -> float:
        return float(composed(self._parts, self._adjacency, delta).delta(epsilon))
