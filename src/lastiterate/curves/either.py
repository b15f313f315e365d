"""One of two guarantees for the same release, of which the second takes long: it is made when it is needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.numerics.arrays import Floats

_TYPICAL_LOG_DELTA = math.log(1e-6)  # where the two are compared, by estimates: either is valid


@dataclass(frozen=True, eq=False, repr=False)
class Either(Notion):
    """`rough` is about what `slow` would be, or better, and steers searches alone."""

    quick: Notion
    rough: Notion
    slow: Callable[[], Notion]

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.quick.adjacency

    @cached_property
    def chosen(self) -> Notion:
        """The better one, as far as estimates tell."""
        at = _TYPICAL_LOG_DELTA
        if self.quick.epsilon_estimate(at) <= self.rough.epsilon_estimate(at):
            return self.quick
        return min(self.quick, self.slow(), key=lambda one: one.epsilon_estimate(at))

    def epsilon_estimate(self, log_delta: float) -> float:
        return min(one.epsilon_estimate(log_delta) for one in self._estimated)

    def log_delta_estimate(self, epsilon: float) -> float:
        return min(one.log_delta_estimate(epsilon) for one in self._estimated)

    @property
    def _estimated(self) -> tuple[Notion, ...]:
        """What is known already, or both."""
        return (self.chosen,) if "chosen" in self.__dict__ else (self.quick, self.rough)

    def _after(self, mu: float) -> Either:
        return Either(self.quick.after(mu), self.rough.after(mu), lambda: self.slow().after(mu))

    def _log_delta(self, epsilons: Floats) -> Floats:
        return self.chosen._log_delta(epsilons)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return self.chosen._epsilon(log_deltas)
