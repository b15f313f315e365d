"""Certificates: replayed, and rejected when a number was changed to the claimant's advantage."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.accounting.certificate import certificate_of
from lastiterate.algorithms.encode import run_from_dict
from lastiterate.theorems.shift_engine import SHIFT_ENGINE, shift_proof

DELTA = 1e-5


def run_with(batches: object, steps: int, **changes: object) -> li.Run:
    values: dict[str, object] = {
        "loss": li.losses.logistic(feature_norm=1.0, l2=0.01),
        "batches": batches,
        "step_size": 0.5,
        "noise": li.OnMeanGradient(std=0.05),
        "steps": steps,
    }
    return li.Run(**{**values, **changes})  # type: ignore[arg-type]


REGULARISED = li.Run(
    loss=li.losses.network(clip=1.0),
    batches=li.FixedSize(records=1000, batch_size=10),
    step_size=0.02,
    noise=li.OnIterate(std=1.0),
    steps=2000,
    weight_decay=0.5,
    domain=li.Unbounded(dimension=5),
)
WINDOW = run_with(li.FixedSize(records=1000, batch_size=10), 4000, noise=li.OnMeanGradient(std=1.0), weight_decay=0.1)
CYCLIC = li.Cyclic(records=40, batch_size=10)
REPORTS = {
    "full": li.account(run_with(li.FullBatch(records=100), 20), DELTA),
    "cyclic": li.account(run_with(CYCLIC, 20), DELTA),
    "bounded": li.account(run_with(CYCLIC, 40, domain=li.Ball(radius=0.02)), DELTA),
    "schedule": li.account(run_with(CYCLIC, 8, step_size=np.linspace(0.1, 0.6, 8)), DELTA),
    "periodic": li.account(run_with(CYCLIC, 12, step_size=[0.5, 0.4, 0.3, 0.2] * 3), DELTA),
    "shuffled": li.account(run_with(li.Shuffled(records=40, batch_size=10, each_epoch=False), 12), DELTA),
    "reshuffled": li.account(run_with(li.Shuffled(records=40, batch_size=10), 12), DELTA),
    "released": li.account(run_with(CYCLIC, 12), DELTA, releases=[5, 8]),
    "window": li.account(WINDOW, DELTA),
    "regularised": li.account(REGULARISED, DELTA),
}


@pytest.mark.parametrize("name", REPORTS)
def test_certificates_are_accepted(name: str) -> None:
    report = REPORTS[name]
    verdict = li.verify(json.dumps(report.certificate))
    assert verdict.accepted, verdict
    assert verdict.epsilon == pytest.approx(report.epsilon, rel=1e-10)
    assert verdict.epsilon >= report.epsilon
    assert str(verdict).startswith("accepted: epsilon = ")
    assert li.verify(report.certificate, report.run).accepted  # type: ignore[arg-type]


def numbers_in(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in a certificate a number stands."""
    if isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from numbers_in(value, (*path, key))
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield path


