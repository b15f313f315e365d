"""Events of dp-accounting as notions: above the truth, at most what its pessimistic accountant says, or refused."""

from __future__ import annotations

import math
from typing import Any

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as distributions

import lastiterate as li
from lastiterate.adapters.dp_accounting import (
    LastIterateAccountant,
    LastIterateDpEvent,
    UnsupportedEvent,
    adjacency_of,
    notion_of,
    relation_of,
)
from lastiterate.adapters.dp_accounting.orders import ByOrder, OnSample
from raising import raises

Relation = dp.NeighboringRelation
ADD, ONE, SPECIAL = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL
Gaussian, Laplace, Poisson, Repeated = (
    dp.GaussianDpEvent,
    dp.LaplaceDpEvent,
    dp.PoissonSampledDpEvent,
    dp.SelfComposedDpEvent,
)
DiscreteLaplace, Mixture = dp.dp_event.DiscreteLaplaceDpEvent, dp.dp_event.MixtureOfGaussiansDpEvent
DELTAS = (1e-2, 1e-5, 1e-8)
INTERVAL = 1e-3  # of their distributions

# Each with the part of its own pessimistic ε by which ours may be larger: rounding where both are exact.
COMPARED: list[tuple[Any, float]] = [
    (dp.NoOpDpEvent(), 0.0),
    (Gaussian(1.0), 0.0),
    (Repeated(Gaussian(5.0), 100), 0.0),
    (Laplace(1.0), 0.0),
    (Repeated(Laplace(10.0), 50), 1e-6),
    (dp.ComposedDpEvent([Gaussian(2.0), Laplace(3.0)]), 1e-5),
    (Poisson(0.01, Gaussian(1.0)), 1e-5),
    (Repeated(Poisson(0.01, Gaussian(1.0)), 1000), 0.0),
    (dp.ComposedDpEvent([Repeated(Poisson(0.1, Gaussian(0.7)), 20), Gaussian(3.0)]), 0.0),
    (Poisson(0.1, Laplace(1.0)), 0.0),
    (Repeated(Poisson(0.1, Laplace(1.0)), 20), 1e-5),
    (dp.ComposedDpEvent([Repeated(Poisson(0.1, Gaussian(1.0)), 10), Laplace(2.0)]), 1e-4),
    (DiscreteLaplace(0.5, 1), 1e-12),
    (dp.RandomizedResponseDpEvent(0.5, 10), 0.0),
]


@pytest.mark.parametrize("relation", list(Relation), ids=lambda one: one.name)
@pytest.mark.parametrize(("event", "looser"), COMPARED, ids=lambda one: str(one)[:70])
def test_epsilon_is_at_most_that_of_its_pessimistic_accountant(event: Any, looser: float, relation: Relation) -> None:
    theirs, ours = dp.pld.PLDAccountant(relation, INTERVAL), LastIterateAccountant(relation)
    if not theirs.supports(event):
        return
    theirs.compose(event)
    ours.compose(event)
    for delta in DELTAS:
        epsilon = ours.get_epsilon(delta)
        assert epsilon <= theirs.get_epsilon(delta) * (1 + looser) + 1e-12
        assert ours.get_delta(epsilon) <= delta * (1 + 1e-9)


def optimistic(event: Any, relation: Relation) -> Any:
    """Their lower estimate, where they have one."""
    about: dict[str, Any] = {"pessimistic_estimate": False, "value_discretization_interval": INTERVAL}
    match event:
        case dp.SelfComposedDpEvent():
            return optimistic(event.event, relation).self_compose(event.count, 0)
        case dp.GaussianDpEvent():
            return distributions.from_gaussian_mechanism(
                event.noise_multiplier, neighboring_relation=relation, use_connect_dots=False, **about
            )
        case dp.LaplaceDpEvent():
            sensitivity = 2 if relation is ONE else 1
            return distributions.from_laplace_mechanism(
                event.noise_multiplier, sensitivity, use_connect_dots=False, **about
            )
        case dp.PoissonSampledDpEvent(event=dp.GaussianDpEvent()):
            return distributions.from_gaussian_mechanism(
                event.event.noise_multiplier,
                sampling_prob=event.sampling_probability,
                neighboring_relation=relation,
                use_connect_dots=False,
                **about,
            )
        case _:
            return distributions.from_laplace_mechanism(
                event.event.noise_multiplier,
                sampling_prob=event.sampling_probability,
                use_connect_dots=False,
                **about,
            )


