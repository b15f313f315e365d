"""Events on a random batch, as notions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dp_accounting as dp

from lastiterate.adapters.dp_accounting.orders import OnSample
from lastiterate.adapters.dp_accounting.parts import parts_of
from lastiterate.adapters.dp_accounting.profiles import NoPrivacy, amplified
from lastiterate.adapters.dp_accounting.refusals import UnsupportedEvent
from lastiterate.adapters.dp_accounting.single import SINGLE
from lastiterate.curves.adjacency import (
    ADD_OR_REMOVE_ONE,
    FIXED_SIZE,
    POISSON,
    REPLACE_ONE,
    Adjacency,
    Sampling,
)
from lastiterate.curves.compose import Counted, compose_counted
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.subsampled import subsampled_gaussian
from lastiterate.errors import UNIT, checked_count, checked_number
from lastiterate.numerics.rounding import up

_INSIDE = (dp.GaussianDpEvent, dp.LaplaceDpEvent)


def _poisson(event: Any, adjacency: Adjacency) -> Notion:
    rate = checked_number("sampling_probability", event.sampling_probability, UNIT)
    inside = _inside(event, adjacency)
    if adjacency.replaces and not (len(inside) == inside[0][1] == 1 and _are_gaussian(inside)):
        raise UnsupportedEvent("dp_event_not_one_gaussian", event=event)
    return _on_a_batch(inside, rate, POISSON, adjacency)


def _without_replacement(event: Any, adjacency: Adjacency) -> Notion:
    """Zeroing a record out is one way to replace it. Another record takes its place in other batches, so that what these
    differ by is as if it were replaced.
    """
    if adjacency is ADD_OR_REMOVE_ONE:
        raise UnsupportedEvent("dp_event_fixed_size", event=event)
    records = checked_count("source_dataset_size", event.source_dataset_size)
    batch = checked_count("sample_size", event.sample_size, least=0)
    if batch > records:
        raise UnsupportedEvent("dp_event_sample_size", event=event, records=records, sample=batch)
    rate = min(up(batch / records, 1), 1.0)
    return _on_a_batch(_inside(event, REPLACE_ONE), rate, FIXED_SIZE, REPLACE_ONE).relabelled(adjacency)


def _inside(event: Any, adjacency: Adjacency) -> Counted:
    """What is done with the batch, as if every batch had the record."""
    parts = list(parts_of(event.event))
    for part, _ in parts:
        if type(part) not in _INSIDE:
            raise UnsupportedEvent("dp_event_other_noise", event=event, inside=type(part).__name__)
    return [(SINGLE[type(part)](part, adjacency), count) for part, count in parts] or [(GaussianDP(0.0, adjacency), 1)]


def _are_gaussian(inside: Counted) -> bool:
    return all(isinstance(notion, GaussianDP) for notion, _ in inside)


def _on_a_batch(inside: Counted, rate: float, sampling: Sampling, adjacency: Adjacency) -> Notion:
    """Everything inside happens to one and the same batch."""
    if rate == 0:
        return GaussianDP(0.0, adjacency)
    if any(isinstance(notion, NoPrivacy) for notion, _ in inside):
        return NoPrivacy(adjacency)
    together = compose_counted(inside)
    if not isinstance(together, GaussianDP):
        if rate == 1:
            return together
        return OnSample(together, rate) if sampling is POISSON else amplified(together, rate)
    if together.mu == 0 or rate == 1:
        return together
    return subsampled_gaussian(mu=together.mu, inclusion=rate, sampling=sampling, adjacency=adjacency)


SAMPLED: dict[type, Callable[[Any, Adjacency], Notion]] = {
    dp.PoissonSampledDpEvent: _poisson,
    dp.SampledWithoutReplacementDpEvent: _without_replacement,
}
