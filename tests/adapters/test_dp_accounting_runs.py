"""Runs as events: the accountant says what `li.account` says, composes, calibrates, and keeps its ledger."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import dp_accounting as dp
import pytest

import lastiterate as li
from lastiterate.adapters.dp_accounting import (
    LastIterateAccountant,
    LastIterateDpEvent,
    compose_into,
    event_of,
    notion_of,
    privacy_loss_distribution,
)
from raising import raises

Relation = dp.NeighboringRelation
ADD, ONE, SPECIAL = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL
RUN = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
    batches=li.FullBatch(records=1000),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.01),
    steps=100,
)
CYCLIC = replace(RUN, batches=li.Cyclic(records=1000, batch_size=100), steps=30, noise=li.OnMeanGradient(std=0.05))
POISSON = li.Run(
    loss=li.losses.network(clip=1.0),
    batches=li.Poisson(records=6000, rate=0.01),
    step_size=0.05,
    noise=li.OnGradientSum(multiplier=1.0, clip=1.0),
    steps=300,
    adjacency=li.ADD_OR_REMOVE_ONE,
)


@pytest.mark.parametrize(
    ("run", "relation", "releases"),
    [
        (RUN, ONE, ()),
        (RUN, ONE, (20, 50)),
        (replace(RUN, prior_mu=0.3), ONE, ()),
        (replace(RUN, adjacency=li.ZERO_OUT), SPECIAL, ()),
        (CYCLIC, ONE, ()),
        (POISSON, ADD, ()),
    ],
    ids=["full batches", "checkpoints", "after a release", "zero-out", "cyclic", "poisson"],
)
def test_one_run_costs_what_account_says(run: li.Run, relation: Relation, releases: tuple[int, ...]) -> None:
    event = LastIterateDpEvent(run, releases)
    accountant = LastIterateAccountant(relation)
    assert accountant.supports(event)
    accountant.compose(event)
    report = li.account(run, 1e-5, releases)
    assert accountant.get_epsilon(1e-5) == report.epsilon
    assert accountant.get_delta(report.epsilon) == pytest.approx(1e-5, rel=1e-4)
    assert notion_of(event, relation, delta=1e-5).epsilon(1e-5) == report.epsilon


def test_runs_compose_with_each_other_and_with_events() -> None:
    mu = li.account(RUN, 1e-5).mu
    assert mu is not None
    accountant = LastIterateAccountant(ONE)
    accountant.compose(LastIterateDpEvent(RUN), 2).compose(dp.GaussianDpEvent(4.0)).compose(LastIterateDpEvent(RUN))
    expected = li.compose([li.notions.GaussianDP(mu)] * 3 + [li.notions.GaussianDP(0.5)])
    assert accountant.get_epsilon(1e-5) == pytest.approx(expected.epsilon(1e-5), rel=1e-12)
    assert accountant.get_delta(5.0) == pytest.approx(expected.delta(5.0), rel=1e-9)
    laplace = LastIterateAccountant(ONE).compose(dp.ComposedDpEvent([LastIterateDpEvent(RUN), dp.LaplaceDpEvent(2.0)]))
    assert li.account(RUN, 1e-5).epsilon < laplace.get_epsilon(1e-5) < li.account(RUN, 1e-5).epsilon + 1.0


def test_no_event_costs_nothing() -> None:
    accountant = LastIterateAccountant(ONE).compose(dp.NoOpDpEvent())
    assert (accountant.get_epsilon(1e-5), accountant.get_delta(0.0)) == (0.0, 0.0)
    with raises("must_be", "target_delta", kind=li.errors.InvalidInput, got="0", allowed="a float in (0, 1)"):
        accountant.get_epsilon(0.0)
    with raises("must_be", "target_epsilon", kind=li.errors.InvalidInput, allowed="a float in [0, inf)"):
        accountant.get_delta(-1.0)


def test_ledgers_and_builders_hold_runs() -> None:
    builder = dp.DpEventBuilder()
    for _ in range(2):
        builder.compose(LastIterateDpEvent(RUN))
    builder.compose(dp.GaussianDpEvent(3.0), 5)
    built = builder.build()
    assert built == dp.ComposedDpEvent(
        [dp.SelfComposedDpEvent(LastIterateDpEvent(RUN), 2), dp.SelfComposedDpEvent(dp.GaussianDpEvent(3.0), 5)]
    )
    accountant = LastIterateAccountant(ONE).compose(built)
    assert accountant.ledger == built
    again = LastIterateAccountant(ONE).compose(accountant.ledger)
    assert again.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)


def test_the_event_is_a_frozen_value_that_survives_a_named_tuple() -> None:
    event = LastIterateDpEvent(RUN, releases=[50, 20, 100])
    assert event == LastIterateDpEvent(RUN, (20, 50))
    assert hash(event) == hash(LastIterateDpEvent(RUN, (20, 50)))
    assert dp.DpEvent.from_named_tuple(event.to_named_tuple()) == event
    with pytest.raises(AttributeError):
        event.run = CYCLIC
    for run, releases, message in (
        ("run", (), "run must be a Run"),
        (RUN, (101,), "releases must be at most steps = 100"),
        (RUN, 5, "releases must be a list"),
    ):
        with pytest.raises(li.errors.InvalidInput, match=message):
            LastIterateDpEvent(run, releases)


def test_their_accountants_refuse_runs() -> None:
    for accountant in (dp.pld.PLDAccountant(ONE), dp.rdp.RdpAccountant(neighboring_relation=ONE)):
        assert not accountant.supports(LastIterateDpEvent(RUN))


def test_a_run_that_no_theorem_covers_is_refused() -> None:
    loss = li.losses.general(smoothness=1.0, gradient_sensitivity=1.0)
    run = li.Run(loss, li.Poisson(records=100, rate=0.1), 0.1, li.OnIterate(std=1.0), 10**9)
    with pytest.raises(li.errors.Unavailable):
        li.account(run, 1e-5)
    with pytest.raises(dp.UnsupportedEventError, match="no theorem applies to its run"):
        LastIterateAccountant(ONE).compose(LastIterateDpEvent(run))


def test_calibrate_dp_mechanism_finds_the_noise_of_calibrate() -> None:
    found = dp.calibrate_dp_mechanism(
        lambda: LastIterateAccountant(ONE),
        lambda factor: LastIterateDpEvent(RUN.with_noise(factor)),
        target_epsilon=1.0,
        target_delta=1e-5,
        bracket_interval=dp.ExplicitBracketInterval(1.0, 20.0),
        tol=1e-5,
    )
    noise: Any = li.calibrate(RUN, epsilon=1.0, delta=1e-5).noise  # leaves room for what the rounding of training adds
    assert found <= noise.std / 0.01 <= found * 1.001
    assert li.account(RUN.with_noise(found), 1e-5).epsilon <= 1.0


def test_calibrate_dp_mechanism_knows_whole_numbers_and_its_own_events() -> None:
    steps = dp.calibrate_dp_mechanism(
        lambda: LastIterateAccountant(ONE),
        lambda count: LastIterateDpEvent(RUN.with_noise(7.0).first(count)),
        target_epsilon=1.0,
        target_delta=1e-5,
        bracket_interval=dp.ExplicitBracketInterval(1, 400),
        discrete=True,
    )
    longest = li.calibrate(RUN.with_noise(7.0), epsilon=1.0, delta=1e-5, free="steps").steps
    assert longest - 1 <= steps <= longest
    noise = dp.calibrate_dp_mechanism(
        lambda: LastIterateAccountant(ADD), dp.GaussianDpEvent, target_epsilon=1.0, target_delta=1e-5
    )
    assert noise == pytest.approx(1 / li.notions.largest_mu(epsilon=1.0, delta=1e-5), abs=2e-6)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    ("relation", "multiplier"), [(ONE, 2.0), (SPECIAL, 1.0), (ADD, 1.0)], ids=["one", "special", "add"]
)
def test_gaussian_privacy_is_a_gaussian_event(mu: float, relation: Relation, multiplier: float) -> None:
    guarantee = li.notions.GaussianDP(
        mu, {ONE: li.REPLACE_ONE, SPECIAL: li.ZERO_OUT, ADD: li.ADD_OR_REMOVE_ONE}[relation]
    )
    event = event_of(guarantee)
    assert event.noise_multiplier == pytest.approx(multiplier / mu, rel=1e-14)
    theirs = compose_into(dp.pld.PLDAccountant(relation, 1e-3), guarantee)
    for delta in (1e-2, 1e-5, 1e-9):
        assert guarantee.epsilon(delta) <= theirs.get_epsilon(delta) <= guarantee.epsilon(delta) * (1 + 1e-4) + 1e-6
    assert guarantee.mu <= notion_of(event, relation).mu <= guarantee.mu * (1 + 1e-14)  # type: ignore[attr-defined]


def test_sampled_gaussians_are_sampled_events() -> None:
    sampled = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.05)
    guarantee = li.compose([sampled.compose(30), li.notions.GaussianDP(0.5, li.ADD_OR_REMOVE_ONE)])
    event = event_of(guarantee)
    theirs = dp.pld.PLDAccountant(ADD, 1e-3).compose(event).get_epsilon(1e-5)
    assert guarantee.epsilon(1e-5) <= theirs <= guarantee.epsilon(1e-5) * (1 + 1e-3)
    assert notion_of(event, ADD).epsilon(1e-5) == pytest.approx(guarantee.epsilon(1e-5), rel=1e-8)
    assert event_of(sampled) == dp.PoissonSampledDpEvent(0.05, event_of(li.notions.GaussianDP(1.0, li.ZERO_OUT)))
    assert event_of(li.notions.GaussianDP(0.0)) == dp.NoOpDpEvent()


def test_a_report_is_composed_into_their_accountant() -> None:
    report = li.account(RUN, 1e-5)
    theirs = compose_into(dp.pld.PLDAccountant(ONE, 1e-3), report).get_epsilon(1e-5)
    assert report.epsilon <= theirs <= report.epsilon * (1 + 1e-5)
    twice = compose_into(LastIterateAccountant(ONE), report, 2).get_epsilon(1e-5)
    assert twice == pytest.approx(report.best.notion.compose(2).epsilon(1e-5), rel=1e-12)


ROUNDED = replace(POISSON, arithmetic=li.training.Arithmetic(1.00001, 2.0**-15))
FACTOR = li.training.Arithmetic(1.00001, 0.0)
OWN_MEAN = replace(
    POISSON,
    batches=li.parts.PoissonMean(records=400, rate=0.5),
    noise=li.OnMeanGradient(std=0.2),
    adjacency=li.REPLACE_ONE,
)


@pytest.mark.parametrize(
    ("adjacency", "relation"), [(li.ADD_OR_REMOVE_ONE, ADD), (li.ZERO_OUT, SPECIAL), (li.REPLACE_ONE, ONE)]
)
def test_reports_of_poisson_batches_are_events(adjacency: Any, relation: Relation) -> None:
    report = li.account(replace(POISSON, adjacency=adjacency), 1e-5)
    event = event_of(report)
    assert (event.count, event.event.sampling_probability) == (300, 0.01)
    assert event.event.event.noise_multiplier == pytest.approx(1.0, rel=1e-9)
    theirs = compose_into(dp.pld.PLDAccountant(relation, 1e-3), report).get_epsilon(1e-5)
    assert report.epsilon <= theirs <= report.epsilon * (1 + 1e-3)
    ours = compose_into(LastIterateAccountant(relation), report, 2).get_epsilon(1e-5)
    assert report.epsilon < ours <= notion_of(dp.SelfComposedDpEvent(event, 2), relation).epsilon(1e-5)


@pytest.mark.parametrize(
    ("run", "relation", "releases"),
    [(ROUNDED, ADD, ()), (OWN_MEAN, ONE, ()), (CYCLIC, ONE, (10,))],
    ids=["rounding", "unusual sizes", "a checkpoint"],
)
def test_every_other_report_is_an_event_that_carries_its_run(
    run: li.Run, relation: Relation, releases: tuple[int, ...]
) -> None:
    report = li.account(run, 1e-5, releases)
    assert event_of(report) == LastIterateDpEvent(run, releases)
    composed = compose_into(LastIterateAccountant(relation), report)
    assert composed.get_epsilon(1e-5) == report.epsilon
    with raises("dp_accountant_without_runs", kind=li.errors.Unavailable) as refusal:
        compose_into(dp.pld.PLDAccountant(relation), report)
    assert not any(name in str(refusal.value) for name in ("Usual", "Slack", "Displaced", "Ladder"))


@pytest.mark.parametrize("times", [2, 5])
def test_rounded_runs_are_composed_as_what_is_proved_of_them(times: int) -> None:
    """Twice the steps, and what rounding adds for all of them together: √times as far as for one, on either side."""
    report, exact = li.account(ROUNDED, 1e-5), li.account(replace(ROUNDED, arithmetic=FACTOR), 1e-5)
    longer = li.account(replace(ROUNDED, steps=times * ROUNDED.steps, arithmetic=FACTOR), 1e-5).epsilon
    found = compose_into(LastIterateAccountant(ADD), report, times).get_epsilon(1e-5)
    assert longer < found <= longer + 1.1 * 32 * times**0.5 * 2.0**-15
    beside = LastIterateAccountant(ADD).compose(event_of(exact), times).get_epsilon(1e-5)
    assert beside == pytest.approx(longer, rel=1e-7)
    assert beside < found


def test_a_rounded_run_is_composed_with_other_events() -> None:
    """The same as the Gaussian event before the run, which the run knows by itself."""
    accountant = compose_into(LastIterateAccountant(ADD), li.account(ROUNDED, 1e-5))
    found = accountant.compose(dp.GaussianDpEvent(2.0)).get_epsilon(1e-5)
    assert found == pytest.approx(li.account(replace(ROUNDED, prior_mu=0.5), 1e-5).epsilon, rel=1e-7)


def test_a_rounded_run_composes_with_theirs_as_a_distribution() -> None:
    exported = privacy_loss_distribution(li.account(ROUNDED, 1e-5), 1e-3)
    theirs = dp.pld.privacy_loss_distribution.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3)
    together = exported.compose(theirs).get_epsilon_for_delta(1e-5)
    ours = compose_into(LastIterateAccountant(ADD), li.account(ROUNDED, 1e-5)).compose(dp.GaussianDpEvent(2.0))
    without = li.account(replace(POISSON, prior_mu=0.5), 1e-5).epsilon
    assert without < together <= ours.get_epsilon(1e-5) * 1.01 + 1e-3


def test_their_renyi_accountant_forgets_the_factor_two_under_replace_one_and_gets_no_export() -> None:
    """GaussianDpEvent(1) under REPLACE_ONE is 2-GDP by its definition, as their PLDAccountant knows."""
    renyi = dp.rdp.RdpAccountant(neighboring_relation=ONE).compose(dp.GaussianDpEvent(1.0)).get_epsilon(1e-5)
    losses = dp.pld.PLDAccountant(ONE, 1e-3).compose(dp.GaussianDpEvent(1.0)).get_epsilon(1e-5)
    assert renyi == pytest.approx(4.729, abs=1e-3)
    assert losses == pytest.approx(9.997, abs=1e-3)
    assert renyi < li.notions.GaussianDP(2.0).bracket(1e-5)[0]  # type: ignore[operator]
    with raises("dp_accountant_not_doubling", kind=li.errors.Incompatible) as refusal:
        compose_into(dp.rdp.RdpAccountant(neighboring_relation=ONE), li.notions.GaussianDP(2.0))
    assert "…" not in str(refusal.value)
    right = compose_into(dp.rdp.RdpAccountant(neighboring_relation=SPECIAL), li.notions.GaussianDP(1.0, li.ZERO_OUT))
    assert right.get_epsilon(1e-5) >= li.notions.GaussianDP(1.0).epsilon(1e-5)


def test_what_is_no_event_or_no_guarantee_is_refused() -> None:
    pure = li.notions.Profile(epsilons=[1.0], deltas=[0.0])
    for call, error, message in (
        (
            lambda: event_of(pure),
            li.errors.Unavailable,
            "this guarantee cannot be expressed as an event of dp-accounting",
        ),
        (lambda: compose_into(dp.pld.PLDAccountant(ONE), pure), li.errors.Unavailable, "privacy_loss_distribution"),
        (
            lambda: compose_into(dp.pld.PLDAccountant(ADD), li.notions.GaussianDP(1.0)),
            li.errors.Incompatible,
            "that of the guarantee. Got ADD_OR",
        ),
        (lambda: compose_into("accountant", li.notions.GaussianDP(1.0)), li.errors.InvalidInput, "accountant must be"),
        (lambda: event_of(1.0), li.errors.InvalidInput, "guarantee must be a report"),  # type: ignore[arg-type]
        (lambda: privacy_loss_distribution(pure, 0.0), li.errors.InvalidInput, "value_discretization_interval must be"),
        (
            lambda: privacy_loss_distribution(li.notions.GaussianDP(9.0), 1e-9),
            li.errors.InvalidInput,
            "must be at least",
        ),
    ):
        with pytest.raises(error, match=message):
            call()


def test_without_dp_accounting_the_extra_is_named() -> None:
    code = "import sys; sys.modules['dp_accounting'] = None; import lastiterate as li; li.adapters.dp_accounting"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert "pip install 'lastiterate[dp-accounting]'" in said


def test_events_have_what_was_released_before_training() -> None:
    """A Gaussian event of both, or one more event beside those of the steps."""
    report = li.account(replace(RUN, prior_mu=0.3), 1e-5)
    assert report.mu is not None
    assert event_of(report).noise_multiplier == pytest.approx(2 / report.mu, rel=1e-12)
    sampled = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.01).compose(300).after(0.3)
    events = event_of(sampled).events
    assert [one.noise_multiplier for one in events if isinstance(one, dp.GaussianDpEvent)] == [pytest.approx(1 / 0.3)]
    theirs = dp.pld.PLDAccountant(ADD).compose(event_of(sampled)).get_epsilon(1e-5)
    assert sampled.epsilon(1e-5) == pytest.approx(theirs, rel=1e-3)