LOWER = [
    Gaussian(1.0),
    Laplace(1.0),
    Repeated(Laplace(10.0), 20),
    Poisson(0.05, Gaussian(1.0)),
    Repeated(Poisson(0.05, Gaussian(1.0)), 30),
    Repeated(Poisson(0.1, Laplace(1.0)), 10),
]


@pytest.mark.parametrize("relation", list(Relation), ids=lambda one: one.name)
@pytest.mark.parametrize("event", LOWER, ids=lambda one: str(one)[:70])
def test_epsilon_is_at_least_its_optimistic_estimate(event: Any, relation: Relation) -> None:
    ours = LastIterateAccountant(relation)
    if not ours.supports(event):
        return
    ours.compose(event)
    lower = optimistic(event, relation)
    for delta in (1e-2, 1e-5):
        assert ours.get_epsilon(delta) >= lower.get_epsilon_for_delta(delta) - 1e-12


@pytest.mark.parametrize("relation", list(Relation), ids=lambda one: one.name)
def test_epsilon_is_in_the_bracket_of_the_exact_value(relation: Relation) -> None:
    adjacency = adjacency_of(relation)
    mu = 2.0 if relation is ONE else 1.0
    for event, exact in (
        (Gaussian(1.0), li.notions.GaussianDP(mu, adjacency)),
        (
            Repeated(Poisson(0.05, Gaussian(1.0)), 30),
            li.notions.subsampled_gaussian(mu=mu, inclusion=0.05, adjacency=adjacency).compose(30),
        ),
    ):
        notion = notion_of(event, relation)
        assert notion.adjacency is adjacency
        lower, upper = exact.bracket(1e-5)  # type: ignore[attr-defined]
        assert lower <= notion.epsilon(1e-5) <= upper * (1 + 1e-9)


@pytest.mark.parametrize("times", [1, 2, 30])
def test_composing_order_by_order_is_above_the_exact_composition_and_near(times: int) -> None:
    by_order = ByOrder(((OnSample(li.notions.GaussianDP(1.0, li.ZERO_OUT), 0.05), times),), li.ZERO_OUT)
    exact = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.05, adjacency=li.ZERO_OUT).compose(times)
    for delta in (1e-2, 1e-4, 1e-7):
        lower, upper = exact.bracket(delta)  # type: ignore[attr-defined]
        assert lower <= by_order.epsilon(delta) <= upper * (1 + 1e-3) + 1e-9
    for epsilon in (0.0, 0.5, 2.0):
        lower, upper = exact.delta_bracket(epsilon)  # type: ignore[attr-defined]
        assert lower <= by_order.delta(epsilon) <= upper * (1 + 1e-2)


def test_the_order_without_the_record_is_that_of_the_mixture() -> None:
    """By quadrature: N(0, 1) beyond e^ε·((1 − q)·N(0, 1) + q·N(1, 1))."""
    x = np.linspace(-12.0, 12.0, 400_001)
    without, shifted = (np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (0.0, 1.0))
    sample = OnSample(li.notions.GaussianDP(1.0, li.ZERO_OUT), 0.3)
    for epsilon in (0.0, 0.1, 0.3, 0.36):
        beyond = np.maximum(without - math.exp(epsilon) * (0.7 * without + 0.3 * shifted), 0.0)
        exact = float(beyond.sum() * (x[1] - x[0]))
        assert exact * (1 - 1e-6) <= sample.absent.delta(epsilon) <= exact * (1 + 1e-6) + 1e-14


def test_laplace_noise_in_several_coordinates_is_at_most_as_in_one() -> None:
    """Two moves of a half each, composed, against one move of 1."""
    both = dp.ComposedDpEvent([Laplace(2.0), Laplace(2.0)])
    for epsilon in (0.0, 0.3, 0.7, 0.9):
        assert notion_of(both, ADD).delta(epsilon) <= notion_of(Laplace(1.0), ADD).delta(epsilon)
    shift = np.random.default_rng(0).laplace(size=(200_000, 2)) + 0.5
    ratio = np.exp(np.abs(shift).sum(axis=1) - np.abs(shift - 0.5).sum(axis=1))
    assert np.mean(np.maximum(1 - ratio**-1 * math.exp(0.3), 0)) <= notion_of(Laplace(1.0), ADD).delta(0.3)


