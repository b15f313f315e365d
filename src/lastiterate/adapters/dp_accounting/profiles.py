"""Privacy profiles of the mechanisms that its events describe, rounded up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import down, up

LARGEST_EXPONENT = 300.0  # of a float; beyond it, 1 is nothing
_FEW = 20  # operations


@dataclass(frozen=True)
class NoPrivacy(Notion):
    """Nothing is promised: δ = 1 for every ε, ε = ∞ for every δ."""

    adjacency: Adjacency

    def _log_delta(self, epsilons: Floats) -> Floats:
        return np.zeros_like(epsilons)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return np.full_like(log_deltas, np.inf)


def laplace(distance: float, adjacency: Adjacency) -> Profile:
    """Of Laplace noise whose scale is the sensitivity in the 1-norm over `distance`, in any number of coordinates.

    δ(ε) = 1 − e^{(ε − distance)/2}, and 0 from ε = distance on: the worst is a move along one coordinate (docs/proofs.md).
    """
    return Profile(function=partial(_laplace, up(distance, _FEW)), adjacency=adjacency)


def _laplace(distance: float, epsilons: Floats) -> Floats:
    return np.minimum(up(-np.expm1(np.minimum(epsilons - distance, 0.0) / 2), _FEW), 1.0)


def pure(epsilon: float, adjacency: Adjacency) -> Profile:
    """(ε, 0)-differential privacy."""
    return Profile(epsilons=[up(epsilon, _FEW)], deltas=[0.0], adjacency=adjacency)


def randomized_response(kept: float, other: float, buckets: int, adjacency: Adjacency) -> Profile:
    """The record's own bucket with probability `kept`, each of the others with probability `other`.

    The neighbour's own bucket is another one, or, where its record contributes nothing, all are as likely for it.
    """
    deltas = (
        partial(_replaced_response, kept, other) if adjacency.replaces else partial(_response, kept, other, buckets)
    )
    return Profile(function=deltas, adjacency=adjacency)


def _replaced_response(kept: float, other: float, epsilons: Floats) -> Floats:
    return _excess(np.exp(np.minimum(epsilons, LARGEST_EXPONENT)), kept, other)


def _response(kept: float, other: float, buckets: int, epsilons: Floats) -> Floats:
    """Against a uniform bucket, in both orders."""
    ratios, uniform = np.exp(np.minimum(epsilons, LARGEST_EXPONENT)), 1 / buckets
    present = _excess(ratios, kept, uniform) + (buckets - 1) * _excess(ratios, other, uniform)
    absent = _excess(ratios, uniform, kept) + (buckets - 1) * _excess(ratios, uniform, other)
    return np.minimum(np.maximum(present, absent), 1.0)


def _excess(ratios: Floats, first: float, second: float) -> Floats:
    """What one probability has beyond e^ε times another."""
    return np.clip(up(first, _FEW) - down(second, _FEW) * ratios, 0.0, 1.0)


def amplified(notion: Notion, inclusion: float) -> Profile:
    """On a random batch that has the record with this probability: δ'(ε) = q·δ(log(1 + (e^ε − 1)/q)).

    Poisson sampling where the neighbour has nothing in the record's place, or batches of fixed size where a record is
    replaced; whatever the mechanism is (Balle, Barthe and Gaboardi 2018).
    """
    return Profile(function=partial(_amplified, notion, inclusion), adjacency=notion.adjacency)


def _amplified(notion: Notion, inclusion: float, epsilons: Floats) -> Floats:
    moderate = np.log1p(np.expm1(np.minimum(epsilons, LARGEST_EXPONENT)) / inclusion)
    inner = np.where(epsilons < LARGEST_EXPONENT, moderate, epsilons - np.log(inclusion))
    return np.minimum(up(inclusion * np.asarray(notion.delta(down(inner, _FEW))), _FEW), 1.0)
