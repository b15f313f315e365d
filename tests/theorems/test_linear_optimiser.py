"""Momentum, averages and any other optimiser in an account: what applies, what does not, and between which numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.filtered import filtered_mu, left_of_steps, weights_of_iterates
from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import Smooth
from lastiterate.runs.process import Process, Update
from lastiterate.shift.momentum import Turning
from lastiterate.theorems.evidence import About
from lastiterate.theorems.features import FIXED_ORDER, MOMENTUM, REPLACED
from lastiterate.theorems.linear_optimiser import LINEAR, PREPAID_MOMENTUM, prepaid_mus, turning
from processes import process

CONVEX = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=2.0)
LOGISTIC = li.losses.logistic(feature_norm=1.0)
CYCLIC = li.Cyclic(records=200, batch_size=10)
UPDATES = (
    (li.SGD(momentum=0.9), li.LAST),
    (li.SGD(momentum=0.9, nesterov=True), li.LAST),
    (li.SGD(), li.EMA(decay=0.9)),
    (li.SGD(), li.AVERAGE()),
    (li.SGD(momentum=0.5), li.AVERAGE(last=33)),
    (li.Adam(), li.LAST),
    ("lion", li.EMA(decay=0.9)),
)


def a_run(
    optimizer: Any = None, released: Any = li.LAST, batches: Any = CYCLIC, epochs: int = 5, **more: Any
) -> li.Run:
    """Sensitivity and noise on the iterate are equal, where batches have ten records."""
    given = {"loss": CONVEX, "step_size": 0.01, "noise": li.OnIterate(std=0.002)} | more
    return li.Run(batches=batches, steps=li.epochs(epochs), optimizer=optimizer, released=released, **given)


def test_momentum_in_many_epochs() -> None:
    """Composition 10, clearing before each turn 3.59, overlapping payments less; quadratic losses 2.24."""
    report = li.account(a_run(li.SGD(momentum=0.9), epochs=100), 1e-5)
    assert report.best.theorem.name == "linear-optimiser"
    assert report.mu == pytest.approx(2.594, abs=1e-3)
    assert filtered_mu(report.run, 0.0) == pytest.approx(100 / math.sqrt(2000), rel=5e-3)
    assert report.epsilon_all_released == pytest.approx(li.notions.GaussianDP(10.0).epsilon(1e-5), rel=1e-9)
    assert report.lower_bound.epsilon == pytest.approx(
        li.notions.GaussianDP(filtered_mu(report.run, 0.0)).epsilon(1e-5), rel=1e-6
    )


@pytest.mark.parametrize(("optimizer", "released"), UPDATES)
@pytest.mark.parametrize(
    "batches", [CYCLIC, li.FullBatch(10), li.Shuffled(200, 10), li.FixedSize(200, 10), li.Poisson(200, 0.05)], ids=repr
)
def test_composition_holds_for_all_and_no_other_theorem_says_anything(
    optimizer: Any, released: Any, batches: Any
) -> None:
    loss = replace(CONVEX, clip=1.0)
    given = a_run(optimizer, released, batches, 3, loss=loss)
    report, plain = li.account(given, 1e-5), li.account(a_run(None, li.LAST, batches, 3, loss=loss), 1e-5)
    assert report.epsilon_all_released == pytest.approx(plain.epsilon_all_released, rel=1e-12)
    for one in report.guarantees:
        assert one.theorem.about is About.EVERY_ITERATE or LINEAR in one.theorem.assumptions
    assert li.verify(report.certificate, given).accepted
    assert report.lower_bound.epsilon <= report.epsilon
    assert fact("no_batch_statistics") in report.assumptions
    assert li.account_each(given, 1e-5).worst == report.epsilon


def test_a_theorem_that_says_nothing_of_optimisers_is_about_plain_steps() -> None:
    silent = li.theorems.Theorem("silent", "nobody", "nothing", {FIXED_ORDER, REPLACED}, (), lambda process: 1 / 0)  # type: ignore[arg-type, return-value]
    answer = silent.apply(a_run(li.SGD(momentum=0.9)).process)
    assert isinstance(answer, li.theorems.Inapplicable)
    assert answer.failed == (MOMENTUM,)
    (reason,) = answer.reasons
    how = {"optimizer": fact("sgd", momentum=0.9, nesterov=False, dampening=0.0), "released": "last", "parameter": None}
    assert reason == fact("update_not_covered", feature="momentum", **how)  # type: ignore[arg-type]


def test_existing_runs_stay_what_they_were() -> None:
    plain = a_run()
    assert plain == a_run(li.SGD()) == a_run("sgd") == a_run(None, li.LAST)
    assert plain.process.update.plain
    assert not {"optimizer", "released"} & li.account(plain, 1e-5).certificate["run"].keys()
    assert not [one for one in li.account(plain, 1e-5).guarantees if one.theorem.name.startswith("linear")]


@pytest.mark.parametrize(
    ("more", "reasons"),
    [
        ({"domain": li.Ball(radius=1.0)}, [fact("not_covered", feature="projection")]),
        ({"prox": li.parts.L1(weight=0.1)}, [fact("not_covered", feature="prox")]),
        ({"loss": li.losses.network(clip=1.0)}, [fact("not_linear", because=fact("loss_not_smooth"))]),
        (
            {"step_size": [0.01] * 99 + [0.02]},
            [fact("steps_change", quantity="sensitivity", least=pytest.approx(0.002), most=pytest.approx(0.004))],  # type: ignore[arg-type]
        ),
        (
            {"noise": li.OnIterate(std=[0.002] * 99 + [0.003])},
            [fact("steps_change", quantity="noise", least=0.002, most=0.003)],
        ),
    ],
)
def test_what_hidden_states_need(more: dict[str, Any], reasons: list[Fact]) -> None:
    report = li.account(a_run(li.SGD(momentum=0.9), **more), 1e-5)
    refused = next(one for one in report.inapplicable if one.theorem.name == "linear-optimiser")
    assert list(refused.reasons) == reasons
    assert report.best.theorem.about is About.EVERY_ITERATE


def test_releases_on_the_way_are_composed() -> None:
    report = li.account(a_run(li.SGD(momentum=0.9)), 1e-5, releases=[40])
    assert report.best.theorem.name == "bok2024/cyclic/composition"
    with_average = li.account(a_run(None, li.EMA(decay=0.9)), 1e-5, releases=[40])
    assert with_average.assumptions[0] == fact(
        "only_released", released="ema", parameter=0.9, after=(40,), beforehand=False
    )
    assert "moving average" in str(li.verify(with_average.certificate))


@pytest.mark.parametrize("adjacency", [li.REPLACE_ONE, li.notions.Adjacency.ZERO_OUT])
def test_neighbours(adjacency: Any) -> None:
    mu, alike = (
        next(one for one in li.theorems.ALL if one.name == "linear-optimiser")
        .notion(a_run(li.SGD(momentum=0.9), loss=LOGISTIC, adjacency=one).process)
        .mu  # type: ignore[attr-defined]
        for one in (adjacency, li.REPLACE_ONE)
    )
    assert mu == pytest.approx(alike * (1.0 if adjacency is li.REPLACE_ONE else 0.5), rel=2e-3)


def test_clipping_a_loss_that_is_no_linear_model_costs_more() -> None:
    """Its middle curvature is 0 and all of it is unknown."""
    clipped = a_run(li.SGD(momentum=0.9), loss=li.losses.network(clip=1.0, smoothness=1.0))
    assert clipped.process.update.curvature[0] == 0.0
    assert clipped.process.update.curvature[1] == pytest.approx(0.01)
    assert li.account(clipped, 1e-5).epsilon > li.account(a_run(li.SGD(momentum=0.9)), 1e-5).epsilon


def test_secret_orders_cost_less_than_known_ones() -> None:
    known = li.account(a_run(li.SGD(momentum=0.9)), 1e-5).epsilon
    one_order = li.account(a_run(li.SGD(momentum=0.9), batches=li.Shuffled(200, 10, each_epoch=False)), 1e-5)
    new_orders = li.account(a_run(li.SGD(momentum=0.9), batches=li.Shuffled(200, 10)), 1e-5)
    assert one_order.best.theorem.name == new_orders.best.theorem.name == "linear-optimiser/random-order"
    assert one_order.epsilon < known
    assert new_orders.epsilon < new_orders.epsilon_all_released
    many = li.account(a_run(li.SGD(momentum=0.9), batches=li.Shuffled(4000, 10, each_epoch=False)), 1e-5)
    assert many.epsilon < li.account(a_run(li.SGD(momentum=0.9), batches=li.Cyclic(4000, 10)), 1e-5).epsilon


@pytest.mark.parametrize(("optimizer", "released"), UPDATES[:5])
@pytest.mark.parametrize("batches", [CYCLIC, li.FullBatch(10), li.Shuffled(40, 10), li.FixedSize(40, 10)], ids=repr)
@pytest.mark.parametrize("curvature", [0.0, 0.3])
def test_quadratic_losses_lie_below(optimizer: Any, released: Any, batches: Any, curvature: float) -> None:
    loss = li.losses.general(smoothness=5.0, strong_convexity=curvature, gradient_sensitivity=2.0)
    for steps in (0.01, 0.2):
        report = li.account(a_run(optimizer, released, batches, 4, loss=loss, step_size=steps), 1e-5)
        assert 0 < report.lower_bound.epsilon <= report.epsilon


def test_what_is_left_of_a_step_by_the_formulas_of_each_average() -> None:
    """Momentum on linear losses: (1 − β^{k+1})/(1 − β) after k more steps; averages by their definition."""
    moved = np.array([(1 - 0.9 ** (k + 1)) / 0.1 for k in range(12)])
    assert left_of_steps(li.SGD(momentum=0.9), li.LAST, 0.0, 12) == pytest.approx(moved[::-1], rel=1e-12)
    mean = [sum(moved[: 12 - step][-5:]) / 5 for step in range(12)]
    assert left_of_steps(li.SGD(momentum=0.9), li.AVERAGE(last=5), 0.0, 12) == pytest.approx(mean, rel=1e-12)
    kept = [sum(0.3 * 0.7 ** (11 - t) * moved[t - step] for t in range(step, 12)) for step in range(12)]
    assert left_of_steps(li.SGD(momentum=0.9), li.EMA(decay=0.7), 0.0, 12) == pytest.approx(kept, rel=1e-12)
    assert weights_of_iterates(li.AVERAGE(), 7) == pytest.approx(np.full(7, 1 / 7))


def smooth_run(epochs: int = 5, **more: Any) -> li.Run:
    given = {"loss": LOGISTIC, "step_size": 0.04, "noise": li.OnMeanGradient(std=0.2)} | more
    return a_run(li.SGD(momentum=0.9), epochs=epochs, **given)


def test_prepaid_momentum_is_between_the_lower_side_and_what_is_paid_afterwards() -> None:
    for epochs in (1, 5, 20):
        report = li.account(smooth_run(epochs), 1e-5)
        epsilons = {one.theorem.name: epsilon for one, epsilon in zip(report.guarantees, report.epsilons, strict=True)}
        assert report.best.theorem is PREPAID_MOMENTUM
        assert report.lower_bound.epsilon < epsilons["linear-optimiser/prepaid"] < 0.9 * epsilons["linear-optimiser"]
        assert fact("record_unchanged") in report.assumptions
        assert li.verify(report.certificate).accepted


def test_how_far_a_push_turns() -> None:
    """ℓ·((ηG + a_max)/(1−β) + νκ/√(1−β²)), κ by hand: two directions, a hundred steps."""
    process = smooth_run().process
    found = turning(process, 1e-8, 2.0)
    far = math.sqrt(2 * math.log(100 / 1e-8))
    by_hand = 1 / 8 * ((0.04 + 2 * 0.04 * 2 / 10) / 0.1 + 0.04 * 0.2 * far / math.sqrt(1 - 0.81))
    assert found.turned == pytest.approx(by_hand, rel=1e-6)
    assert found.turned >= by_hand * (1 - 1e-12)
    assert isinstance(found, Turning)


def test_payments_for_a_push_that_turns() -> None:
    """Step by step, as the proof has it."""
    hidden = Turning(li.SGD(momentum=0.9).linear, 0.03, 0.02, 0.05)
    path = np.append(np.random.default_rng(2).normal(size=9), 0.0)
    pushes = np.zeros(10)
    pushes[[4, 9]] = 1.0
    for t, found in enumerate(hidden.payments(path, pushes)):
        now, last, before = (float(path[t - k]) if t >= k else 0.0 for k in range(3))
        carried = (1.9 - 0.03) * last - 0.9 * before
        exact = abs(now - carried - pushes[t]) + 0.02 * abs(last) + 0.05 * (abs(carried) + 0.9 * abs(before))
        assert exact * (1 - 1e-13) <= found <= exact * (1 + 1e-9)


def test_prepaid_and_other_turns_are_added_up() -> None:
    """Many epochs: what is paid for all turns but the last is no less than in all but an epoch of linear-optimiser."""
    process = smooth_run(60).process
    paid_after = next(one for one in li.theorems.ALL if one.name == "linear-optimiser").notion(process).mu  # type: ignore[attr-defined]
    prepaid = max(prepaid_mus(process, 1e-8))
    assert math.sqrt(paid_after**2 - 1.3 * process.step_mu**2) < prepaid < paid_after


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"weight_decay": 0.1}, fact("not_covered", feature="weight_decay")),
        (
            {"released": li.EMA(decay=0.9)},
            fact(
                "update_not_covered",
                feature="average",
                optimizer=fact("sgd", momentum=0.9, nesterov=False, dampening=0.0),
                released="ema",
                parameter=0.9,
            ),
        ),
        ({"loss": CONVEX}, fact("lacks", what="clipped_gradients")),
        ({"batches": li.FullBatch(10)}, fact("not_covered", feature="full_batches")),
    ],
)
def test_what_prepayment_with_momentum_needs(more: dict[str, Any], reason: Fact) -> None:
    report = li.account(smooth_run(**more), 1e-5)
    (refused,) = (one for one in report.inapplicable if one.theorem is PREPAID_MOMENTUM)
    assert refused.reasons == (reason,)


@pytest.mark.parametrize(("batches", "epochs"), [(30, (1, 2)), (6, (10, 12))], ids=["few epochs", "many"])
def test_prepaid_momentum_costs_more_with_more_epochs(batches: int, epochs: tuple[int, ...]) -> None:
    """A limit of payments excluded better paths, and a first turn had to be prepaid: ε fell by 9 % and by 35 %."""
    update, cyclic = Update(li.SGD(momentum=0.6), li.LAST, (0.021, 0.001)), li.Cyclic(30 * batches, 30)

    def given(steps: int) -> Process:
        center, radius, movement, zero = (np.broadcast_to(one, steps) for one in (0.97, 0.001, 1.05, 0.0))
        smooth = Smooth(center, radius, movement, zero, zero, turning=0.01, rank=2, start=0.0)
        return replace(process(cyclic, steps, 0.21, 1.42), update=update, smooth=smooth)

    mus = [max(prepaid_mus(given(batches * count), 1e-8)) for count in epochs]
    assert mus == sorted(mus)