def test_discrete_laplace_and_mixtures_are_above_theirs_and_near() -> None:
    for event, near in ((Repeated(DiscreteLaplace(0.1, 3), 20), 1.1), (DiscreteLaplace(0.2, 5), 1.01)):
        theirs = dp.pld.PLDAccountant(ADD, INTERVAL).compose(event).get_epsilon(1e-5)
        assert theirs - 1e-4 <= notion_of(event, ADD).epsilon(1e-5) <= near * theirs
    alone = notion_of(Mixture(1.0, [0.0, 1.0], [0.9, 0.1]), SPECIAL)
    sampled = notion_of(Poisson(0.1, Gaussian(1.0)), SPECIAL)
    assert sampled.epsilon(1e-5) <= alone.epsilon(1e-5) <= 1.001 * sampled.epsilon(1e-5)
    assert notion_of(Mixture(1.0, [-1.0, 0.0], [0.1, 0.9]), ADD).epsilon(1e-5) == pytest.approx(alone.epsilon(1e-5))
    assert notion_of(Mixture(0.0, [0.0], [1.0]), ADD).epsilon(1e-5) == 0.0


def test_batches_of_fixed_size_are_twice_as_far_apart_as_their_renyi_accountant_says() -> None:
    event = Repeated(dp.SampledWithoutReplacementDpEvent(1000, 10, Gaussian(1.0)), 1000)
    ours = notion_of(event, ONE).epsilon(1e-5)
    exact = li.notions.subsampled_gaussian(
        mu=2.0, inclusion=0.01, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    ).compose(1000)
    lower, upper = exact.bracket(1e-5)  # type: ignore[attr-defined]
    assert lower <= ours <= upper * (1 + 1e-9)
    assert ours == pytest.approx(14.82, abs=0.01)
    assert notion_of(event, SPECIAL).epsilon(1e-5) == pytest.approx(ours)
    theirs = dp.rdp.RdpAccountant(neighboring_relation=ONE).compose(event).get_epsilon(1e-5)
    assert theirs == pytest.approx(3.58, abs=0.01)


def test_several_gaussians_on_one_sample_are_one() -> None:
    inside = dp.ComposedDpEvent([Gaussian(2.0), Repeated(Gaussian(2.0), 3)])
    for event, one, relation in (
        (Poisson(0.1, inside), Poisson(0.1, Gaussian(1.0)), ADD),
        (
            dp.SampledWithoutReplacementDpEvent(50, 5, inside),
            dp.SampledWithoutReplacementDpEvent(50, 5, Gaussian(1.0)),
            ONE,
        ),
    ):
        assert notion_of(event, relation).epsilon(1e-5) == pytest.approx(notion_of(one, relation).epsilon(1e-5))


def test_repeated_responses_are_counted_which_theirs_are_not() -> None:
    event = dp.RandomizedResponseDpEvent(0.9, 4)
    once, ten = notion_of(event, ONE), notion_of(Repeated(event, 10), ONE)
    assert ten.epsilon(1e-5) > 8 * once.epsilon(1e-5)
    theirs = dp.pld.PLDAccountant(ONE, INTERVAL)
    forgotten = theirs.compose(event, 10).get_epsilon(1e-5)
    assert forgotten < 1.01 * once.epsilon(1e-5)


def test_sure_and_never_sampled_and_no_privacy() -> None:
    assert notion_of(Poisson(1.0, Gaussian(1.0)), ADD) == notion_of(Gaussian(1.0), ADD)
    assert notion_of(Poisson(0.0, Gaussian(0.0)), ADD).epsilon(1e-5) == 0.0
    assert notion_of(Poisson(0.5, dp.NoOpDpEvent()), ADD).epsilon(1e-5) == 0.0
    for event in (dp.NonPrivateDpEvent(), Gaussian(0.0), Laplace(0.0), Poisson(0.1, Gaussian(0.0))):
        notion = notion_of(dp.ComposedDpEvent([Gaussian(1.0), event]), SPECIAL)
        assert (notion.epsilon(1e-5), notion.delta(1.0)) == (math.inf, 1.0)


def test_concentrated_privacy() -> None:
    assert notion_of(dp.ZCDpEvent(0.5), ONE).epsilon(1e-5) == li.notions.RenyiDP(rho=0.5).epsilon(1e-5)
    shifted = notion_of(dp.ZCDpEvent(rho=0.5, xi=0.1), ONE)
    theirs = dp.rdp.RdpAccountant(neighboring_relation=ONE).compose(dp.ZCDpEvent(rho=0.5, xi=0.1))
    assert shifted.epsilon(1e-5) <= theirs.get_epsilon(1e-5)
    assert shifted.rdp(2.0) >= 1.1


