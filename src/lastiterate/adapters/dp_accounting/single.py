"""Events that release one thing, computed from all records: each as a notion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dp_accounting as dp
import numpy as np

from lastiterate.adapters.dp_accounting.profiles import NoPrivacy, laplace, pure, randomized_response
from lastiterate.adapters.dp_accounting.refusals import UnsupportedEvent
from lastiterate.adapters.dp_accounting.relations import records_apart
from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, Adjacency
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.present_or_absent import present_or_absent
from lastiterate.curves.renyi import DEFAULT_ORDERS, RenyiDP
from lastiterate.errors import FINITE, NON_NEGATIVE, UNIT, checked_array, checked_count, checked_lists, checked_number
from lastiterate.numerics.rounding import up

_ACCURATE = 1e-9  # what probabilities may add up to besides 1


def _gaussian(event: Any, adjacency: Adjacency) -> Notion:
    noise = checked_number("noise_multiplier", event.noise_multiplier, NON_NEGATIVE)
    return GaussianDP(up(records_apart(adjacency) / noise, 2), adjacency) if noise else NoPrivacy(adjacency)


def _laplace(event: Any, adjacency: Adjacency) -> Notion:
    noise = checked_number("noise_multiplier", event.noise_multiplier, NON_NEGATIVE)
    return laplace(up(records_apart(adjacency) / noise, 2), adjacency) if noise else NoPrivacy(adjacency)


def _discrete_laplace(event: Any, adjacency: Adjacency) -> Notion:
    """Pure differential privacy, which is exact for a sensitivity of 1."""
    rate = checked_number("noise_parameter", event.noise_parameter, NON_NEGATIVE)
    sensitivity = checked_count("sensitivity", event.sensitivity)
    return pure(up(records_apart(adjacency) * rate * sensitivity, 4), adjacency) if rate else NoPrivacy(adjacency)


def _randomized_response(event: Any, adjacency: Adjacency) -> Notion:
    if adjacency is ADD_OR_REMOVE_ONE:
        raise UnsupportedEvent("dp_event_no_response", event=event)
    noise = checked_number("noise_parameter", event.noise_parameter, UNIT)
    buckets = checked_count("num_buckets", event.num_buckets)
    if buckets == 1:
        return GaussianDP(0.0, adjacency)
    other = noise / buckets
    return randomized_response(1 - noise + other, other, buckets, adjacency) if noise else NoPrivacy(adjacency)


def _concentrated(event: Any, adjacency: Adjacency) -> Notion:
    rho, xi = (checked_number(name, getattr(event, name), NON_NEGATIVE) for name in ("rho", "xi"))
    if xi == 0:
        return RenyiDP(rho=rho, adjacency=adjacency)
    return RenyiDP(orders=DEFAULT_ORDERS, divergences=up(xi + rho * DEFAULT_ORDERS, 4), adjacency=adjacency)


def _mixture(event: Any, adjacency: Adjacency) -> Notion:
    """The worst is that all moves point the same way, so that their signs do not matter."""
    if adjacency.replaces:
        raise UnsupportedEvent("dp_event_replaces_none", event=event)
    deviation = checked_number("standard_deviation", event.standard_deviation, NON_NEGATIVE)
    sizes = np.abs(checked_array("sensitivities", event.sensitivities, FINITE))
    sizes, weights = checked_lists(
        ("sensitivities", sizes, NON_NEGATIVE), ("sampling_probs", event.sampling_probs, UNIT)
    )
    if abs(float(weights.sum()) - 1) > _ACCURATE:
        raise UnsupportedEvent("dp_event_weights", event=event, total=float(weights.sum()))
    if not sizes[weights > 0].any():
        return GaussianDP(0.0, adjacency)
    if deviation == 0:
        return NoPrivacy(adjacency)
    lost = max(1 - float(weights.sum()), 0.0)
    return present_or_absent(up(sizes[weights > 0] / deviation, 2), weights[weights > 0], lost, adjacency)


def _not_private(event: Any, adjacency: Adjacency) -> Notion:
    return NoPrivacy(adjacency)


SINGLE: dict[type, Callable[[Any, Adjacency], Notion]] = {
    dp.NonPrivateDpEvent: _not_private,
    dp.GaussianDpEvent: _gaussian,
    dp.LaplaceDpEvent: _laplace,
    dp.dp_event.DiscreteLaplaceDpEvent: _discrete_laplace,
    dp.RandomizedResponseDpEvent: _randomized_response,
    dp.ZCDpEvent: _concentrated,
    dp.dp_event.MixtureOfGaussiansDpEvent: _mixture,
}
