"""A guarantee that holds but for a probability which may be chosen: the best choice for what is asked."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.curves.slack import with_slack
from lastiterate.errors import Unavailable
from lastiterate.numerics.arrays import Floats

# Below δ, as powers of ten: what is left out costs little there, and a guarantee gets only slowly worse with them.
_BELOW = 2.5
_EVERY = 2  # so few powers are tried: halfway between two, either is within a part in a thousand of the best
_LEAST, _MOST = 4, 300
_DEEPEST = -60.0  # no smaller log δ is worth a member of its own


class ForEachDepth(Notion):
    """Many guarantees for one release, each made for some power of ten: the one that fits the δ in question is asked."""

    @abstractmethod
    def member(self, power: int) -> Notion:
        """The guarantee that is made for δ a little above 10 to minus this."""

    @staticmethod
    def power(log_delta: float) -> int:
        """Some powers of ten below this δ."""
        wanted = -max(log_delta, -700.0) / math.log(10.0) + _BELOW
        return min(max(_EVERY * math.ceil(wanted / _EVERY), _LEAST), _MOST)

    @staticmethod
    def exception(power: int) -> float:
        return 10.0**-power

    def _epsilon(self, log_deltas: Floats) -> Floats:
        powers = np.array([self.power(one) for one in log_deltas.tolist()])
        found = np.empty_like(log_deltas)
        for power in np.unique(powers).tolist():
            found[powers == power] = self.member(power)._epsilon(log_deltas[powers == power])
        return found

    def _log_delta(self, epsilons: Floats) -> Floats:
        """By any of its members; the first tells which others are worth a look, and smaller δ ask for smaller exceptions."""
        usual = self.power(math.log(1e-5))
        first = self.member(usual)._log_delta(epsilons)
        worth = {self.power(float(one)) for one in np.quantile(np.maximum(first, _DEEPEST), [0.0, 0.5, 1.0])}
        others = sorted(worth - {usual})
        found = np.min([first, *(self.member(power)._log_delta(epsilons) for power in others)], axis=0)
        while (deeper := self.power(max(float(found.min()), _DEEPEST))) > max(worth) and self._felt(max(worth), found):
            worth.add(deeper)
            found = np.minimum(found, self.member(deeper)._log_delta(epsilons))
        return np.asarray(found)

    def _felt(self, power: int, found: Floats) -> bool:
        """Whether the least δ is hardly more than the exception."""
        return float(found.min()) < math.log(2 * self.exception(power))


@dataclass(frozen=True, eq=False, repr=False)
class ChosenSlack(ForEachDepth):
    """`with_exception(p)` holds but for a probability p, which is added to δ; p is a power of ten that fits."""

    with_exception: Callable[[float], Notion]
    adjacency: Adjacency = REPLACE_ONE
    _known: dict[int, Notion] = field(default_factory=dict, init=False, repr=False)

    def member(self, power: int) -> Notion:
        if power not in self._known:
            exception = self.exception(power)
            try:
                self._known[power] = with_slack(self.with_exception(exception), exception)
            except Unavailable:
                self._known[power] = Profile(epsilons=[0.0], deltas=[1.0])  # nothing is proved
        return self._known[power]

    def _after(self, mu: float) -> ChosenSlack:
        return replace(self, with_exception=lambda exception: self.with_exception(exception).after(mu))