RUN = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
    batches=li.FullBatch(records=1000),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.01),
    steps=100,
)
REFUSED = [
    (dp.UnsupportedDpEvent(), ADD, "it does not describe a mechanism"),
    (dp.SampledWithReplacementDpEvent(100, 5, Gaussian(1.0)), ONE, "several times"),
    (dp.SingleEpochTreeAggregationDpEvent(1.0, 8), SPECIAL, "its steps share noise"),
    (dp.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.0), ADD, "large batches are truncated"),
    (dp.SampledWithoutReplacementDpEvent(100, 5, Gaussian(1.0)), ADD, "use REPLACE_ONE or REPLACE_SPECIAL"),
    (dp.SampledWithoutReplacementDpEvent(5, 100, Gaussian(1.0)), ONE, "at most 5"),
    (dp.RandomizedResponseDpEvent(0.5, 3), ADD, "a removed record gives no response"),
    (Mixture(1.0, [0.0, 1.0], [0.5, 0.5]), ONE, "present or absent"),
    (Mixture(1.0, [0.0, 1.0], [0.5, 0.4]), ADD, "but sum to 0.9"),
    (Poisson(0.1, dp.ComposedDpEvent([Gaussian(1.0), Gaussian(1.0)])), ONE, "must contain one GaussianDpEvent"),
    (Poisson(0.1, Laplace(1.0)), ONE, "must contain one GaussianDpEvent"),
    (Poisson(0.1, LastIterateDpEvent(RUN)), ADD, "but it contains a LastIterateDpEvent"),
    (Poisson(1.5, Gaussian(1.0)), ADD, "sampling_probability must be a float in [0, 1]. Got 1.5"),
    (Gaussian(-1.0), ADD, "noise_multiplier must be a float in [0, inf). Got -1"),
    (Gaussian(math.nan), ADD, "noise_multiplier"),
    (Repeated(Gaussian(1.0), 0), ADD, "count must be an integer >= 1. Got 0"),
    (LastIterateDpEvent(RUN), SPECIAL, "use adjacency=li.ZERO_OUT in the run, or REPLACE_ONE"),
]


@pytest.mark.parametrize(("event", "relation", "reason"), REFUSED, ids=lambda one: str(one)[:40])
def test_what_is_not_supported_is_refused_with_one_sentence_and_changes_nothing(
    event: Any, relation: Relation, reason: str
) -> None:
    accountant = LastIterateAccountant(relation).compose(Gaussian(1.0))
    before = accountant.get_epsilon(1e-5)
    inside = dp.ComposedDpEvent([Gaussian(2.0), event])
    assert not accountant.supports(inside)
    with pytest.raises(dp.UnsupportedEventError, match="is not supported"):
        accountant.compose(inside)
    assert accountant.get_epsilon(1e-5) == before
    assert accountant.ledger == Gaussian(1.0)
    with pytest.raises(UnsupportedEvent) as refusal:
        notion_of(inside, relation)
    assert refusal.value.event == event or event != event
    message = str(refusal.value)
    assert reason in message
    assert message.startswith(f"{type(event).__name__} is not supported: ")
    assert len(message) < 300
    assert message.endswith(".")
    assert "…" not in message


def test_an_event_of_somebody_else_and_subclasses_are_refused() -> None:
    class Mine(Gaussian):  # type: ignore[misc]
        """May mean anything."""

    class Other(dp.DpEvent):  # type: ignore[misc]
        pass

    for event in (Mine(1.0), Other()):
        assert not LastIterateAccountant(ADD).supports(event)
    with raises("dp_event_unknown", "event", kind=UnsupportedEvent):
        notion_of(dp.ComposedDpEvent(["gaussian"]), ADD)


def test_relations_are_those_of_dp_accounting() -> None:
    assert [adjacency_of(one) for one in Relation] == [li.ADD_OR_REMOVE_ONE, li.REPLACE_ONE, li.ZERO_OUT]
    assert [adjacency_of(relation_of(one)) for one in li.notions.Adjacency] == list(li.notions.Adjacency)
    for wrong in ("REPLACE_ONE", li.REPLACE_ONE, None):
        with raises("dp_relation_kind", "neighboring_relation", kind=li.errors.InvalidInput):
            adjacency_of(wrong)
        with raises("dp_relation_kind", "neighboring_relation", kind=li.errors.InvalidInput):
            LastIterateAccountant(wrong)
    with raises(
        "must_be",
        "adjacency",
        kind=li.errors.InvalidInput,
        allowed="one of 'replace_one', 'zero_out', 'add_or_remove_one'",
    ):
        relation_of("replace")  # type: ignore[arg-type]
