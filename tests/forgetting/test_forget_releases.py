"""Plans and certificates where models are released before, between and during requests, or requests depend on them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import lastiterate as li
from lastiterate.facts import fact
from raising import raises

DELTA = 1e-5


@pytest.fixture(scope="module")
def run() -> li.Run:
    return li.Run(
        loss=li.losses.logistic(feature_norm=1.0, l2=0.05),
        batches=li.FullBatch(records=500),
        step_size=1.0,
        noise=li.OnMeanGradient(std=0.03),
        steps=60,
        domain=li.Ball(radius=1.0),
        adjacency=li.ZERO_OUT,
    )


@pytest.fixture(scope="module")
def released(run: li.Run) -> li.results.Forgetting:
    return li.forget(run, epsilon=2.5, delta=DELTA, removals=[2, 1], releases=[10], release_each=True)


@pytest.fixture(scope="module")
def adaptive(run: li.Run) -> li.results.Forgetting:
    return li.forget(run, epsilon=0.5, delta=DELTA, removals=[2, 1], adaptive=True)


def test_models_that_are_released_are_named_and_certified(released: li.results.Forgetting, run: li.Run) -> None:
    ends = (60 + released.further[0], 60 + released.steps)
    assert released.releases == tuple(sorted({10, *ends}))
    verdict = li.verify(json.dumps(released.certificate), run)
    assert verdict.accepted
    assert verdict.releases == tuple(place for place in (10, ends[0]) if place < ends[1])
    assert li.verify(released.certificate_after(1), run).releases == (10,)
    assert dict(released.assumptions[0].values)["after"] == tuple(place for place in (10, ends[0]) if place < ends[1])
    assert "together with the iterates released after 10" in str(released.assumptions[0])
    assert released.assumptions[1] == fact("models_covered", earlier="covered")
    assert "later requests may depend on them" in str(released.assumptions[1])
    assert "not covered" not in str(released.assumptions[1])


def test_what_is_released_is_never_cheaper(run: li.Run) -> None:
    alone = li.forget(run, epsilon=0.5, delta=DELTA)
    assert alone.assumptions[1] == fact("models_covered", earlier="not covered")
    assert "Models that were released earlier are not covered." in str(alone)
    with raises("released_not_forgotten", "releases", kind=li.errors.Unavailable):
        li.forget(run, epsilon=0.5, delta=DELTA, releases=[60])
    late = li.forget(run, epsilon=0.5, delta=DELTA, releases=[60 + alone.steps + 7])
    assert late.further == alone.further  # what comes later is made of the model, without the record


def test_adaptive_requests_each_take_the_same_steps(adaptive: li.results.Forgetting, run: li.Run) -> None:
    assert adaptive.further[0] == adaptive.further[1] == li.forget(run, epsilon=0.5, delta=DELTA, adaptive=True).steps
    assert adaptive.epsilon <= 0.5
    assert li.forget(run, epsilon=0.5, delta=DELTA).steps < adaptive.further[0]
    verdict = li.verify(json.dumps(adaptive.certificate), run)
    assert verdict.accepted
    assert verdict.steps == 60 + adaptive.steps
    assert "3 records forgotten (left out), given all earlier models" in str(verdict)
    about = {"steps": 60, "further": adaptive.steps, "records": 3, "replaced": False, "earlier": 0}
    assert adaptive.assumptions[:2] == (fact("separate_run", **about), fact("models_covered", earlier="public"))
    codes = [one.code for one in adaptive.assumptions]
    assert "only_released" not in codes
    assert "requests_independent" not in codes
    assert adaptive.assumptions[-2:] == (fact("removed_unused"), fact("nothing_released_meanwhile"))


def test_adaptive_requests_after_other_batches(run: li.Run) -> None:
    for batches in (li.Shuffled(records=500, batch_size=50), li.FixedSize(records=500, batch_size=50)):
        found = li.forget(replace(run, batches=batches), epsilon=0.5, delta=DELTA, adaptive=True)
        assert found.steps % (10 if batches.passes else 1) == 0
        assert li.verify(found.certificate).accepted


OF_ADAPTIVE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "epsilon": (lambda one: one["claim"].update(epsilon=0.1), "it claims delta"),
    "mu": (lambda one: one["claim"].update(mu=0.01), "it claims mu"),
    "not adaptive": (lambda one: one["claim"].pop("adaptive"), "it must say: 3 records forgotten (left out)"),
    "adaptive by another word": (lambda one: one["claim"].update(adaptive="yes"), "adaptive must be true"),
    "fewer steps": (lambda one: one["claim"].update(steps=[70, 20]), "its assumptions"),
    "no steps": (lambda one: one["claim"].update(steps=[70, 0]), "steps must be at least 1"),
    "a release": (lambda one: one["claim"].update(releases=[60]), "releases"),
    "distance": (lambda one: one["proof"]["steps"].update(sensitivity=[[1e-3, 1]]), "are not"),
    "domain": (lambda one: one["run"]["domain"].update(radius=0.1), "are not those of its run"),
    "unbounded": (lambda one: one["run"].pop("domain"), "domain must be bounded"),
    "assumptions": (lambda one: one["assumptions"].pop(1), "its assumptions"),
}
OF_RELEASED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a release is left out": (lambda one: one["claim"].update(releases=[10]), "its assumptions"),
    "all are left out": (lambda one: one["claim"].update(releases=[]), "its assumptions"),
    "a release after the end": (lambda one: one["claim"]["releases"].append(10**6), "not all before its last step"),
    "adaptive": (lambda one: one["claim"].update(adaptive=True), "given all earlier models"),
    "turns": (lambda one: one["proof"]["turns"].update(releases=[]), "its turns are not those of its run"),
}


@pytest.mark.parametrize("name", OF_ADAPTIVE)
def test_a_changed_certificate_of_adaptive_requests_is_rejected(name: str, adaptive: li.results.Forgetting) -> None:
    check_rejected(adaptive.certificate, *OF_ADAPTIVE[name])


@pytest.mark.parametrize("name", OF_RELEASED)
def test_a_changed_certificate_with_releases_is_rejected(name: str, run: li.Run) -> None:
    plan = li.forget(run, epsilon=2.5, delta=DELTA, releases=[10, 20])
    check_rejected(plan.certificate, *OF_RELEASED[name])


def check_rejected(certificate: dict[str, Any], change: Callable[[dict[str, Any]], Any], reason: str) -> None:
    changed = copy.deepcopy(certificate)
    change(changed)
    verdict = li.verify(changed)
    assert not verdict.accepted
    assert reason in verdict.reason
