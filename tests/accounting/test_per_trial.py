"""What each trial may spend: `li.trials.largest_mu` and `li.calibrate(..., trials=...)` meet the target, and hardly less."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lastiterate as li
from lastiterate.accounting.least_noise import largest_spending
from lastiterate.curves.trials import Trials
from lastiterate.errors import InvalidInput, Unavailable
from raising import raises
from selections import delta_of_gaussian_trials

TEN = li.trials.Geometric(mean=10)
RUN = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
    batches=li.FullBatch(records=100),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.5),
    steps=16,
)
PASSES = li.Run(RUN.loss, li.Cyclic(records=400, batch_size=100), 0.5, li.OnMeanGradient(std=0.2), steps=16)
laws = st.one_of(
    st.floats(1.0, 50.0).map(li.trials.Poisson),
    st.floats(1.05, 50.0).map(li.trials.Geometric),
    st.builds(li.trials.NegativeBinomial, st.floats(1.05, 50.0), st.floats(-0.8, 5.0)),
)


@settings(max_examples=20)
@given(laws, st.floats(0.05, 20.0), st.sampled_from([1e-3, 1e-6, 1e-10]))
def test_trials_with_the_largest_mu_meet_the_target_and_larger_ones_do_not(
    trials: Trials, epsilon: float, delta: float
) -> None:
    mu = li.trials.largest_mu(epsilon=epsilon, delta=delta, trials=trials)
    assert li.select(li.notions.GaussianDP(mu), trials=trials).epsilon(delta) <= epsilon
    assert li.select(li.notions.GaussianDP(mu * (1 + 1e-5)), trials=trials).epsilon(delta) > epsilon
    assert 0 < mu <= li.notions.largest_mu(epsilon=epsilon, delta=delta) * (1 + 1e-6)


def test_exact_trials_stay_within_the_target() -> None:
    mu = li.trials.largest_mu(epsilon=3.0, delta=1e-5, trials=TEN)
    assert delta_of_gaussian_trials(TEN, mu, 3.0) <= 1e-5 < delta_of_gaussian_trials(TEN, 1.02 * mu, 3.0)


@pytest.mark.parametrize("run", [RUN, PASSES], ids=["full batches", "passes"])
@pytest.mark.parametrize("free", ["noise", "steps"])
def test_a_calibrated_trial_makes_a_search_that_meets_the_target(run: li.Run, free: str) -> None:
    found = li.calibrate(run, epsilon=1.0, delta=1e-5, trials=TEN, free=free)
    report = li.account(found, delta=1e-5)
    total = li.select(report, trials=TEN).epsilon(1e-5)
    assert (0.98 if free == "noise" else 0.9) < total <= 1.0
    assert report.epsilon < total
    assert found.arithmetic == run.arithmetic
    assert li.verify(li.select(report, trials=TEN).certificate).accepted


def test_checkpoints_of_a_trial_are_paid_for() -> None:
    found = li.calibrate(RUN, epsilon=1.0, delta=1e-5, trials=TEN, releases=[8])
    assert li.select(li.account(found, 1e-5, [8]), trials=TEN).epsilon(1e-5) <= 1.0
    assert found.noise.std > li.calibrate(RUN, epsilon=1.0, delta=1e-5, trials=TEN).noise.std  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"trials": 10}, "trials"),
    ],
)
def test_bad_targets_are_refused_with_their_field(changes: dict[str, Any], field: str) -> None:
    target = {"epsilon": 1.0, "delta": 1e-5, "trials": TEN, **changes}
    for refusing in (li.trials.largest_mu, lambda **values: li.calibrate(RUN, **values)):
        with pytest.raises(InvalidInput) as refused:
            refusing(**target)
        assert refused.value.field == field


def test_targets_out_of_reach_are_unavailable() -> None:
    many = li.trials.NegativeBinomial(1e6, 50.0)
    with raises("no_trial_private_enough", "epsilon", kind=Unavailable) as refused:
        li.trials.largest_mu(epsilon=0.01, delta=1e-5, trials=many)
    assert refused.value.field == "epsilon"


@pytest.mark.parametrize("steep", [0.3, 1.0, 3.0])
def test_the_spending_is_checked_and_never_assumed(steep: float) -> None:
    """Whatever the search makes of what a trial spends: a total above the target is never returned."""

    def made(spent: float) -> tuple[float, float]:
        return spent, 5 * spent**steep

    spent = largest_spending(made, epsilon=1.0, delta=1e-5, trials=TEN)
    assert 0.99 <= 5 * spent**steep <= 1.0


def test_a_total_that_never_falls_below_the_target_is_unavailable() -> None:
    with raises("no_trial_meets", "epsilon", kind=Unavailable):
        largest_spending(lambda spent: (spent, 1.0001), epsilon=1.0, delta=1e-5, trials=TEN)
    with raises("no_trial_meets", "epsilon", kind=Unavailable):
        largest_spending(lambda spent: (spent, math.inf), epsilon=1.0, delta=1e-5, trials=TEN)


def test_a_total_that_jumps_ends_below_the_target() -> None:
    found = largest_spending(lambda spent: (spent, 0.5 if spent < 0.2 else 1.5), epsilon=1.0, delta=1e-5, trials=TEN)
    assert 0.1 < found < 0.2
