"""account, account_each and what a report answers."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import lastiterate as li
from lastiterate.facts import fact, fact_from_json, facts_from_json
from lastiterate.report import english
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from raising import raises


def convex_run(**changes: object) -> li.Run:
    values: dict[str, object] = {
        "loss": li.losses.logistic(feature_norm=1.0, l2=0.01),
        "batches": li.Cyclic(records=1000, batch_size=100),
        "step_size": 0.5,
        "noise": li.OnMeanGradient(std=0.05),
        "steps": li.epochs(20),
        "domain": li.Ball(radius=1.0),
    }
    return li.Run(**{**values, **changes})  # type: ignore[arg-type]


def test_the_report_answers_everything() -> None:
    report = li.account(convex_run(), delta=1e-5)
    assert report.epsilon == report.best.epsilon(1e-5) == min(report.epsilons)
    assert list(report.epsilons) == sorted(report.epsilons)
    assert len(report.guarantees) + len(report.inapplicable) == len(li.theorems.CATALOGUE)
    assert report.mu is not None
    assert li.notions.GaussianDP(report.mu).epsilon(1e-5) == report.epsilon
    assert report.profile(report.epsilon) <= 1e-5 * (1 + 1e-9)
    assert report.profile([0.0, 1.0]).shape == (2,)
    assert report.tradeoff(0.1) >= li.notions.GaussianDP(report.mu).tradeoff(0.1) * (1 - 1e-12)
    assert report.epsilon_all_released > report.epsilon


def test_the_page_can_be_read() -> None:
    report = li.account(convex_run(), delta=1e-5)
    page = report.details()
    assert page.startswith(f"epsilon = {report.epsilon:.6g} at delta = 1e-05")
    for heading in (
        "\nRun\n",
        "\nInterpretation\n",
        "\nAll guarantees, smallest ε first\n",
        "\nTheorems that do not apply\n",
        "\nAssumptions you must guarantee\n",
    ):
        assert heading in page
    for guarantee in report.guarantees:
        assert guarantee.theorem.name in page
    assert "Poisson" in page
    assert max(map(len, page.splitlines())) <= 110
    for one in report.assumptions:
        assert str(one).endswith(".")
        assert str(one) in " ".join(page.split())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"batches": li.Shuffled(records=1000, batch_size=100), "user_records": 3, "prior_mu": 0.1},
        {"loss": li.losses.network(clip=1.0), "domain": li.Unbounded(), "optimizer": li.Adam()},
        {"loss": li.losses.softmax(feature_norm=1.0, classes=10, clip=1.0), "steps": 203},
    ],
)
def test_what_is_printed_is_the_claim_and_all_assumptions_in_twenty_lines(changes: dict[str, object]) -> None:
    report = li.account(convex_run(**changes), delta=1e-5, releases=[50, 100])
    printed = str(report)
    assert len(printed.splitlines()) <= 20
    assert max(map(len, printed.splitlines())) <= 110
    assert printed.splitlines()[0] == report.details().splitlines()[0]
    assert " ".join(english.lower_bound(report.lower_bound.epsilon, report.epsilon).split()) in " ".join(
        printed.split()
    )
    promised = " ".join(printed.partition("You promise: ")[2].split())
    for one in report.promises:
        assert english.short(one.code, dict(one.values)) in promised
    assert len(report.details()) > len(printed)


def test_json_holds_the_same() -> None:
    report = li.account(convex_run(), delta=1e-5)
    content = json.loads(report.to_json())
    assert content["epsilon"] == report.epsilon
    assert content["theorem"] == report.best.theorem.name
    assert facts_from_json(content["assumptions"]) == report.assumptions
    assert facts_from_json(content["caveats"]) == report.caveats == ()
    assert fact_from_json(content["unit"]) == report.unit
    assert report.unit == fact("neighbours", adjacency="replace_one", user_records=1, records=())


@pytest.mark.parametrize("batches", [li.FixedSize(records=1000, batch_size=100), li.Poisson(records=1000, rate=0.1)])
def test_random_batches_are_accounted_for_by_composition_or_better(batches: object) -> None:
    report = li.account(convex_run(batches=batches), delta=1e-5)
    composed = next(one for one in report.guarantees if one.theorem.name == "bok2024/random/composition").epsilon(1e-5)
    better = "hidden-participation" if isinstance(batches, li.FixedSize) else "bok2024/random/composition"
    assert report.best.theorem.name == better
    assert report.epsilon <= composed
    sampling = li.notions.FIXED_SIZE if isinstance(batches, li.FixedSize) else li.notions.POISSON
    mu = float(report.run.process.sensitivity[0] / report.run.process.noise[0])
    step = li.notions.subsampled_gaussian(mu=mu, inclusion=0.1, sampling=sampling, adjacency=li.REPLACE_ONE)
    assert composed == pytest.approx(step.compose(200).epsilon(1e-5), rel=1e-9)
    assert report.mu is None
    schedule = convex_run(batches=batches, step_size=np.linspace(0.1, 0.5, 200))
    assert 0 < li.account(schedule, delta=1e-5).epsilon <= composed * (1 + 1e-6)


def test_poisson_batches_need_bounded_gradients_not_only_bounded_changes() -> None:
    """The dominating pair compares a record's gradient with none at all; a bound on differences does not give that."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.1, gradient_sensitivity=2.0)
    poisson = li.Poisson(records=1000, rate=0.1)
    unclipped = li.account(convex_run(loss=loss, batches=poisson), delta=1e-5)
    refusal = next(one for one in unclipped.inapplicable if one.theorem.name == "bok2024/random/composition")
    assert refusal.reasons == (fact("record_gradients_unbounded"),)
    assert unclipped.epsilon_all_released == math.inf
    assert "epsilon" in str(unclipped)
    clipped = li.losses.general(smoothness=1.0, strong_convexity=0.1, gradient_sensitivity=0.5, clip=1.0)
    report = li.account(convex_run(loss=clipped, batches=poisson), delta=1e-5)
    mu = 2 * 0.5 * 1.0 / 100 / (0.5 * 0.05)  # twice the clip, though two gradients differ by half of it at most
    step = li.notions.subsampled_gaussian(mu=mu, inclusion=0.1, adjacency=li.REPLACE_ONE)
    assert report.epsilon_all_released == pytest.approx(step.compose(200).epsilon(1e-5), rel=1e-9)


