"""Further steps that make a model forget: the least number, its certificate, and what is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li
from lastiterate.facts import fact
from lastiterate.forgetting.requests import Requests, forgetting_process
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from raising import raises

DELTA = 1e-5
SEEDED = fact("noise_seeded", generator="lastiterate")


@pytest.fixture(scope="module")
def run() -> li.Run:
    return li.Run(
        loss=li.losses.logistic(feature_norm=1.0, l2=0.05),
        batches=li.FullBatch(records=500),
        step_size=1.0,
        noise=li.OnMeanGradient(std=0.01),
        steps=60,
        adjacency=li.ZERO_OUT,
    )


@pytest.fixture(scope="module")
def plan(run: li.Run) -> li.results.Forgetting:
    return li.forget(run, epsilon=0.5, delta=DELTA, removals=[2, 1])


def epsilon_after(run: li.Run, removals: tuple[int, ...], further: tuple[int, ...]) -> float:
    return SHIFT_ENGINE.apply(forgetting_process(run, Requests(removals, further))).epsilon(DELTA)


def test_it_is_the_least_number_of_steps(run: li.Run) -> None:
    executed = replace(run, arithmetic=run.expected_arithmetic)
    found = li.forget(executed, epsilon=0.5, delta=DELTA)
    assert found.epsilon <= 0.5 < epsilon_after(executed, (1,), (found.steps - 1,))
    assert li.forget(run, epsilon=0.5, delta=DELTA).steps == found.steps  # room is left for what rounding adds


def test_a_run_that_is_private_enough_forgets_at_once(run: li.Run) -> None:
    target = li.account(run, DELTA).epsilon * 1.01
    assert li.forget(run, epsilon=target, delta=DELTA).steps == 0


def test_more_records_a_smaller_epsilon_and_longer_training_take_no_fewer_steps(run: li.Run) -> None:
    def steps(given: li.Run = run, epsilon: float = 0.5, removals: int = 1) -> int:
        return li.forget(given, epsilon=epsilon, delta=DELTA, removals=removals).steps

    assert steps() < steps(removals=3) < steps(removals=30)
    assert steps(epsilon=1.0) < steps() < steps(epsilon=0.1)
    assert steps(run.first(5)) <= steps()


def test_requests_one_after_the_other_are_each_about_all_records_so_far(
    plan: li.results.Forgetting, run: li.Run
) -> None:
    assert plan.removals == (2, 1)
    assert max(plan.epsilons) == plan.epsilon <= 0.5
    assert plan.epsilons[0] == epsilon_after(run, (2,), plan.further[:1])
    assert plan.epsilons[1] == epsilon_after(run, (2, 1), plan.further)
    assert plan.whole == run.continued(plan.steps) == replace(run, steps=60 + plan.steps)
    assert plan.mu is not None
    assert li.notions.GaussianDP(plan.mu).epsilon(DELTA) == plan.epsilons[1]


def test_it_says_what_is_compared(plan: li.results.Forgetting, run: li.Run) -> None:
    text = str(plan)
    assert text.startswith(f"{plan.steps} further steps forget 3 records: epsilon = ")
    assert "2 requests, one after the other" in text
    assert "by shift-engine: " in text
    assert f"The model after 60 steps of training and {plan.steps} further steps is compared with" in text
    about = {"steps": 60, "further": plan.steps, "records": 3, "earlier": 0, "after": ()}
    assert plan.assumptions[0] == fact("same_start_and_settings", **about, replaced=False)
    assert "their gradients are left out" in text
    assert plan.assumptions[1] == fact("models_covered", earlier="not covered")
    assert plan.assumptions[2:-2] == li.account(plan.whole, DELTA).assumptions
    assert plan.assumptions[-2:] == (fact("removed_unused"), fact("requests_independent"))
    replaced = li.forget(replace(run, adjacency=li.REPLACE_ONE), epsilon=1, delta=DELTA)
    about |= {"further": replaced.steps, "records": 1}
    assert replaced.assumptions[0] == fact("same_start_and_settings", **about, replaced=True)
    assert "another record takes its place" in str(replaced)
    content = json.loads(plan.to_json())
    assert content["steps"] == sum(one["steps"] for one in content["requests"]) == plan.steps
    assert content["theorem"] == "shift-engine"


def test_it_says_where_training_anew_is_no_longer(plan: li.results.Forgetting, run: li.Run) -> None:
    assert max(plan.further) < run.steps
    assert "from scratch" not in str(plan)
    assert "Training from scratch without these records takes 5 steps" in str(
        li.forget(run.first(5), epsilon=0.1, delta=DELTA)
    )


def test_certificates_are_replayed_for_every_request(plan: li.results.Forgetting, run: li.Run) -> None:
    for count in (1, 2):
        verdict = li.verify(json.dumps(plan.certificate_after(count)), run)
        assert isinstance(verdict, li.results.ForgettingVerdict)
        assert verdict.accepted
        assert verdict.epsilon == pytest.approx(plan.epsilons[count - 1], rel=1e-9)
        assert verdict.further == sum(plan.further[:count])
    assert "3 records forgotten (left out)" in str(li.verify(plan.certificate))
    assert not li.verify(plan.certificate, run.first(50)).accepted
    with raises("must_be", "requests", kind=li.errors.InvalidInput, allowed="at most 2"):
        plan.certificate_after(3)


TAMPERED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "epsilon": (lambda one: one["claim"].update(epsilon=0.1), "it claims delta"),
    "mu": (lambda one: one["claim"].update(mu=0.01), "it claims mu"),
    "removals": (lambda one: one["claim"].update(removals=[3, 1]), "it must say: 4 records"),
    "steps": (lambda one: one["claim"].update(steps=[10, 1]), "its assumptions"),
    "requests": (lambda one: one["claim"].update(steps=[10]), "not one number of steps"),
    "nothing removed": (lambda one: one["claim"].update(removals=[0, 3]), "not a certificate"),
    "neighbours": (lambda one: one["claim"].update(unit=li.ZERO_OUT.unit().to_dict()), "it must say"),
    "replaced": (lambda one: one["claim"]["unit"].update(replaced=True), "it must say"),
    "fewer records": (lambda one: one["claim"]["unit"].update(records=2), "it must say"),
    "adaptive": (lambda one: one["claim"]["unit"].update(adaptive=True), "it must say"),
    "no unit": (lambda one: one["claim"].pop("unit"), "unit is missing"),
    "pushes": (
        lambda one: one["proof"]["steps"].update(sensitivity=[[1e-9, one["proof"]["steps"]["count"]]]),
        "are not",
    ),
    "assumptions": (lambda one: one["assumptions"].pop(), "its assumptions"),
    "the order of assumptions": (lambda one: one["assumptions"].reverse(), "no. 1 must be same_start_and_settings("),
    "what is compared": (lambda one: one["assumptions"][0].update(further=1), "no. 1 must be same_start_and_settings("),
    "another model": (lambda one: one["assumptions"][1].update(earlier="covered"), "no. 2 must be models_covered("),
    "who stands for it": (lambda one: one["assumptions"][-1].update(basis="checked"), "cannot be checked"),
    "theorem": (lambda one: one.update(theorem="composition"), "does not prove such a claim"),
    "grade": (lambda one: one.update(grade="believed"), "or not by this grade"),
    "caveats": (lambda one: one.update(caveats=[SEEDED.to_dict()]), "the noise came from a seed"),
    "caveats that are none": (lambda one: one.update(caveats=["seeded"]), "a fact must have one of the known codes"),
    "endless": (lambda one: one["claim"].update(steps=[10**11, 1]), "at most 4e"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_changed_certificate_is_rejected(name: str, plan: li.results.Forgetting) -> None:
    change, reason = TAMPERED[name]
    changed = copy.deepcopy(plan.certificate)
    change(changed)
    verdict = li.verify(changed)
    assert not verdict.accepted
    assert reason in verdict.reason


def test_it_is_no_guarantee_of_privacy_that_a_budget_would_take(plan: li.results.Forgetting, run: li.Run) -> None:
    """Neither as the certificate of a run, by another name, nor by its neighbours."""
    renamed = {**plan.certificate, "format": "lastiterate certificate 1"}
    assert not li.verify(renamed).accepted
    unit = li.verify(plan.certificate).unit
    assert unit == fact("forgotten", records=3, replaced=False, adaptive=False) != run.adjacency.unit()
    more = copy.deepcopy(plan.certificate)
    more["assumptions"].append(fact("durations_tell_nothing").to_dict())
    assert li.verify(more).assumptions == (*plan.assumptions, fact("durations_tell_nothing"))


def test_a_page_about_a_run_is_not_made_of_it(plan: li.results.Forgetting, run: li.Run, tmp_path: Path) -> None:
    li.account(run, DELTA).save(tmp_path / "report.html", curves=False)
    text = (tmp_path / "report.html").read_text()
    assert li.verify(text).accepted
    element = '<script type="application/json" id="certificate">'
    before, _, after = text.partition(element)
    forged = f"{before}{element}{json.dumps(plan.certificate)}</script>\n{after.partition(chr(10))[2]}"
    assert li.verify(forged).reason == "its certificate is not that of a run"


def test_several_records_of_a_pass_and_a_release_are_certified() -> None:
    run = li.Run(
        loss=li.losses.logistic(feature_norm=1.0, l2=0.1),
        batches=li.Cyclic(records=100, batch_size=25),
        step_size=0.5,
        noise=li.OnGradientSum(multiplier=4.0, clip=1.0),
        steps=li.epochs(5),
        adjacency=li.ZERO_OUT,
    )
    for removals, releases, epsilon in ((1, (), 0.2), (2, (), 0.5), ([1, 1], (), 0.5), (1, (8,), 1.5)):
        found = li.forget(run, epsilon=epsilon, delta=DELTA, removals=removals, releases=releases)
        assert found.steps % 4 == 0
        assert li.verify(found.certificate, run).accepted


def test_what_was_released_beforehand_counts_once_for_each_record(run: li.Run) -> None:
    before = replace(run, prior_mu=0.1)
    alone, both = (SHIFT_ENGINE.apply(forgetting_process(one, Requests((2,), (5,)))).notion for one in (run, before))
    assert isinstance(alone, li.notions.GaussianDP)
    assert isinstance(both, li.notions.GaussianDP)
    assert both.mu == pytest.approx((alone.mu**2 + 0.2**2) ** 0.5, rel=1e-9)
    found = li.forget(before, epsilon=1.0, delta=DELTA)
    assert li.verify(found.certificate).accepted


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "momentum": ({"optimizer": li.SGD(momentum=0.9)}, {}, "optimizer", "Forgetting needs plain gradient steps"),
    "an average": ({"released": li.EMA(decay=0.9)}, {}, "released", "Forgetting needs plain gradient steps"),
    "users": ({"user_records": 2}, {}, "user_records", "user_records must be 1"),
    "no records": ({}, {"removals": 0}, "removals", "removals must be"),
    "no requests": ({}, {"removals": []}, "removals", "Got none"),
    "too many": ({}, {"removals": [400, 101]}, "removals", "from 1 to 500 records in all. Got 501"),
    "a model that was released": (
        {},
        {"releases": [60]},
        "releases",
        "No number of further steps reaches epsilon = 0.5",
    ),
    "a release while it forgets": ({}, {"releases": [63]}, "releases", "epsilon stays 4.49"),
    "each model": (
        {},
        {"removals": [1, 1], "release_each": True},
        "releases",
        "released iterates cannot be taken back",
    ),
    "too few steps": ({}, {"most_steps": 3}, "epsilon", "Even 3 further steps leave epsilon"),
    "no flag": ({}, {"release_each": 1}, "release_each", "release_each must be True or False. Got 1"),
    "adaptive without a domain": ({}, {"adaptive": True}, "domain", "domain must be bounded for adaptive requests"),
    "adaptive, in one secret order": (
        {"batches": li.Shuffled(records=500, batch_size=50, each_epoch=False), "domain": li.Ball(radius=1.0)},
        {"adaptive": True},
        "batches",
        "must not keep one secret order",
    ),
    "adaptive, inside a secret order": (
        {"batches": li.Shuffled(records=500, batch_size=50), "domain": li.Ball(radius=1.0), "steps": 62},
        {"adaptive": True},
        "steps",
        "whole epochs of 10 steps before each adaptive request",
    ),
    "adaptive, after a release beforehand": (
        {"prior_mu": 0.1, "domain": li.Ball(radius=1.0)},
        {"adaptive": True},
        "prior_mu",
        "prior_mu must be 0",
    ),
    "adaptive, with releases": (
        {"domain": li.Ball(radius=1.0)},
        {"adaptive": True, "releases": [60]},
        "releases",
        "must be left out",
    ),
    "no target": ({}, {"epsilon": 0.0}, "epsilon", "epsilon must be"),
    "too long": ({"steps": 10**9}, {}, "steps", "at most 4e+07"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_covered_is_refused_in_one_sentence(name: str, run: li.Run) -> None:
    changed, asked, field, sentence = REFUSED[name]
    with pytest.raises(li.errors.LastIterateError) as caught:
        li.forget(replace(run, **changed), **{"epsilon": 0.5, "delta": DELTA, **asked})
    assert caught.value.field == field
    assert sentence in str(caught.value)


def test_growing_distances_are_not_forgotten_by_any_number_of_steps(run: li.Run) -> None:
    loss = li.losses.general(smoothness=1.0, weak_convexity=0.5, gradient_sensitivity=2.0, gradient_norm=1.0)
    with raises("steps_not_enough", "epsilon", kind=li.errors.Unavailable):
        li.forget(replace(run, loss=loss, steps=5), epsilon=0.05, delta=DELTA, most_steps=2000)


def test_records_of_a_plan_are_checked(plan: li.results.Forgetting) -> None:
    assert plan.of([3, 4], [7]).until(1) == (3, 4)
    assert plan.of([3], []).until(2) == (3,)
    for given in (([1],), ([1, 2, 3], [4]), ([1], [1]), ([1], [500]), (1, 2), ([-1], [2])):
        with pytest.raises(li.errors.InvalidInput) as caught:
            plan.of(*given)  # type: ignore[arg-type]
        assert caught.value.field == "records"


def test_without_further_steps_every_theorem_about_the_training_counts() -> None:
    """A claim for what training hides is what `li.account` says of a group, and no such theorem proves more than that."""
    run = li.Run(
        loss=li.losses.logistic(feature_norm=1.0),
        batches=li.Cyclic(records=500, batch_size=50),
        step_size=0.5,
        noise=li.OnMeanGradient(std=0.2),
        steps=li.epochs(3),
    )
    report = li.account(run, DELTA)
    assert report.best.theorem.name != "shift-engine"
    plan = li.forget(run, epsilon=1.01 * report.epsilon, delta=DELTA)
    assert plan.steps == 0
    assert plan.epsilon == report.epsilon
    assert plan.guarantees[0].theorem.name == report.best.theorem.name
    assert li.verify(plan.certificate, run).accepted
    for claimed in ({"steps": [10]}, {"removals": [2]}, {"releases": [10]}):
        doctored = copy.deepcopy(plan.certificate)
        doctored["claim"].update(claimed)
        assert not li.verify(doctored).accepted
