"""`li.select`: beside dp-accounting, of reports and lists, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lastiterate as li
from lastiterate.curves.renyi import DEFAULT_ORDERS
from lastiterate.curves.selected import Selected, SelectedByTables, selected_renyi
from lastiterate.curves.trials import Trials
from lastiterate.errors import Incompatible, InvalidInput
from lastiterate.numerics.randomness import Source
from raising import raises

LAWS = [
    (li.trials.Poisson(mean=1.0), math.inf),
    (li.trials.Poisson(mean=10.0), math.inf),
    (li.trials.Poisson(mean=100.0), math.inf),
    (li.trials.Geometric(mean=10.0), 1.0),
    (li.trials.Logarithmic(mean=10.0), 0.0),
    (li.trials.NegativeBinomial(mean=30.0, shape=0.5), 0.5),
]
TEN = li.trials.Geometric(mean=10)


@pytest.mark.parametrize(("trials", "shape"), LAWS)
@pytest.mark.parametrize("kind", ["Gaussian", "Laplace"])
def test_dp_accounting_says_the_same_at_the_same_orders_and_more_than_we_do(
    trials: Trials, shape: float, kind: str
) -> None:
    events, rdp = (pytest.importorskip(f"dp_accounting.{name}") for name in ("dp_event", "rdp"))
    event = {"Gaussian": events.GaussianDpEvent(2.0), "Laplace": events.LaplaceDpEvent(1.0)}[kind]
    one, selected = (rdp.RdpAccountant(orders=DEFAULT_ORDERS) for _ in range(2))
    one.compose(event)
    selected.compose(events.RepeatAndSelectDpEvent(event, trials.mean, shape))
    trial = li.notions.RenyiDP(orders=one.orders, divergences=one.rdp)
    exact = li.notions.GaussianDP(mu=0.5) if kind == "Gaussian" else trial
    for delta in (1e-3, 1e-5, 1e-9) if trials.mean == 10 else (1e-5,):
        theirs = selected.get_epsilon(delta)
        assert selected_renyi(trial, trials).epsilon(delta) == pytest.approx(theirs, abs=1e-6)
        assert li.select(trial, trials=trials).epsilon(delta) <= theirs + 1e-9
        assert li.select(exact, trials=trials).epsilon(delta) <= theirs + 1e-9


@pytest.mark.parametrize("trials", [law for law, _ in LAWS])
def test_the_number_of_trials_has_the_mean_that_was_asked_for(trials: Trials) -> None:
    source = Source(7)
    drawn = np.array([trials.drawn(source) for _ in range(4000)])
    assert abs(drawn.mean() - trials.mean) < 5 * drawn.std() / math.sqrt(len(drawn)) + 1e-9
    assert drawn.min() >= (0 if isinstance(trials, li.trials.Poisson) else 1)


@pytest.mark.parametrize("mean", [1.0001, 3.0, 1e6])
@pytest.mark.parametrize("shape", [-0.9, -0.5, 0.0, 1e-10, 1.0, 50.0])
def test_a_negative_binomial_law_has_its_mean(mean: float, shape: float) -> None:
    trials = li.trials.NegativeBinomial(mean=mean, shape=shape)
    gamma = trials.stop
    of_gamma = (1 / gamma - 1) / -math.log(gamma)
    if abs(shape) > 1e-9:
        of_gamma = shape * (1 - gamma) / (gamma * -math.expm1(shape * math.log(gamma)))
    assert of_gamma == pytest.approx(mean, rel=1e-9)
    assert trials.tail(trials.fall(np.array([0.25]))) == pytest.approx(0.25)
    assert math.isfinite(li.select(li.notions.GaussianDP(mu=0.1), trials=trials).epsilon(1e-5))


@pytest.mark.parametrize(
    "trials",
    [
        li.trials.Poisson(1e-300),
        li.trials.Poisson(500.0),
        li.trials.Geometric(1 + 1e-15),
        li.trials.Logarithmic(1e6),
        li.trials.NegativeBinomial(1e6, 50.0),
    ],
)
def test_laws_at_the_ends_of_their_range_are_answered(trials: Trials) -> None:
    for trial in (*map(li.notions.GaussianDP, (0.0, 1e-8, 5.0, 1e3)), li.notions.Profile(epsilons=[1.0], deltas=[0.0])):
        found = li.select(trial, trials=trials)
        deltas = np.array([1e-2, 1e-30])
        assert trials.mean < 1 or (found.epsilon(deltas) >= trial.epsilon(deltas) * (1 - 1e-9)).all()
        assert 0.0 <= found.delta(1.0) <= 1.0


def test_the_pieces_are_weights_that_add_up_to_the_mean_and_shifts() -> None:
    logs, weights = Selected(li.notions.GaussianDP(mu=0.5), TEN).pieces
    assert weights.sum() == pytest.approx(10.0)
    assert (np.diff(logs) >= 0).all()
    assert logs[0] < 0


def test_pure_differential_privacy_costs_no_more_than_the_corollary_says() -> None:
    """Papernot and Steinke 2022, Corollary 3: 2 + shape times the ε of a trial."""
    pure = li.notions.Profile(epsilons=[1.0], deltas=[0.0])
    for trials, times in ((TEN, 3.0), (li.trials.Logarithmic(mean=10), 2.0)):
        found = li.select(pure, trials=trials)
        assert found.delta(times) == 0.0
        assert 1.0 < found.epsilon(1e-12) < times


def test_a_table_of_a_trial_says_nearly_the_same() -> None:
    trial = li.notions.GaussianDP(mu=0.5)
    exact = Selected(trial, TEN)
    tabled = SelectedByTables(trial, TEN)
    for delta in (1e-3, 1e-6, 1e-12):
        assert exact.epsilon(delta) <= tabled.epsilon(delta) <= 1.001 * exact.epsilon(delta)
    assert exact.delta(2.0) <= tabled.delta(2.0) <= 1.01 * exact.delta(2.0)


def test_a_report_counts_as_its_best_guarantee_and_a_list_as_the_worst() -> None:
    run = li.Run(
        loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
        batches=li.Cyclic(records=1000, batch_size=100),
        step_size=0.5,
        noise=li.OnMeanGradient(std=0.05),
        steps=li.epochs(3),
    )
    report = li.account(run, delta=1e-5)
    alone = li.select(report, trials=TEN)
    assert alone.epsilon(1e-5) == li.select(report.best.notion, trials=TEN).epsilon(1e-5) > report.epsilon
    small, large = li.notions.GaussianDP(mu=0.01), li.notions.GaussianDP(mu=2.0)
    one_large = li.select(large, trials=TEN).epsilon(1e-5)
    assert one_large <= li.select([report, large, small], trials=TEN).epsilon(1e-5) <= 1.001 * one_large
    assert li.select([small, large], trials=TEN).epsilon(1e-5) == one_large
    mixed = li.select([small, li.notions.Profile(epsilons=[0.3], deltas=[1e-7])], trials=TEN)
    assert mixed.epsilon(1e-3) >= li.select(small, trials=TEN).epsilon(1e-3)


def test_what_cannot_be_selected_from_is_refused_with_its_field() -> None:
    with raises(
        "must_be", "trials", kind=InvalidInput, got="10", allowed="such as li.trials.Geometric(mean=10)"
    ) as refused:
        li.select(li.notions.GaussianDP(mu=1.0), trials=10)  # type: ignore[arg-type]
    assert refused.value.field == "trials"
    for nothing in ([], 3, "run.toml", None):
        with pytest.raises(InvalidInput, match="select needs") as refused:
            li.select(nothing, trials=TEN)
        assert refused.value.field == "guarantees"
    with raises("adjacencies_differ", kind=Incompatible):
        li.select([li.notions.GaussianDP(mu=1.0), li.notions.GaussianDP(mu=1.0, adjacency=li.ZERO_OUT)], trials=TEN)


@pytest.mark.parametrize(
    ("make", "settings", "field"),
    [
        (li.trials.Poisson, {"mean": 0.0}, "mean"),
        (li.trials.Poisson, {"mean": math.nan}, "mean"),
        (li.trials.Poisson, {"mean": 501.0}, "mean"),
        (li.trials.Geometric, {"mean": 1.0}, "mean"),
        (li.trials.Logarithmic, {"mean": 1e9}, "mean"),
        (li.trials.NegativeBinomial, {"mean": 3.0, "shape": -1.0}, "shape"),
    ],
)
def test_a_law_outside_its_range_is_refused(make: type[Trials], settings: dict[str, float], field: str) -> None:
    with pytest.raises(InvalidInput, match=f"{field} must be a float in") as refused:
        make(**settings)
    assert refused.value.field == field


def test_guarantees_of_selections_compose_and_change_their_neighbours() -> None:
    selected = Selected(li.notions.GaussianDP(mu=0.2), TEN)
    assert selected.relabelled(li.ZERO_OUT).adjacency is li.ZERO_OUT
    twice = li.compose([selected, selected]).epsilon(1e-5)
    assert selected.epsilon(1e-5) < twice < 2 * selected.epsilon(1e-5)
    assert 0.0 < selected.tradeoff(0.1) < 0.9


def test_a_divergence_of_0_at_some_order_is_no_release_at_all() -> None:
    nothing = li.notions.RenyiDP(orders=[2.0, 8.0], divergences=[0.0, 0.7])
    assert nothing.delta([0.0, 0.5, 3.0]).tolist()[1:] == [0.0, 0.0]
    assert li.select(nothing, trials=TEN).delta(1.0) < 1e-9
