"""Sampled events composed with others: the two orders of the data sets are different, and each is composed by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from lastiterate.adapters.dp_accounting.profiles import LARGEST_EXPONENT, amplified
from lastiterate.curves.adjacency import POISSON, Adjacency, common_adjacency
from lastiterate.curves.compose import Counted, compose_counted, profile_to_masses, spacing_for
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.loss import PrivacyLoss
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.curves.subsampled import SubsampledGaussians
from lastiterate.curves.zeroed_out import joined
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.lattice import LatticeSum
from lastiterate.numerics.rounding import down, up

_FEW = 20  # operations


@dataclass(frozen=True, eq=False)
class OnSample(Notion):
    """`inner` on a sample that has the record with probability `inclusion`, against the same without the record."""

    inner: Notion
    inclusion: float

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.inner.adjacency

    @cached_property
    def present(self) -> Profile:
        """With the record against without: for ε ≥ 0 the worse order."""
        return amplified(self.inner, self.inclusion)

    @cached_property
    def absent(self) -> Profile:
        """Without it against with it: r·δ(ε″), r = 1 − e^ε(1 − q) and e^{ε″} = e^ε·q/r, and 0 where r is not positive."""
        return Profile(function=partial(_absent, self.inner, self.inclusion), adjacency=self.adjacency)

    def _log_delta(self, epsilons: Floats) -> Floats:
        return self.present._log_delta(epsilons)


def _absent(inner: Notion, inclusion: float, epsilons: Floats) -> Floats:
    ratios = np.exp(np.minimum(epsilons, LARGEST_EXPONENT))
    left = np.maximum(up(1.0, _FEW) - down(ratios * (1 - inclusion), _FEW), 0.0)  # rounded up
    with np.errstate(divide="ignore"):
        beyond = np.where(left > 0, np.log(ratios) + np.log(inclusion) - np.log(left), 1e9)  # rounded down
    deltas = np.asarray(inner.delta(np.maximum(beyond - 1e-14 * (1 + np.abs(beyond)), 0.0)))
    return np.minimum(up(left * deltas, _FEW), 1.0)


def compose_by_order(parts: Counted) -> Notion:
    """All parts together; order by order where samples are composed with what is not Gaussian."""
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    if all(isinstance(part, GaussianDP | SubsampledGaussians) for part, _ in parts):
        return compose_counted(parts)
    steps = [one for part, count in parts for one in _steps(part, count)]
    if not any(isinstance(step, OnSample) for step, _ in steps):
        return compose_counted(parts)
    return ByOrder(tuple(steps), common_adjacency(step.adjacency for step, _ in steps))


def _steps(part: Notion, count: int) -> Iterator[tuple[Notion, int]]:
    """One by one where each is a sample, and its neighbour has nothing in the record's place."""
    if not isinstance(part, SubsampledGaussians) or part.adjacency.replaces:
        yield part, count
        return
    for step, times in part.steps:
        whole = GaussianDP(step.mu, part.adjacency)
        if step.inclusion == 1:
            yield whole, times * count
        elif step.sampling is POISSON:
            yield OnSample(whole, step.inclusion), times * count
        else:
            yield SubsampledGaussians(((step, 1),), part.adjacency), times * count


@dataclass(frozen=True, eq=False)
class ByOrder(Notion):
    """The worse of both orders, each composed on a lattice."""

    steps: tuple[tuple[Notion, int], ...]
    adjacency: Adjacency

    @cached_property
    def _orders(self) -> tuple[PrivacyLoss, PrivacyLoss]:
        spacing = spacing_for([step for step, _ in self.steps])
        pairs = [(step.present, step.absent) if isinstance(step, OnSample) else (step, step) for step, _ in self.steps]
        masses = [tuple(profile_to_masses(one, spacing) for one in pair) for pair in pairs]
        counts = tuple(count for _, count in self.steps)
        forth = LatticeSum(tuple(joined(present, absent) for present, absent in masses), counts)
        back = LatticeSum(tuple(joined(absent, present) for present, absent in masses), counts)
        return PrivacyLoss.of_sum(forth, self.adjacency), PrivacyLoss.of_sum(back, self.adjacency)

    def _log_delta(self, epsilons: Floats) -> Floats:
        return np.maximum(*(order._log_delta(epsilons) for order in self._orders))

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return np.maximum(*(order._epsilon(log_deltas) for order in self._orders))
