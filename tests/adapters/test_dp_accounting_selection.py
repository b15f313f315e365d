"""`RepeatAndSelectDpEvent` as a notion: what dp-accounting says at the same orders, and less by the profile of a trial."""

from __future__ import annotations

import math
from typing import Any

import dp_accounting as dp
import pytest

import lastiterate as li
from lastiterate.adapters.dp_accounting import LastIterateAccountant, LastIterateDpEvent, UnsupportedEvent, notion_of
from lastiterate.curves.minimum import Least
from lastiterate.curves.renyi import DEFAULT_ORDERS

Relation = dp.NeighboringRelation
ADD, ONE, SPECIAL = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL
Gaussian, Repeat = dp.GaussianDpEvent, dp.dp_event.RepeatAndSelectDpEvent
LAWS = [(10.0, 1.0), (10.0, 0.0), (30.0, 0.5), (1.5, 3.0), (1.0, math.inf), (10.0, math.inf), (100.0, math.inf)]
INSIDE = [
    Gaussian(2.0),
    dp.ComposedDpEvent([Gaussian(3.0), dp.SelfComposedDpEvent(Gaussian(20.0), 10)]),
    dp.ZCDpEvent(rho=0.05, xi=0.01),
    dp.LaplaceDpEvent(2.0),
]
RUN = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
    batches=li.FullBatch(records=100),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.5),
    steps=16,
)


def theirs(event: Any, delta: float, relation: Any = ADD) -> float:
    """Under REPLACE_ONE its sensitivity is not doubled, so that there is nothing to compare with."""
    accountant = dp.rdp.RdpAccountant(orders=DEFAULT_ORDERS, neighboring_relation=relation)
    return float(accountant.compose(event).get_epsilon(delta))


@pytest.mark.parametrize(("mean", "shape"), LAWS)
def test_at_the_same_orders_both_say_the_same(mean: float, shape: float) -> None:
    """A curve of divergences is all that either knows of a zCDP event; ours has another bound beside that."""
    event = Repeat(dp.ZCDpEvent(rho=0.05, xi=0.01), mean, shape)
    found = notion_of(event, ADD)
    assert isinstance(found, Least)
    for delta in (1e-3, 1e-5, 1e-9):
        assert found.members[1].epsilon(delta) == pytest.approx(theirs(event, delta), abs=1e-6)
        assert found.epsilon(delta) <= theirs(event, delta) + 1e-9


@pytest.mark.parametrize("relation", [ADD, SPECIAL])
@pytest.mark.parametrize("inside", INSIDE, ids=lambda one: type(one).__name__)
def test_never_more_than_dp_accounting_and_never_less_than_one_trial(inside: Any, relation: Any) -> None:
    for mean, shape in ((10.0, 1.0), (10.0, math.inf)):
        event, accountant = Repeat(inside, mean, shape), LastIterateAccountant(relation)
        found = accountant.compose(event).get_epsilon(1e-5)
        assert notion_of(inside, relation).epsilon(1e-5) < found <= theirs(event, 1e-5, relation) + 1e-9
        assert accountant.get_delta(found) <= 1e-5 * (1 + 1e-6)


def test_sampled_steps_are_a_trial() -> None:
    event = Repeat(dp.PoissonSampledDpEvent(0.1, Gaussian(2.0)), 10.0, 1.0)
    assert 0.5 < notion_of(event, ADD).epsilon(1e-5) / theirs(event, 1e-5) < 1.0


@pytest.mark.parametrize("relation", list(Relation), ids=lambda one: one.name)
def test_it_is_what_select_says_of_the_same_trial(relation: Any) -> None:
    trial = notion_of(Gaussian(2.0), relation)
    for (mean, shape), law in (
        ((10.0, 1.0), li.trials.Geometric(10)),
        ((10.0, 0.0), li.trials.Logarithmic(10)),
        ((10.0, math.inf), li.trials.Poisson(10)),
    ):
        found = notion_of(Repeat(Gaussian(2.0), mean, shape), relation).epsilon(1e-5)
        assert found == li.select(trial, trials=law).epsilon(1e-5)


def test_it_composes_with_others_and_with_itself() -> None:
    once = Repeat(Gaussian(2.0), 10.0, 1.0)
    alone, twice, more = (
        LastIterateAccountant(ONE).compose(event, count).get_epsilon(1e-5)
        for event, count in ((once, 1), (once, 2), (dp.ComposedDpEvent([once, Gaussian(5.0)]), 1))
    )
    assert alone < more < twice < 2.2 * alone
    exact = li.select(li.notions.GaussianDP(1.0), trials=li.trials.Geometric(10))
    assert twice == pytest.approx(exact.compose(2).epsilon(1e-5), rel=1e-6)


def test_a_run_may_be_a_trial_under_its_own_relation() -> None:
    event = Repeat(LastIterateDpEvent(RUN), 10.0, 1.0)
    expected = li.select(li.account(RUN, 1e-5), trials=li.trials.Geometric(10)).epsilon(1e-5)
    assert LastIterateAccountant(ONE).compose(event).get_epsilon(1e-5) == pytest.approx(expected, rel=1e-9)
    assert not LastIterateAccountant(ADD).supports(event)


def test_what_runs_once_or_does_nothing_or_is_not_private_stays_so() -> None:
    assert notion_of(Repeat(Gaussian(2.0), 1.0, 1.0), ADD) == notion_of(Gaussian(2.0), ADD)
    assert notion_of(Repeat(dp.NoOpDpEvent(), 10.0, 1.0), ADD).epsilon(1e-5) == 0.0
    assert notion_of(Repeat(dp.NonPrivateDpEvent(), 10.0, 1.0), ADD).epsilon(1e-5) == math.inf
    nested = notion_of(Repeat(Repeat(Gaussian(2.0), 3.0, 1.0), 3.0, 1.0), ADD).epsilon(1e-5)
    assert nested > notion_of(Repeat(Gaussian(2.0), 3.0, 1.0), ADD).epsilon(1e-5)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (Repeat(Gaussian(1.0), 0.5, 1.0), "mean must be a float in"),
        (Repeat(Gaussian(1.0), math.nan, 1.0), "mean must be a float in"),
        (Repeat(Gaussian(1.0), math.inf, math.inf), "mean must be a float in"),
        (Repeat(Gaussian(1.0), 10.0, math.nan), "shape must be a float in"),
        (Repeat(Gaussian(1.0), 1.0, math.nan), "shape must be a float in"),
        (Repeat(Gaussian(1.0), 10.0, -1.0), "shape must be a float in"),
        (Repeat(Gaussian(1.0), 10.0, -math.inf), "shape must be a float in"),
        (Repeat(dp.UnsupportedDpEvent(), 10.0, 1.0), "UnsupportedDpEvent is not supported"),
    ],
)
def test_what_is_not_known_is_refused(event: Any, message: str) -> None:
    with pytest.raises(UnsupportedEvent, match=message):
        notion_of(event, ADD)
    assert not LastIterateAccountant(ADD).supports(event)