def test_a_network_without_smoothness_is_composition_and_has_a_certificate() -> None:
    run = convex_run(loss=li.losses.network(clip=1.0), domain=li.Unbounded())
    report = li.account(run, delta=1e-5)
    assert report.epsilon == pytest.approx(report.epsilon_all_released, rel=1e-9)
    assert li.verify(report.certificate).accepted  # type: ignore[arg-type]


def test_releases_cost_and_the_end_is_free() -> None:
    run = convex_run()
    alone = li.account(run, delta=1e-5)
    some = li.account(run, delta=1e-5, releases=[50, 100])
    every = li.account(run, delta=1e-5, releases=range(1, 201))
    assert alone.epsilon < some.epsilon < every.epsilon <= alone.epsilon_all_released * (1 + 1e-9)
    assert every.epsilon == pytest.approx(alone.epsilon_all_released, rel=1e-9)
    assert li.account(run, delta=1e-5, releases=[200]).epsilon == alone.epsilon
    assert "50, 100" in some.details()
    (released,) = [one for one in some.assumptions if one.code == "only_released"]
    assert released == fact("only_released", released="last", parameter=None, after=(50, 100), beforehand=False)


def test_released_quadratics_are_below_their_bound() -> None:
    """After a release both runs start from one point: the squares of the μ of the stretches add up."""
    run = convex_run(batches=li.FullBatch(records=100), domain=li.Unbounded(), steps=30)
    push, noise, factor = (
        float(values[0]) for values in (run.process.sensitivity, run.process.noise, run.process.lipschitz)
    )

    def exact(steps: int) -> float:
        gap, variance = 0.0, 0.0
        for _ in range(steps):
            gap, variance = factor * gap + push, factor**2 * variance + noise**2
        return gap / math.sqrt(variance)

    report = li.account(run, delta=1e-5, releases=[10, 17])
    assert report.mu == pytest.approx(math.sqrt(exact(10) ** 2 + exact(7) ** 2 + exact(13) ** 2), rel=1e-9)


def test_every_record_has_its_own_epsilon() -> None:
    run = convex_run()
    each = li.account_each(run, delta=1e-5)
    assert each.epsilons.shape == (1000,)
    assert each.worst == pytest.approx(li.account(run, delta=1e-5).epsilon, rel=1e-9)
    assert each.epsilon_of(999) == each.worst
    assert each.epsilon_of(0) < each.worst
    assert (np.diff(each.batch_epsilons) >= 0).all()
    assert "10 batches" in str(each)
    with raises("must_be", "record", kind=li.errors.InvalidInput, allowed="from 0 to 999"):
        each.epsilon_of(1000)


def test_a_record_that_was_never_used_is_not_betrayed() -> None:
    each = li.account_each(convex_run(steps=3), delta=1e-5)
    assert (each.batch_epsilons[3:] == 0).all()
    assert (each.batch_epsilons[:3] > 0).all()


def test_shuffled_records_are_all_alike() -> None:
    run = convex_run(batches=li.Shuffled(records=1000, batch_size=100))
    each = li.account_each(run, delta=1e-5)
    assert len(set(each.epsilons.tolist())) == 1
    assert each.worst == li.account(run, delta=1e-5).epsilon


