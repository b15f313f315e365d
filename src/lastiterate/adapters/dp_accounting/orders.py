"""Sampled events composed with others: the two orders of the data sets are different, and each is composed by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from dp_accounting import NeighboringRelation

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, POISSON, REPLACE_ONE, ZERO_OUT, Adjacency, common_adjacency
from lastiterate.curves.compose import Counted, PrivacyLoss, compose_counted, profile_to_masses, spacing_for
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion, Wrapped
from lastiterate.curves.profile import Profile
from lastiterate.curves.subsampled import SubsampledGaussians
from lastiterate.curves.zeroed_out import joined
from lastiterate.errors import InvalidInput, checked_choice, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.lattice import LatticeSum
from lastiterate.numerics.rounding import down, up

_FEW = 20  # operations


@dataclass(frozen=True, eq=False)
class OnSample(Wrapped):
    """`inner` on a sample that has the record with probability `inclusion`, against the same without the record."""

    inclusion: float

    @cached_property
    def present(self) -> Profile:
        """Profile of the data with the record against those without: for ε ≥ 0 the worse order."""
        return amplified(self.inner, self.inclusion)

    @cached_property
    def absent(self) -> Profile:
        """Profile without the record against with it: r·δ(ε″) with r = 1 − e^ε(1 − q) and e^{ε″} = e^ε·q/r, or 0."""
        return Profile(function=partial(_absent, self.inner, self.inclusion), adjacency=self.adjacency)

    def log_delta(self, epsilons: Floats) -> Floats:
        return self.present.log_delta(epsilons)


def _absent(inner: Notion, inclusion: float, epsilons: Floats) -> Floats:
    ratios = np.exp(np.minimum(epsilons, LARGEST_EXPONENT))
    left = np.maximum(up(1.0, _FEW) - down(ratios * (1 - inclusion), _FEW), 0.0)  # rounded up
    with np.errstate(divide="ignore"):
        beyond = np.where(left > 0, np.log(ratios) + np.log(inclusion) - np.log(left), 1e9)  # rounded down
    deltas = np.asarray(inner.delta(np.maximum(beyond - 1e-14 * (1 + np.abs(beyond)), 0.0)))
    return np.minimum(up(left * deltas, _FEW), 1.0)


def compose_by_order(parts: Counted) -> Notion:
    """Compose all parts, each order by itself where samples are composed with what is not Gaussian."""
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    if all(isinstance(part, GaussianDP | SubsampledGaussians) for part, _ in parts):
        return compose_counted(parts)
    steps = [one for part, count in parts for one in _steps(part, count)]
    if not any(isinstance(step, OnSample) for step, _ in steps):
        return compose_counted(parts)
    return ByOrder(tuple(steps), common_adjacency(step.adjacency for step, _ in steps))


def _steps(part: Notion, count: int) -> Iterator[tuple[Notion, int]]:
    """Yield a guarantee's steps, one by one if each is a sample and the neighbour has nothing in the record's place."""
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
    """The worse of both orders of the data sets, each composed on a lattice."""

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

    def log_delta(self, epsilons: Floats) -> Floats:
        return np.maximum(*(order.log_delta(epsilons) for order in self._orders))

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return np.maximum(*(order.epsilon_at_log(log_deltas) for order in self._orders))


# Privacy profiles of mechanisms, rounded up.


LARGEST_EXPONENT = 300.0  # of a float; beyond it, 1 is nothing


@dataclass(frozen=True)
class NoPrivacy(Notion):
    """A guarantee that promises nothing: δ = 1 for every ε, ε = ∞ for every δ."""

    adjacency: Adjacency

    def log_delta(self, epsilons: Floats) -> Floats:
        return np.zeros_like(epsilons)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return np.full_like(log_deltas, np.inf)


def laplace(distance: float, adjacency: Adjacency) -> Profile:
    """Profile of Laplace noise of scale sensitivity (in the 1-norm) over `distance`, in any number of coordinates.

    δ(ε) = 1 − e^{(ε − distance)/2}, and 0 from ε = distance on: the worst is a move along one coordinate (docs/proofs.md).
    """
    return Profile(function=partial(_laplace, up(distance, _FEW)), adjacency=adjacency)


def _laplace(distance: float, epsilons: Floats) -> Floats:
    return np.minimum(up(-np.expm1(np.minimum(epsilons - distance, 0.0) / 2), _FEW), 1.0)


def pure(epsilon: float, adjacency: Adjacency) -> Profile:
    """Profile of (ε, 0)-differential privacy."""
    return Profile(epsilons=[up(epsilon, _FEW)], deltas=[0.0], adjacency=adjacency)


def randomized_response(kept: float, other: float, buckets: int, adjacency: Adjacency) -> Profile:
    """Profile of randomized response: the own bucket with probability `kept`, each other with `other`.

    The neighbour's own bucket is another one, or, where its record contributes nothing, all are as likely for it.
    """
    deltas = (
        partial(_replaced_response, kept, other) if adjacency.replaces else partial(_response, kept, other, buckets)
    )
    return Profile(function=deltas, adjacency=adjacency)


def _replaced_response(kept: float, other: float, epsilons: Floats) -> Floats:
    return _excess(np.exp(np.minimum(epsilons, LARGEST_EXPONENT)), kept, other)


def _response(kept: float, other: float, buckets: int, epsilons: Floats) -> Floats:
    """δ of a response against a uniform bucket, the worse of both orders."""
    ratios, uniform = np.exp(np.minimum(epsilons, LARGEST_EXPONENT)), 1 / buckets
    present = _excess(ratios, kept, uniform) + (buckets - 1) * _excess(ratios, other, uniform)
    absent = _excess(ratios, uniform, kept) + (buckets - 1) * _excess(ratios, uniform, other)
    return np.minimum(np.maximum(present, absent), 1.0)


def _excess(ratios: Floats, first: float, second: float) -> Floats:
    """Return what the first probability exceeds e^ε times the second by."""
    return np.clip(up(first, _FEW) - down(second, _FEW) * ratios, 0.0, 1.0)


def amplified(notion: Notion, inclusion: float) -> Profile:
    """Profile on a random batch that has the record with this probability: δ'(ε) = q·δ(log(1 + (e^ε − 1)/q)).

    Poisson sampling where the neighbour has nothing in the record's place, or batches of fixed size where a record is
    replaced; whatever the mechanism is (Balle, Barthe and Gaboardi 2018).
    """
    return Profile(function=partial(_amplified, notion, inclusion), adjacency=notion.adjacency)


def _amplified(notion: Notion, inclusion: float, epsilons: Floats) -> Floats:
    moderate = np.log1p(np.expm1(np.minimum(epsilons, LARGEST_EXPONENT)) / inclusion)
    inner = np.where(epsilons < LARGEST_EXPONENT, moderate, epsilons - np.log(inclusion))
    return np.minimum(up(inclusion * np.asarray(notion.delta(down(inner, _FEW))), _FEW), 1.0)


# Neighbouring relations of dp-accounting and of this library.
#
# Its REPLACE_SPECIAL replaces a record by one that contributes nothing (arXiv 2103.00039, Definition 1.1): our
# zero-out. Its noise multipliers are noise over the norm of one record's contribution, whatever the relation, so that
# replacing a record moves a sum by up to twice that norm, and adding, removing or zeroing out one by once.


_ADJACENCIES = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_OR_REMOVE_ONE,
    NeighboringRelation.REPLACE_ONE: REPLACE_ONE,
    NeighboringRelation.REPLACE_SPECIAL: ZERO_OUT,
}


def adjacency_of(neighboring_relation: Any) -> Adjacency:
    """The adjacency for a neighboring relation of dp-accounting: REPLACE_SPECIAL is li.ZERO_OUT, other names agree."""
    if not isinstance(neighboring_relation, NeighboringRelation):
        got = f"{shown(neighboring_relation):.60}"
        raise InvalidInput("dp_relation_kind", field="neighboring_relation", got=got)
    return _ADJACENCIES[neighboring_relation]


def relation_of(adjacency: Adjacency) -> NeighboringRelation:
    """The neighboring relation of dp-accounting for an adjacency."""
    wanted = checked_choice("adjacency", adjacency, Adjacency)
    return next(relation for relation, one in _ADJACENCIES.items() if one is wanted)


def records_apart(adjacency: Adjacency) -> float:
    """Distance by which a neighbour moves a sum, over the largest norm of one record's contribution."""
    return 2.0 if adjacency.replaces else 1.0
