"""Every public function answers bad input with one sentence, and nothing returns NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lastiterate as li
from bad_values import (
    NOT_A_CHOICE,
    NOT_A_COUNT,
    NOT_A_DELTA,
    NOT_A_RATE,
    NOT_AN_EPSILON,
    NOT_AN_ERROR,
    NOT_AN_ORDER,
    NOT_NUMBERS,
    NOT_POSITIVE,
    NOT_PROBABILITIES,
    Bad,
)
from raising import raises
from strategies import deltas, epsilons

HOW_MANY = 3000

GAUSSIAN = li.notions.GaussianDP(mu=1.0)
STEP = li.notions.subsampled_gaussian(mu=1.0, inclusion=0.1)
CURVE = li.notions.RenyiDP(rho=0.1)
PROFILE = li.notions.Profile(epsilons=[0.0, 1.0], deltas=[0.1, 1e-6])
TRADEOFF = li.notions.TradeOff(type_i_errors=[0.0, 0.5], type_ii_errors=[0.9, 0.3])
LOSS = li.notions.PrivacyLoss(first=-1.0, spacing=1.0, masses=[0.25, 0.0, 0.75])
NOTIONS = (GAUSSIAN, STEP, CURVE, PROFILE, TRADEOFF, LOSS)


AMPLIFY = {"epsilon": 1.0, "delta": 1e-5, "inclusion": 0.1}
ADVANCED = {"epsilon": 0.1, "delta": 1e-6, "times": 10, "slack_delta": 1e-6}
CALIBRATE = {"epsilon": 1.0, "delta": 1e-5, "inclusion": 0.1, "times": 10}
SAMPLED = {"mu": 0.2, "inclusion": 0.01, "order": 2.0}
NOISE = {"epsilon": 0.5, "delta": 1e-5, "sensitivity": 1.0}
MOMENTS = {"log_moments": [0.1, 0.2], "moments": [1.0, 2.0], "epsilon": 1.0}

LOGISTIC = li.losses.logistic(feature_norm=1.0)
RUN = {
    "loss": LOGISTIC,
    "batches": li.Cyclic(records=20, batch_size=5),
    "step_size": 0.1,
    "noise": li.OnIterate(std=1.0),
    "steps": 4,
}
GOOD_RUN = li.Run(**RUN)
EACH = li.account_each(GOOD_RUN, 1e-5)
GENERAL = {"smoothness": 1.0, "strong_convexity": 0.1, "gradient_sensitivity": 1.0}
LINEAR = {"feature_norm": 1.0, "clip": 1.0}
LINEAR_LOSSES = (li.losses.logistic, li.losses.huber, li.losses.smooth_hinge, li.losses.ridge, li.losses.softmax)
NOT_PER_STEP = Bad(
    (
        *NOT_NUMBERS,
        0,
        -0.0,
        math.inf,
        [],
        [1.0, -1.0],
        [[1.0]],
        [math.nan],
        ["x"],
    )
)
NOT_A_PART = Bad(
    (
        None,
        1,
        0.5,
        "x",
        object(),
        li.Cyclic,
        [],
    )
)
NOT_A_RUN = Bad(
    (
        None,
        1,
        "run.toml",
        {},
        LOSS,
        li.Run,
    )
)
NOT_RELEASES = Bad(
    (
        3,
        [0],
        [-1],
        [1.5],
        ["x"],
        [5],
        [None],
        [math.nan],
        "ab",
    )
)

# (function, arguments that are good, the one that is bad, values that are bad)
CASES: list[tuple[Callable[..., Any], dict[str, Any], str, Bad]] = [
    (li.notions.GaussianDP, {"mu": 1.0}, "mu", NOT_AN_EPSILON),
    (li.notions.GaussianDP, {"mu": 1.0}, "adjacency", NOT_A_CHOICE),
    (li.notions.RenyiDP, {}, "rho", NOT_AN_EPSILON),
    (li.notions.RenyiDP, {"divergences": [0.1, 0.2]}, "orders", Bad(([1.0, 2.0], [2.0], [math.nan, 2.0], "x", [[2, 3]],))),
    (li.notions.RenyiDP, {"orders": [2.0, 3.0]}, "divergences", Bad(([-0.1, 1.0], [0.1], [math.inf, 1.0], None,))),
    (li.notions.Profile, {"epsilons": [0.5, 1.0]}, "deltas", NOT_PROBABILITIES),
    (li.notions.Profile, {"deltas": [0.1]}, "epsilons", Bad(([-1.0], [math.nan], [math.inf], [1.0, 2.0], "x", None,))),
    (li.notions.Profile, {}, "function", Bad((1.0, "f", [0.1], None,))),
    (li.notions.TradeOff, {"type_i_errors": [0.5]}, "type_ii_errors", Bad(([0.6], [-0.1], [math.nan], [0.1, 0.2], None,))),
    (li.notions.TradeOff, {}, "function", Bad((1.0, "f", [0.1], None,))),
    (
        li.notions.PrivacyLoss, {"first": 0.0, "spacing": 0.1}, "masses",
        Bad(([0.5], [1.5], [-0.5, 1.5], [math.nan], [], "x",)),
    ),
    (li.notions.PrivacyLoss, {"first": 0.0, "masses": [1.0]}, "spacing", NOT_POSITIVE),
    (li.notions.PrivacyLoss, {"spacing": 0.1, "masses": [1.0]}, "first", Bad((math.nan, math.inf, "x", None,))),
    (li.notions.subsampled_gaussian, {"inclusion": 0.1}, "mu", NOT_POSITIVE),
    (li.notions.subsampled_gaussian, {"mu": 1.0}, "inclusion", NOT_A_RATE),
    (li.notions.subsampled_gaussian, {"mu": 1.0, "inclusion": 0.1}, "sampling", NOT_A_CHOICE),
    (li.notions.subsampled_gaussian, {"mu": 1.0, "inclusion": 0.1}, "adjacency", NOT_A_CHOICE),
    (li.compose, {}, "guarantees", Bad(([], None, 3, [1.0], ["x"], GAUSSIAN, [GAUSSIAN, None],))),
    (li.notions.best, {}, "guarantees", Bad(([], None, 3, [1.0], GAUSSIAN, [GAUSSIAN, None],))),
    (li.baselines.amplification_by_subsampling, AMPLIFY, "epsilon", NOT_AN_EPSILON),
    (li.baselines.amplification_by_subsampling, AMPLIFY, "inclusion", NOT_A_RATE),
    (li.baselines.amplification_by_subsampling, AMPLIFY, "delta", NOT_AN_ERROR),
    (li.baselines.advanced_composition, ADVANCED, "epsilon", NOT_AN_EPSILON),
    (li.baselines.advanced_composition, ADVANCED, "delta", NOT_AN_ERROR),
    (li.baselines.advanced_composition, ADVANCED, "times", NOT_A_COUNT),
    (li.baselines.advanced_composition, ADVANCED, "slack_delta", NOT_A_DELTA),
    (li.baselines.sampled_gaussian_rdp, SAMPLED, "mu", NOT_POSITIVE),
    (li.baselines.sampled_gaussian_rdp, SAMPLED, "inclusion", NOT_A_RATE),
    (li.baselines.sampled_gaussian_rdp, SAMPLED, "order", NOT_AN_ORDER),
    (li.baselines.sampled_gaussian_rdp_closed_form, SAMPLED, "mu", NOT_POSITIVE),
    (li.baselines.sampled_gaussian_rdp_closed_form, SAMPLED, "inclusion", NOT_A_RATE),
    (li.baselines.sampled_gaussian_rdp_closed_form, SAMPLED, "order", NOT_AN_ORDER),
    (li.baselines.moments_accountant, MOMENTS, "epsilon", NOT_AN_EPSILON),
    (li.baselines.moments_accountant, MOMENTS, "moments", Bad(([1.0], [0.0, 1.0], [math.nan, 1.0], "x", None,))),
    (li.baselines.moments_accountant, MOMENTS, "log_moments", Bad(([1.0], [-1.0, 1.0], [math.nan, 1.0], "x", None,))),
    (li.baselines.classical_gaussian_noise, NOISE, "epsilon", NOT_POSITIVE),
    (li.baselines.classical_gaussian_noise, NOISE, "delta", NOT_A_DELTA),
    (li.baselines.classical_gaussian_noise, NOISE, "sensitivity", NOT_POSITIVE),
    (li.baselines.analytic_gaussian_noise, NOISE, "epsilon", NOT_AN_EPSILON),
    (li.baselines.analytic_gaussian_noise, NOISE, "delta", NOT_A_DELTA),
    (li.baselines.analytic_gaussian_noise, NOISE, "sensitivity", NOT_POSITIVE),
    (li.baselines.clt_mu_estimate, {"inclusion": 0.1, "times": 10}, "mu", NOT_POSITIVE),
    (li.baselines.clt_mu_estimate, {"mu": 1.0, "times": 10}, "inclusion", NOT_A_RATE),
    (li.baselines.clt_mu_estimate, {"mu": 1.0, "inclusion": 0.1}, "times", NOT_A_COUNT),
    (li.notions.largest_mu, CALIBRATE, "epsilon", NOT_AN_EPSILON),
    (li.notions.largest_mu, CALIBRATE, "delta", NOT_A_DELTA),
    (li.notions.largest_mu, CALIBRATE, "inclusion", NOT_A_RATE),
    (li.notions.largest_mu, CALIBRATE, "times", NOT_A_COUNT),
    (li.notions.largest_mu, CALIBRATE, "sampling", NOT_A_CHOICE),
    (li.notions.largest_mu, CALIBRATE, "adjacency", NOT_A_CHOICE),
    (
        li.notions.AveragedGaussianDP, {"weights": [1.0]}, "mus",
        Bad(([-1.0], [math.nan], [math.inf], [1.0, 2.0], "x", None, [],)),
    ),
    (li.notions.AveragedGaussianDP, {"mus": [1.0]}, "weights", Bad(([0.5], [-1.0], [math.nan], [0.5, 0.5], "x", None, [],))),
    (
        li.notions.HiddenPlaceDP, {"weights": [1.0], "pair_mus": [[0.0]]}, "mus",
        Bad(([-1.0], [math.nan], [math.inf], [1.0, 2.0], "x", None, [],)),
    ),
    (
        li.notions.HiddenPlaceDP, {"mus": [1.0], "pair_mus": [[0.0]]}, "weights",
        Bad(([0.5], [-1.0], [math.nan], [0.5, 0.5], "x", None, [],)),
    ),
    (
        li.notions.HiddenPlaceDP, {"mus": [1.0], "weights": [1.0]}, "pair_mus",
        Bad(([[-1.0]], [[math.nan]], [[math.inf]], [1.0], [[1.0, 2.0]], "x", None, [],)),
    ),
    *((li.losses.general, GENERAL, name, Bad((-1.0, math.nan, math.inf, "x", [1.0],))) for name in GENERAL),
    (li.losses.general, {"smoothness": 1.0, "clip": 1.0}, "weak_convexity", Bad((-1.0, math.nan, math.inf, "x", [1.0],))),
    (li.losses.general, {"smoothness": 1.0}, "gradient_sensitivity", NOT_POSITIVE),
    *((loss, LINEAR, "feature_norm", NOT_POSITIVE) for loss in LINEAR_LOSSES),
    *((loss, LINEAR, "l2", NOT_AN_EPSILON) for loss in LINEAR_LOSSES),
    *((loss, LINEAR, "clip", Bad((0.0, -1.0, math.nan, "x", [], True,))) for loss in LINEAR_LOSSES),
    (li.losses.huber, LINEAR, "threshold", NOT_POSITIVE),
    (li.losses.smooth_hinge, LINEAR, "width", NOT_POSITIVE),
    (li.losses.ridge, LINEAR, "residual_bound", Bad((0.0, -1.0, math.nan, math.inf, "x",))),
    (li.losses.network, {}, "clip", NOT_PER_STEP),
    (li.losses.network, {"clip": 1.0}, "smoothness", Bad((-1.0, math.nan, math.inf, "x",))),
    *((noise, {}, "std", NOT_PER_STEP) for noise in (li.OnIterate, li.OnMeanGradient, li.Langevin)),
    (li.OnGradientSum, {"clip": 1.0}, "multiplier", NOT_PER_STEP),
    (li.OnGradientSum, {"multiplier": 1.0}, "clip", NOT_PER_STEP),
    *((batches, {"batch_size": 1}, "records", NOT_A_COUNT) for batches in (li.Cyclic, li.Shuffled, li.FixedSize)),
    *((batches, {"records": 9}, "batch_size", NOT_A_COUNT) for batches in (li.Cyclic, li.Shuffled, li.FixedSize)),
    *((batches, {"records": 9}, "batch_size", Bad((10,))) for batches in (li.Cyclic, li.Shuffled, li.FixedSize)),
    *((batches, {"records": 9}, "batch_size", Bad((2, 4,))) for batches in (li.Cyclic, li.Shuffled)),
    (li.Shuffled, {"records": 9, "batch_size": 3}, "each_epoch", Bad((None, 1, "yes",))),
    (li.FullBatch, {}, "records", NOT_A_COUNT),
    (li.Poisson, {"rate": 0.1}, "records", NOT_A_COUNT),
    (li.Poisson, {"records": 9}, "rate", NOT_A_RATE),
    (li.parts.PoissonMean, {"rate": 0.1}, "records", NOT_A_COUNT),
    (li.parts.PoissonMean, {"records": 9}, "rate", NOT_A_RATE),
    (li.Ball, {}, "radius", NOT_POSITIVE),
    (li.parts.Box, {"dimension": 2}, "side", NOT_POSITIVE),
    (li.parts.Box, {"side": 2.0}, "dimension", NOT_A_COUNT),
    (li.parts.ConvexSet, {}, "diameter", NOT_POSITIVE),
    (li.parts.L1, {}, "weight", NOT_AN_EPSILON),
    (li.parts.NuclearNorm, {}, "weight", NOT_AN_EPSILON),
    (li.parts.ElasticNet, {"l2": 1.0}, "l1", NOT_AN_EPSILON),
    (li.parts.ElasticNet, {"l1": 1.0}, "l2", NOT_AN_EPSILON),
    (li.parts.ConvexTerm, {}, "modulus", NOT_AN_EPSILON),
    (li.epochs, {}, "count", NOT_A_COUNT),
    *((li.Run, RUN, name, NOT_A_PART) for name in ("loss", "batches", "noise")),
    (li.Run, RUN, "domain", Bad((1, 0.5, "x", object(), li.Ball,))),
    (li.Run, RUN, "prox", Bad((1, 0.5, "x", object(), li.parts.L1,))),
    (li.Run, RUN, "step_size", NOT_PER_STEP),
    (li.Run, RUN, "step_size", Bad(([0.1, 0.2], [0.1] * 5,))),
    (li.Run, RUN, "steps", NOT_A_COUNT),
    (li.Run, RUN, "weight_decay", NOT_AN_EPSILON),
    (li.account, {"delta": 1e-5}, "run", NOT_A_RUN),
    (li.account, {"run": GOOD_RUN}, "delta", NOT_A_DELTA),
    (li.account, {"run": GOOD_RUN, "delta": 1e-5}, "releases", NOT_RELEASES),
    (li.account_each, {"delta": 1e-5}, "run", NOT_A_RUN),
    (li.account_each, {"run": GOOD_RUN}, "delta", NOT_A_DELTA),
    (li.account_each, {"run": GOOD_RUN, "delta": 1e-5}, "releases", NOT_RELEASES),
    (li.calibrate, {"delta": 1e-5, "epsilon": 1.0}, "run", NOT_A_RUN),
    (li.calibrate, {"run": GOOD_RUN, "delta": 1e-5}, "epsilon", NOT_POSITIVE),
    (li.calibrate, {"run": GOOD_RUN, "epsilon": 1.0}, "delta", NOT_A_DELTA),
    (li.calibrate, {"run": GOOD_RUN, "epsilon": 1.0, "delta": 1e-5}, "free", NOT_A_CHOICE),
    (li.calibrate, {"run": GOOD_RUN, "epsilon": 1.0, "delta": 1e-5, "free": "steps"}, "most_steps", NOT_A_COUNT),
    (li.calibrate, {"run": GOOD_RUN, "epsilon": 1.0, "delta": 1e-5}, "releases", NOT_RELEASES),
    (li.read_run, {}, "path", Bad(("missing.toml", "x.yaml", "/", 5, None,))),
    (li.Run, RUN, "steps", Bad((10**13, li.epochs(10**12),))),
    (li.Run, RUN, "noise", Bad((li.OnIterate(std=1e-300), li.OnIterate(std=1e300),))),
    (li.Poisson, {"records": 9}, "rate", Bad((1e-320, 1e-13,))),
    (type(EACH).epsilon_of, {"self": EACH}, "record", Bad(("a", 2.5, None, -1, 20, True,))),
    *((type(notion).epsilon, {"self": notion}, "delta", NOT_A_DELTA) for notion in NOTIONS),
    *((type(notion).delta, {"self": notion}, "epsilon", NOT_AN_EPSILON) for notion in NOTIONS),
    *((type(notion).tradeoff, {"self": notion}, "type_i_error", NOT_AN_ERROR) for notion in NOTIONS),
    *((type(notion).compose, {"self": notion}, "times", NOT_A_COUNT) for notion in NOTIONS),
    *((type(notion).rdp, {"self": notion}, "order", NOT_AN_ORDER) for notion in (GAUSSIAN, STEP, CURVE, LOSS)),
    *((type(notion).bracket, {"self": notion}, "delta", NOT_A_DELTA) for notion in (GAUSSIAN, STEP)),
]  # fmt: skip


# Which of two is blamed where they do not fit each other, or where either would do; None where the choice is between more.
TOGETHER = {
    "orders": "divergences",
    "epsilons": "deltas",
    "moments": "log_moments",
    "mus": "weights",
    "gradient_sensitivity": "clip",
    "count": "epochs",
}


def name_of(case: Any) -> str:
    return f"{getattr(case[0], '__qualname__', case[0])}-{type(case[1].get('self')).__name__}-{case[2]}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_bad_input_is_one_clear_sentence(case: Any) -> None:
    function, good, name, bad = case
    for value in bad.values(HOW_MANY):
        with pytest.raises(li.errors.LastIterateError) as caught:
            function(**{**good, name: value})
        message = str(caught.value)
        assert "\n" not in message
        assert message.endswith(".")
        assert len(message) < 300
        assert caught.value.field in (name, TOGETHER.get(name, name)) or "Give exactly one of the two." in message


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda notion: type(notion).__name__)
@settings(max_examples=60)
@given(delta=deltas, epsilon=epsilons, error=st.floats(0.0, 1.0))
def test_nothing_returns_nan(notion: Any, delta: float, epsilon: float, error: float) -> None:
    answers = [notion.epsilon(delta), notion.delta(epsilon), notion.tradeoff(error)]
    assert not np.isnan(answers).any()
    assert answers[0] >= 0
    assert 0 <= answers[1] <= 1
    assert 0 <= answers[2] <= 1


def test_a_profile_function_that_returns_nonsense_is_caught() -> None:
    for nonsense in (lambda e: e * np.nan, lambda e: e + 2.0, lambda e: np.zeros(7)):
        with raises("profile_function_returned", "function", kind=li.errors.InvalidInput):
            li.notions.Profile(function=nonsense).delta(0.5)