def test_plots_are_drawn(tmp_path: Path) -> None:
    report = li.account(convex_run(), delta=1e-5)
    report.plot(tmp_path / "growth.png")
    report.plot_comparison(tmp_path / "comparison.svg")
    li.account_each(convex_run(), delta=1e-5).plot(tmp_path / "each.png")
    assert all(file.stat().st_size > 1000 for file in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 3
    axes = report.plot()
    assert axes.get_xlabel() == "epochs"
    hidden = axes.lines[0].get_ydata()
    assert hidden[-1] == report.epsilon


@pytest.mark.parametrize("steps", [200_000, pytest.param(1_000_000, marks=pytest.mark.study)])
def test_very_many_steps_with_a_schedule(steps: int) -> None:
    source = np.random.default_rng(30)
    run = convex_run(
        batches=li.FullBatch(records=1000),
        step_size=source.uniform(0.1, 1.0, steps),
        noise=li.OnIterate(source.uniform(0.05, 0.1, steps)),
        steps=steps,
    )
    report = li.account(run, delta=1e-5)
    assert 0 < report.epsilon < report.epsilon_all_released
    assert li.verify(report.certificate).accepted  # type: ignore[arg-type]


@pytest.mark.skipif(sys.maxsize < 2**32, reason="such a run is refused on 32-bit platforms")
def test_too_long_to_go_through_is_the_engine_on_the_last_steps_and_the_closed_form() -> None:
    run = convex_run(batches=li.FullBatch(records=1000), steps=10**9)
    report = li.account(run, delta=1e-5, theorems=li.theorems.ALL)
    by_name = {one.theorem.name: one.epsilon(1e-5) for one in report.guarantees}
    assert by_name["shift-engine"] == pytest.approx(by_name["bok2024/full-batch/strongly-convex"], rel=1e-10)
    assert li.verify(report.certificate).accepted


@pytest.mark.parametrize(
    ("batches", "l2", "step_size", "steps"),
    [(li.Cyclic(records=10_000, batch_size=100), 0.1, 0.1, 6000), (li.FullBatch(records=10), 1.0, 0.5, 100)],
)
def test_a_bounded_domain_that_contracts_fast(batches: object, l2: float, step_size: float, steps: int) -> None:
    """So far back that the start is lost to rounding."""
    values = {
        "loss": li.losses.logistic(feature_norm=1.0, l2=l2),
        "batches": batches,
        "step_size": step_size,
        "steps": steps,
    }
    processes = [convex_run(**values, domain=domain).process for domain in (li.Ball(radius=5.0), li.Unbounded())]
    bounded, unbounded = (SHIFT_ENGINE.notion(process).epsilon(1e-5) for process in processes)
    assert bounded <= unbounded


def test_what_a_theorem_cannot_bound_does_not_stop_the_others() -> None:
    """Steps that expand by far: where each epoch has a new order, no schedule stays finite, and composition remains."""
    loss = li.losses.logistic(feature_norm=100.0)
    report = li.account(
        convex_run(loss=loss, batches=li.Shuffled(records=1000, batch_size=1), domain=li.Unbounded()), delta=1e-5
    )
    assert report.best.theorem.name == "bok2024/cyclic/composition"
    assert "Use step_size <" in report.details()
    contracting_in_one_step = li.losses.general(smoothness=2.0, strong_convexity=2.0, gradient_sensitivity=1.0)
    assert li.account(convex_run(loss=contracting_in_one_step), delta=1e-5).epsilon > 0


def test_growth_that_comes_back_is_followed() -> None:
    loss = li.losses.general(smoothness=1.0, strong_convexity=1.0, gradient_sensitivity=1.0)
    sizes = [2.5] * 2000 + [0.5] * 2000
    run = li.Run(loss, li.FullBatch(records=1), sizes, li.OnIterate(std=1.0), 4000)
    assert li.account(run, delta=1e-5).mu == pytest.approx(0.5 * math.sqrt(3), rel=1e-9)


def test_an_unfinished_epoch_is_pointed_out() -> None:
    page = " ".join(li.account(convex_run(steps=203), delta=1e-5).details().split())
    assert "ends 3 steps into an epoch" in page
    assert "With 200 or 210 steps it would end with an epoch." in page


def test_a_closed_form_next_to_one_does_not_cancel() -> None:
    loss = li.losses.logistic(feature_norm=1.0, l2=1.0202657246515673e-9)
    run = li.Run(loss, li.FullBatch(records=10), 0.1, li.OnMeanGradient(std=0.5), 104)
    report = li.account(run, delta=1e-5, theorems=li.theorems.ALL)
    epsilons = dict(zip((one.theorem.name for one in report.guarantees), report.epsilons, strict=True))
    exact = epsilons["shift-engine"]
    assert exact * (1 - 1e-13) <= epsilons["bok2024/full-batch/strongly-convex"] <= exact * (1 + 1e-11)
