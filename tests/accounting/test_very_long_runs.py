"""A run for ever has a certificate of its own, and more steps never cost more than that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import lastiterate as li
from lastiterate.runs import process as processes

DELTA = 1e-5
LONGEST = 10**12
BY_NAME = {theorem.name: theorem for theorem in li.theorems.ALL}
LOSS = li.losses.logistic(feature_norm=1.0, l2=0.1)

UNEVEN = {
    "cyclic": li.Cyclic(records=101, batch_size=20, last="smaller"),
    "shuffled": li.Shuffled(records=101, batch_size=20, last="smaller"),
    "one order": li.Shuffled(records=101, batch_size=20, last="smaller", each_epoch=False),
}
EVEN = {
    "cyclic": li.Cyclic(records=100, batch_size=20),
    "shuffled": li.Shuffled(records=100, batch_size=20),
    "one order": li.Shuffled(records=100, batch_size=20, each_epoch=False),
    "balls and bins": li.BallsAndBins(records=100, batches=5),
}


def run(batches: Any, steps: int, **more: Any) -> li.Run:
    """Of whole epochs."""
    given = {"loss": LOSS, "noise": li.OnMeanGradient(std=0.5), **more}
    return li.Run(batches=batches, step_size=0.5, steps=steps - steps % batches.per_epoch, **given)


def assert_costs_its_limit(batches: Any, few: int = 3_000, group: Any = (), **more: Any) -> li.results.Report:
    """At 10⁸ and 10¹² steps what the best theorem says of a few thousand; it goes through no more steps than that."""
    long, longest = (li.account(run(batches, steps, **more), DELTA, group=group) for steps in (10**8, LONGEST))
    assert long.epsilon == longest.epsilon < longest.epsilon_all_released
    theorem = longest.best.theorem
    shorter = li.account(run(batches, few, **more), DELTA, group=group, theorems=[theorem])
    assert longest.epsilon == pytest.approx(shorter.epsilon, rel=1e-6)
    if theorem.places is not None or theorem.recent is not None:
        assert len(theorem.seen(longest.run.process)) <= few
    certificate = longest.certificate
    assert li.verify(certificate, run=longest.run).accepted
    cheaper = {**certificate, "claim": {**certificate["claim"], "epsilon": 0.9 * longest.epsilon, "mu": None}}
    assert not li.verify(cheaper).accepted
    return longest


@pytest.mark.parametrize("name", UNEVEN)
def test_with_a_smaller_last_batch(name: str) -> None:
    assert_costs_its_limit(UNEVEN[name])


def test_with_a_smaller_last_batch_and_several_records_of_a_user() -> None:
    assert_costs_its_limit(UNEVEN["cyclic"], user_records=3)


@pytest.mark.parametrize("name", EVEN)
def test_of_a_user_with_several_records(name: str) -> None:
    assert_costs_its_limit(EVEN[name], user_records=3)


def test_of_records_whose_batches_are_known() -> None:
    """Two in the first batch and one in the third cost more than one, and less than three anywhere."""
    reports = [assert_costs_its_limit(EVEN["cyclic"]), assert_costs_its_limit(EVEN["cyclic"], group=[0, 1, 50])]
    reports.append(assert_costs_its_limit(EVEN["cyclic"], user_records=3))
    assert [one.epsilon for one in reports] == sorted(one.epsilon for one in reports)


def test_with_batches_of_random_size() -> None:
    assert_costs_its_limit(EVEN["balls and bins"])


MOMENTUM = {
    "heavy ball": {"optimizer": li.SGD(momentum=0.5)},
    "Nesterov": {"optimizer": li.SGD(momentum=0.7, nesterov=True)},
    "dampened": {"optimizer": li.SGD(momentum=0.5, dampening=0.3)},
    "moving average": {"released": li.EMA(decay=0.9)},
    "both": {"optimizer": li.SGD(momentum=0.5), "released": li.EMA(decay=0.9)},
    "the last iterates": {"released": li.AVERAGE(last=30)},
}


@pytest.mark.parametrize("name", MOMENTUM)
def test_of_an_optimiser_that_forgets(name: str) -> None:
    """More steps cost more until the first are forgotten, and then nothing."""
    full = assert_costs_its_limit(li.FullBatch(records=100), **MOMENTUM[name])
    assert li.account(run(li.FullBatch(records=100), 100, **MOMENTUM[name]), DELTA).epsilon < full.epsilon < 20


@pytest.mark.parametrize("name", [*UNEVEN, "even"])
def test_of_an_optimiser_that_forgets_over_passes(name: str) -> None:
    batches = EVEN["shuffled"] if name == "even" else replace(UNEVEN[name], records=119)
    assert_costs_its_limit(batches, **MOMENTUM["heavy ball"])


@pytest.mark.parametrize(
    "more",
    [
        {"optimizer": li.SGD(momentum=0.9)},  # Hessians that change in step with it can keep it swinging
        {"optimizer": li.SGD(momentum=0.5), "loss": li.losses.logistic(feature_norm=1.0)},
        {"released": li.AVERAGE()},
        {"optimizer": li.Adam()},
    ],
    ids=repr,
)
def test_of_an_optimiser_that_may_not_forget_every_step_is_composed(more: dict[str, Any]) -> None:
    report = li.account(run(li.FullBatch(records=100), LONGEST, **more), DELTA)
    assert report.epsilon == pytest.approx(report.epsilon_all_released, rel=1e-9)
    assert li.verify(report.certificate, run=report.run).accepted


@pytest.mark.parametrize("batches", [li.FullBatch(records=100), *EVEN.values(), li.FixedSize(100, 20)], ids=repr)
def test_in_a_bounded_domain_where_steps_do_not_contract(batches: Any) -> None:
    """The same for 10⁶ steps and for 10¹²; that of 10⁶ by the same theorem."""
    domain = {"domain": li.Ball(radius=0.3), "loss": li.losses.logistic(feature_norm=1.0)}
    report = li.account(run(batches, LONGEST, **domain), DELTA)
    shorter = report.best.theorem.apply(run(batches, 10**6, **domain).process)
    assert isinstance(shorter, li.theorems.Guarantee)
    assert report.epsilon <= shorter.epsilon(DELTA) * (1 + 1e-6)
    assert li.verify(report.certificate, run=report.run).accepted


@pytest.mark.parametrize("batches", [li.FullBatch(records=100), EVEN["cyclic"], li.FixedSize(100, 20)], ids=repr)
def test_steps_that_hardly_contract(batches: Any) -> None:
    """By a factor of 1 − 1e-9: no step is left out, and formulas of the limit answer, far below composition."""
    nearly = {"loss": li.losses.logistic(feature_norm=1.0, l2=2e-9)}
    report = li.account(run(batches, LONGEST, **nearly), DELTA)
    assert report.run.process.without_a_distant_start() is report.run.process
    assert report.epsilon < report.epsilon_all_released / 20
    assert li.verify(report.certificate, run=report.run).accepted


def test_shuffled_steps_that_hardly_contract_are_composed() -> None:
    report = li.account(run(EVEN["shuffled"], LONGEST, loss=li.losses.logistic(feature_norm=1.0, l2=2e-9)), DELTA)
    assert report.epsilon == pytest.approx(report.epsilon_all_released, rel=1e-9)
    assert li.verify(report.certificate, run=report.run).accepted


@pytest.mark.parametrize("noise", [li.OnMeanGradient(std=0.5), li.OnGradientSum(multiplier=1.0, clip=1.0)], ids=repr)
@pytest.mark.parametrize("adjacency", [li.REPLACE_ONE, li.ZERO_OUT])
def test_the_last_steps_of_a_run_with_a_smaller_last_batch_are_those_of_a_shorter_one(
    noise: Any, adjacency: Any
) -> None:
    more = {"noise": noise, "adjacency": adjacency}
    long, short = (li.Run(LOSS, UNEVEN["shuffled"], 0.5, steps=steps, **more) for steps in (10**9, 40))
    assert long.steps % 6 == short.steps % 6
    found, exact = long.process.last_steps(40, 0.0), short.process
    assert not exact.constant or noise.on_sum
    for name in ("sensitivity", "sampled", "lipschitz"):
        assert (getattr(found, name) >= getattr(exact, name)).all()
        assert getattr(found, name) == pytest.approx(getattr(exact, name), rel=1e-12)
    assert found.noise == pytest.approx(exact.noise)


def test_an_epoch_contracts_if_its_smaller_batch_does_not() -> None:
    """A record of its own that is zeroed out leaves a batch without curvature."""
    batches = li.Cyclic(records=101, batch_size=20, last="smaller")
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.3, gradient_sensitivity=1.0, gradient_norm=1.0)
    given = li.Run(loss, batches, 0.5, li.OnMeanGradient(std=1.0), LONGEST - LONGEST % 6, adjacency=li.ZERO_OUT)
    assert given.process.contraction == 1 > given.process.inside[1]
    kept = given.process.without_a_distant_start()
    assert len(kept) < 3_000
    assert kept.lipschitz == pytest.approx(replace(given, steps=len(kept)).process.lipschitz, rel=1e-12)


def test_a_run_is_cut_only_if_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the border lowered, what is left out changes no ε of a run that both sides answer."""
    for batches in (li.FullBatch(records=100), *EVEN.values()):
        given = run(batches, 5_000).process
        expected = float(BY_NAME["shift-engine"].notion(given).epsilon(DELTA))
        assert BY_NAME["shift-engine"].seen(given) is given
        with monkeypatch.context() as patched:
            patched.setattr(processes, "LONG", 3_000)
            assert len(BY_NAME["shift-engine"].seen(given)) < 3_000
            found = float(BY_NAME["shift-engine"].notion(given).epsilon(DELTA))
        assert found == pytest.approx(expected, rel=1e-9)
