"""What a block of steps reveals: from one common state, and from any two states. Trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lastiterate.curves.notion import Notion
from lastiterate.mixing.table import Tabled
from lastiterate.mixing.tail import Tail
from lastiterate.mixing.window import joined
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import log_gap_above
from lastiterate.numerics.rounding import up

_WINDOWS = 24  # ways to split ε, each valid: fewer are looser, more take longer


@dataclass(frozen=True, eq=False)
class Ends:
    """`common`: the guarantee from one state. `apart`: the μ of any two states, the record in every batch that it may be in.

    `same`: the μ of any two states on the same data. ∞ where there is none.
    """

    common: Notion
    common_mu: float
    apart: float
    same: float

    def common_delta(self, epsilons: Floats) -> Floats:
        """d: the better of sampling and of the record in every batch."""
        in_every_batch = up(np.exp(_log_gap(epsilons, self.common_mu)))
        return np.minimum(self._table.delta(epsilons), in_every_batch)

    @cached_property
    def _table(self) -> Tabled:
        return Tabled(self.common)

    def apart_delta(self, epsilons: Floats) -> Floats:
        """M: the record in every batch, or the same data first and then the record (window and tail)."""
        log_direct = _log_gap(epsilons, self.apart)
        if math.isfinite(self.same):
            windows, log_windows = self._windows
            splits = epsilons[:, None] - windows
            log_tail = Tail(np.array([self.same]), np.ones(1)).log_delta(np.maximum(splits, 0.0).ravel())
            bounds = joined(log_tail.reshape(splits.shape), np.maximum(splits, 0.0), log_windows)
            log_direct = np.minimum(log_direct, np.where(splits >= 0, bounds, 0.0).min(axis=1))
        return np.minimum(up(np.exp(log_direct)), 1.0)

    @cached_property
    def _windows(self) -> tuple[Floats, Floats]:
        """A few ε, and log d there."""
        epsilons = self._table.reach * np.linspace(0.0, 1.0, _WINDOWS) ** 1.5
        with np.errstate(divide="ignore"):
            return epsilons, np.log(self.common_delta(epsilons))


def _log_gap(epsilons: Floats, mu: float) -> Floats:
    return log_gap_above(epsilons, mu) if math.isfinite(mu) else np.zeros_like(epsilons)