def changed(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    twin = copy.deepcopy(content)
    place = twin
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return twin


CHANGES = (lambda x: x * 0.9, lambda x: x * 1.1, lambda x: x * (1 - 1e-6), lambda x: x * (1 + 1e-6), lambda x: x + 1,
           lambda x: x - 1, lambda x: 0, lambda x: -x, lambda x: 2 * x, lambda x: math.nan, lambda x: math.inf,
           lambda x: None, lambda x: "x", lambda x: [], lambda x: 10**30)  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_no_number_can_be_changed_to_the_claimants_advantage(name: str) -> None:
    """Any number, changed in any way: rejected, or the claim is true all the same."""
    certificate = REPORTS[name].certificate
    assert certificate is not None
    true_epsilon = REPORTS[name].epsilon
    rejected = 0
    for path in numbers_in(certificate):
        original = certificate
        for key in path:
            original = original[key]
        for change in CHANGES:
            value = change(original)
            if value == original:
                continue
            mutant = changed(certificate, path, value)
            verdict = li.verify(mutant)
            rejected += not verdict.accepted
            if verdict.accepted:
                assert _still_true(path, verdict, true_epsilon, mutant), (path, original, value)
    assert rejected > 30


def _still_true(path: tuple[Any, ...], verdict: li.Verdict, true_epsilon: float, mutant: dict[str, Any]) -> bool:
    """A weaker claim, another schedule or rung that proves it, or another run, of which it is true as well."""
    if path[0] == "run":
        about = run_from_dict(mutant["run"])
        named = next((theorem for theorem in li.CATALOGUE if theorem.name == mutant.get("theorem")), None)
        found = named.apply(about.process) if named else li.account(about, verdict.delta, verdict.releases).best
        return found.epsilon(verdict.delta) <= verdict.epsilon * (1 + 1e-9)  # type: ignore[union-attr]
    if path[0] == "claim" and path[1] == "delta":
        return verdict.delta >= DELTA
    if path[0] in ("claim", "schedules", "rung"):
        return verdict.epsilon >= true_epsilon * (1 - 1e-9)
    return False


def test_the_claim_cannot_be_lowered_at_all() -> None:
    certificate = REPORTS["cyclic"].certificate
    assert certificate is not None
    lower = changed(certificate, ("claim", "epsilon"), certificate["claim"]["epsilon"] * (1 - 1e-10))
    verdict = li.verify(lower)
    assert not verdict.accepted
    assert "but proves" in str(verdict)


def test_it_must_be_about_the_run_that_was_asked_for() -> None:
    verdict = li.verify(REPORTS["cyclic"].certificate, run_with(CYCLIC, 24))  # type: ignore[arg-type]
    assert not verdict.accepted
    assert verdict.reason == "it is about another run"


def test_an_average_may_be_taken_only_over_a_random_order() -> None:
    run = run_with(CYCLIC, 20)
    proof = shift_proof(run.process, averaged=True)
    averaged = certificate_of(run, run.process, li.Guarantee(SHIFT_ENGINE, proof.notion, proof), DELTA)
    assert averaged is not None
    assert averaged["claim"]["epsilon"] < li.account(run, DELTA).epsilon
    assert "it is about shuffled batches" in li.verify(averaged).reason


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("lengths", {"runs": [[1, 10**17]]}),
        ("lengths", {"runs": [[1, 2 * 10**9]]}),
        ("lengths", {"pattern": [1, 2], "length": 10**8}),
        ("levels", {"pattern": {"pattern": [1.0], "length": 10**8}, "length": 10**8}),
    ],
)
def test_a_small_file_cannot_ask_for_a_large_list(entry: str, value: object) -> None:
    certificate = REPORTS["full"].certificate
    assert certificate is not None
    certificate["schedules"][0]["parts"][0][entry] = value
    assert "entries" in li.verify(certificate).reason


def test_depth_and_absence_are_rejected() -> None:
    assert not li.verify("[" * 200_000).accepted
    assert "there is no certificate" in str(li.verify(None))


def test_releases_are_part_of_the_verdict() -> None:
    verdict = li.verify(REPORTS["released"].certificate)
    assert verdict.releases == (5, 8)
    assert str(verdict).endswith("the last of 12 iterates and those after 5, 8 steps released")


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "null", "{}", '{"format": 1, "claim": {}}', '"x"'])
def test_nonsense_is_rejected_and_never_raises(content: str) -> None:
    assert not li.verify(content).accepted


def test_missing_entries_are_rejected() -> None:
    for name in ("cyclic", "bounded"):
        certificate = REPORTS[name].certificate
        assert certificate is not None
        for section in certificate:
            twin = copy.deepcopy(certificate)
            del twin[section]
            assert not li.verify(twin).accepted
    without = changed(REPORTS["cyclic"].certificate, ("schedules",), [])
    assert "no schedule for place" in li.verify(without).reason


def test_periodic_processes_are_short() -> None:
    certificate = REPORTS["periodic"].certificate
    assert certificate is not None
    assert certificate["process"]["sensitivity"]["length"] == 12
    assert len(certificate["process"]["sensitivity"]["pattern"]) == 4
    assert certificate["process"]["noise"]["length"] == 12
    long = li.account(run_with(li.FullBatch(records=100), 1_000_000), DELTA).certificate
    assert len(json.dumps(long)) < 2000
