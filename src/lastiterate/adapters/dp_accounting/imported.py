"""Events of dp_accounting as guarantees of this library."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import attr
import dp_accounting
import dp_accounting as dp
import numpy as np

from lastiterate.accounting.account import account
from lastiterate.accounting.report import Report
from lastiterate.adapters.dp_accounting.orders import (
    NoPrivacy,
    OnSample,
    adjacency_of,
    amplified,
    compose_by_order,
    laplace,
    pure,
    randomized_response,
    records_apart,
    relation_of,
)
from lastiterate.certificate.claims import released, releases_before
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
from lastiterate.curves.hidden_participation import present_or_absent
from lastiterate.curves.notion import Notion
from lastiterate.curves.renyi import DEFAULT_ORDERS, RenyiDP
from lastiterate.curves.selected import best_of_trials
from lastiterate.curves.subsampled import subsampled_gaussian
from lastiterate.curves.transformed import Displaced, as_computed
from lastiterate.curves.trials import NegativeBinomial, PoissonTrials, Trials
from lastiterate.errors import (
    FINITE,
    INSIDE_UNIT,
    NON_NEGATIVE,
    UNIT,
    InvalidInput,
    LastIterateError,
    Unavailable,
    checked_array,
    checked_count,
    checked_lists,
    checked_number,
)
from lastiterate.numerics.rounding import up
from lastiterate.runs.run import Run, checked_run
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.theorem import Guarantee
from lastiterate.theorems.typical_batches import without_exceptions

# Runs as events.


@attr.s(frozen=True, slots=True, auto_attribs=True)
class LastIterateDpEvent(dp_accounting.DpEvent):  # type: ignore[misc]
    """One execution of a run that releases only the last iterate and the checkpoints in `releases`.

    Its guarantee is that of `li.account(run, delta, releases)`, which holds for `run.adjacency` only.

    Attributes:
      run: The `li.Run` that was executed.
      releases: Steps after which the iterate is also released.
    """

    run: Run = attr.ib(converter=checked_run)
    releases: tuple[int, ...] = ()

    def __attrs_post_init__(self) -> None:
        given: Any = self.releases
        object.__setattr__(self, "releases", releases_before(self.run.steps, given))


# Events that are not supported, each with its reason.


_REASONS = {
    dp.SampledWithReplacementDpEvent: "dp_event_with_replacement",
    dp.SingleEpochTreeAggregationDpEvent: "dp_event_shares_noise",
    dp.TruncatedSubsampledGaussianDpEvent: "dp_event_truncated",
    dp.UnsupportedDpEvent: "dp_event_of_no_mechanism",
}


class UnsupportedEvent(Unavailable):
    """An event of dp-accounting that this library does not support. `event` is the part that is not supported."""

    def __init__(self, code: str, *, event: Any, field: str = "event", **values: Any) -> None:
        super().__init__(code, field=field, event=event, **values)
        self.event = event


def unsupported(event: Any) -> UnsupportedEvent:
    """Return the error for a kind of event that is not supported."""
    return UnsupportedEvent(_REASONS.get(type(event), "dp_event_unknown"), event=event)


# Parts of an event, each with its count.


Parts = list[tuple[Any, int]]


def parts_of(event: Any, count: int = 1) -> Iterator[tuple[Any, int]]:
    """Yield the parts of an event that are no compositions, in order, without those that do nothing."""
    match event:
        case dp.NoOpDpEvent():
            return
        case dp.ComposedDpEvent():
            for one in event.events:
                yield from parts_of(one, count)
        case dp.SelfComposedDpEvent():
            yield from parts_of(event.event, count * _times(event))
        case _:
            yield event, count


def _times(event: Any) -> int:
    try:
        return checked_count("count", event.count)
    except InvalidInput as error:
        raise UnsupportedEvent("dp_event_wrong", event=event, error=error) from error


def counted(parts: Parts) -> Parts:
    """Return the parts with equal events counted together."""
    found: Parts = []
    for event, count in parts:
        at = next((place for place, (known, _) in enumerate(found) if _equal(known, event)), None)
        if at is None:
            found.append((event, count))
        else:
            found[at] = event, found[at][1] + count
    return found


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except ValueError:  # arrays among the fields; parts that are not recognised as equal cost time alone
        return False


# Random numbers of repetitions of a `RepeatAndSelectDpEvent`.


def trials_of_event(event: Any) -> Trials | None:
    """Return the law of repetitions: Poisson for an infinite shape, else negative binomial; None if it runs once."""
    try:
        return _trials(event)
    except InvalidInput as error:
        raise UnsupportedEvent("dp_event_wrong", event=event, error=error) from error


def _trials(event: Any) -> Trials | None:
    if event.shape == math.inf:
        return PoissonTrials(mean=event.mean)
    if event.mean == 1:
        checked_number("shape", event.shape, FINITE)
        return None
    return NegativeBinomial(mean=event.mean, shape=event.shape)


# Events on all records, as notions.


_ACCURATE = 1e-9  # what probabilities may add up to besides 1


def _gaussian(event: Any, adjacency: Adjacency) -> Notion:
    noise = checked_number("noise_multiplier", event.noise_multiplier, NON_NEGATIVE)
    return GaussianDP(up(records_apart(adjacency) / noise, 2), adjacency) if noise else NoPrivacy(adjacency)


def _laplace(event: Any, adjacency: Adjacency) -> Notion:
    noise = checked_number("noise_multiplier", event.noise_multiplier, NON_NEGATIVE)
    return laplace(up(records_apart(adjacency) / noise, 2), adjacency) if noise else NoPrivacy(adjacency)


def _discrete_laplace(event: Any, adjacency: Adjacency) -> Notion:
    """Pure guarantee of discrete Laplace noise, which is exact for a sensitivity of 1."""
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
    """Guarantee of a mixture: the worst is that all moves point the same way, whatever their signs."""
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


# Events on a random batch, as notions.


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
    """Guarantees of what is done with the batch, as if every batch had the record."""
    parts = list(parts_of(event.event))
    for part, _ in parts:
        if type(part) not in _INSIDE:
            raise UnsupportedEvent("dp_event_other_noise", event=event, inside=type(part).__name__)
    return [(SINGLE[type(part)](part, adjacency), count) for part, count in parts] or [(GaussianDP(0.0, adjacency), 1)]


def _are_gaussian(inside: Counted) -> bool:
    return all(isinstance(notion, GaussianDP) for notion, _ in inside)


def _on_a_batch(inside: Counted, rate: float, sampling: Sampling, adjacency: Adjacency) -> Notion:
    """Guarantee of mechanisms that all run on one and the same batch."""
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


# Any event as one notion.


_NOTIONS = {**SINGLE, **SAMPLED}
_REPEATED = dp.dp_event.RepeatAndSelectDpEvent
_REPORTS = 16  # are kept: accountants ask for the same run and δ again


def notion_of(event: Any, neighboring_relation: Any, delta: float = 1e-6) -> Notion:
    """Return the guarantee of an event of dp-accounting as one notion; its ε and δ are upper bounds.

    Noise multipliers are defined as in dp-accounting: noise divided by the norm of one record's contribution, so a Gaussian
    event is 2/noise_multiplier-GDP under REPLACE_ONE. If the event holds a run, its best theorem at `delta` is used; the
    notion is valid at every δ. An unsupported event raises `UnsupportedEvent`.
    """
    adjacency = adjacency_of(neighboring_relation)
    return composed(checked_parts(event, adjacency), adjacency, checked_number("delta", delta, INSIDE_UNIT))


def checked_parts(event: Any, adjacency: Adjacency, count: int = 1) -> Parts:
    """Return the parts that the event is composed of, or raise an error if one is not supported."""
    parts = list(parts_of(event, count))
    for part, _ in parts:
        _check(part, adjacency)
    return parts


def composed(parts: Parts, adjacency: Adjacency, delta: float) -> Notion:
    """Compose all parts; of the theorems about a run, the best at δ is taken."""
    notions = [(_notion(part, adjacency, delta), count) for part, count in counted(parts)]
    if any(isinstance(notion, NoPrivacy) for notion, _ in notions):
        return NoPrivacy(adjacency)
    if len(notions) == 1 and notions[0][1] == 1:
        return notions[0][0]
    return _together(notions) if notions else GaussianDP(0.0, adjacency)


def _together(notions: list[tuple[Notion, int]]) -> Notion:
    """Compose guarantees that were computed; displacements of the parts add up in squares.

    On each data set parts that are mu-GDP apart, one after the other, are √(Σ mu²)-GDP apart.
    """
    proved = [(without_exceptions(one.inner if isinstance(one, Displaced) else one), count) for one, count in notions]
    apart = [math.sqrt(count) * one.displacement for one, count in notions if isinstance(one, Displaced)]
    whole = compose_by_order(proved)
    return as_computed(whole, up(math.hypot(*apart), operations=5)) if apart else whole


def _notion(part: Any, adjacency: Adjacency, delta: float) -> Notion:
    if type(part) is LastIterateDpEvent:
        return _report(part.run, delta, part.releases).best.notion
    if type(part) is _REPEATED:
        return _best_of_repeated(part, adjacency, delta)
    if type(part) not in _NOTIONS:
        raise unsupported(part)
    try:
        return _NOTIONS[type(part)](part, adjacency)
    except UnsupportedEvent:
        raise
    except LastIterateError as error:
        raise UnsupportedEvent("dp_event_wrong", event=part, error=error) from error


def _best_of_repeated(event: Any, adjacency: Adjacency, delta: float) -> Notion:
    """Guarantee of the best of repeated trials; everything that the event repeats is one trial."""
    trials = trials_of_event(event)
    trial = composed(checked_parts(event.event, adjacency), adjacency, delta)
    return trial if trials is None or isinstance(trial, NoPrivacy) else best_of_trials(trial, trials)


@lru_cache(_REPORTS)
def _report(run: Any, delta: float, releases: tuple[int, ...]) -> Report:
    return account(run, delta, releases)


def _check(part: Any, adjacency: Adjacency) -> None:
    if type(part) is _REPEATED:
        trials_of_event(part)
        checked_parts(part.event, adjacency)
        return
    if type(part) is not LastIterateDpEvent:
        _notion(part, adjacency, 0.5)
        return
    if part.run.adjacency is not adjacency:
        raise UnsupportedEvent(
            "dp_event_relation",
            event=part,
            own=relation_of(part.run.adjacency),
            relation=relation_of(adjacency),
            adjacency=adjacency,
        )
    process = released(part.run.process, part.releases)
    if not any(isinstance(theorem.apply(process), Guarantee) for theorem in CATALOGUE):
        raise UnsupportedEvent("dp_event_no_theorem", event=part)
