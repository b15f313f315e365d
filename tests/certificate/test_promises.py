"""What the owner of a run has to guarantee is in the report and in the certificate, as the same facts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate import cli
from lastiterate.facts import KINDS, Basis, Fact, fact, fact_from_json, facts_from_json, facts_to_json
from lastiterate.runs import kinds
from raising import raises
from when_asked import WhenAsked

DELTA = 1e-5
START = fact("start_independent", beforehand=False)
SAME = fact("record_unchanged")


def a_run(loss: li.Loss, **changes: Any) -> li.Run:
    values: dict[str, Any] = {
        "batches": li.Cyclic(40, 10),
        "step_size": 0.5,
        "noise": li.OnMeanGradient(0.5),
        "steps": 20,
    }
    return li.Run(loss, **{**values, **changes})


LOSSES = {
    "logistic": li.losses.logistic(feature_norm=1.0),
    "clipped": li.losses.logistic(feature_norm=1.0, clip=0.5),
    "one-vs-rest": li.losses.logistic(feature_norm=1.0, clip=0.5, classes=4),
    "hinges": li.losses.smooth_hinge(feature_norm=1.0, clip=0.5, classes=3),
    "softmax": li.losses.softmax(feature_norm=1.0, classes=10),
    "pull": li.losses.softmax(feature_norm=1.0, classes=10, pull=0.7),
    "convex": li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.0),
    "strongly": li.losses.general(smoothness=1.0, strong_convexity=0.25, gradient_sensitivity=1.0),
    "weakly": li.losses.general(smoothness=1.0, weak_convexity=0.25, gradient_sensitivity=1.0),
    "network": li.losses.network(clip=1.0),
}
REPORTS = WhenAsked({name: partial(li.account, a_run(loss), DELTA) for name, loss in LOSSES.items()})


def assumed(name: str) -> tuple[Fact, ...]:
    return REPORTS[name].assumptions


def coded(name: str, code: str) -> list[Fact]:
    return [one for one in assumed(name) if one.code == code]


def test_records_stay_the_same_where_noise_before_their_turns_counts() -> None:
    assert all(SAME in assumed(name) for name in ("logistic", "clipped", "one-vs-rest", "hinges", "softmax", "pull"))
    for name in ("convex", "network"):  # a push may see all parameters, or nothing is known
        assert SAME not in assumed(name)
    logistic = LOSSES["logistic"]
    for changes in ({"batches": li.FullBatch(40)}, {"domain": li.Ball(radius=1.0)}, {"batches": li.Poisson(40, 0.25)}):
        assert SAME not in li.account(a_run(logistic, **changes), DELTA).assumptions


@pytest.mark.parametrize("name", LOSSES)
def test_every_report_and_certificate_says_where_it_starts(name: str) -> None:
    report = REPORTS[name]
    assert START in report.assumptions == report.promises  # nobody has executed anything
    assert str(START) in " ".join(report.details().split())
    assert report.certificate["assumptions"] == facts_to_json(report.assumptions)
    assert facts_from_json(json.loads(json.dumps(report.certificate["assumptions"]))) == report.assumptions
    assert all(str(one).endswith(".") for one in report.assumptions)
    assert len({one.code for one in report.assumptions}) == len(report.assumptions)


def test_one_against_the_rest_is_clipped_class_by_class() -> None:
    """One clip of the whole gradient is not that of a convex function: see the next test."""
    clip = {"least": 0.5, "most": 0.5}
    assert coded("one-vs-rest", "clipped") == [fact("clipped", **clip, per="class", classes=4)]
    assert coded("hinges", "clipped") == [fact("clipped", **clip, per="class", classes=3)]
    assert coded("clipped", "clipped") == [fact("clipped", **clip, per="record", classes=0)]
    assert coded("logistic", "clipped") == []
    assert "in each of the 4 one-against-the-rest problems to norm 0.5/√4" in str(coded("one-vs-rest", "clipped")[0])
    assert "Each record's gradient is clipped to norm" in str(coded("clipped", "clipped")[0])
    clipped_by_the_noise = li.losses.logistic(feature_norm=1.0, classes=4)
    run = a_run(clipped_by_the_noise, noise=li.OnGradientSum(multiplier=1.0, clip=0.5))
    assert fact("clipped", **clip, per="class", classes=4) in li.account(run, DELTA).assumptions


def test_one_clip_of_all_classes_moves_iterates_apart() -> None:
    """Two classes, a clip of 0.5, a step of 2 (the losses are 1/4-smooth): not monotone, though it is so class by class."""
    sides, z, clip, size = np.array([1.0, -1.0]), np.array([-3.0, 0.5]), 0.5, 2.0

    def slopes(scores: np.ndarray) -> np.ndarray:
        return -sides / (1 + np.exp(sides * scores))

    def together(scores: np.ndarray) -> np.ndarray:
        found = slopes(scores)
        return found * min(1.0, clip / float(np.linalg.norm(found)))

    def class_by_class(scores: np.ndarray) -> np.ndarray:
        return np.clip(slopes(scores), -clip / 2**0.5, clip / 2**0.5)

    angles = np.linspace(0, 2 * np.pi, 60)
    moves = 0.1 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert min(float((together(z + d) - together(z)) @ d) for d in moves) < -1e-5
    assert min(float((class_by_class(z + d) - class_by_class(z)) @ d) for d in moves) >= 0
    apart = [np.linalg.norm(d - size * (together(z + d) - together(z))) / np.linalg.norm(d) for d in moves]
    assert max(apart) > 1.001


def test_a_pull_has_to_be_applied() -> None:
    (pull,) = coded("pull", "pull_limit")
    assert dict(pull.values) == {"together": 0.7, "each": pytest.approx(0.175)}
    assert "softmax loss with its pull limit applied" in str(pull)
    assert "at most 0.7 together and 0.175 each" in str(pull)
    assert coded("softmax", "pull_limit") == []


def test_convexity_of_a_loss_that_only_its_owner_knows() -> None:
    assert coded("convex", "convex") == [fact("convex", modulus=0.0, of="record", before_clipping=False)]
    assert coded("strongly", "convex") == [fact("convex", modulus=0.25, of="record", before_clipping=False)]
    assert coded("weakly", "convex") == []
    assert "is convex: this is assumed, not checked." in str(coded("convex", "convex")[0])
    clipped = li.losses.general(smoothness=1.0, strong_convexity=0.5, clip=1.0)
    before = fact("convex", modulus=0.5, of="record", before_clipping=True)
    assert before in li.account(a_run(clipped), DELTA).assumptions
    assert "modulus 0.5, before clipping: this" in str(before)


@pytest.mark.parametrize(("modulus", "shape"), [(0.0, "convex"), (0.5, "strongly convex with modulus 0.5")])
def test_langevin_says_what_it_takes_for_granted(modulus: float, shape: str) -> None:
    sample = li.mechanisms.langevin(
        lambda x: x, np.zeros(2), lipschitz=1.0, step_size=0.1, steps=5, smoothness=1.0, strong_convexity=modulus
    )
    convex = fact("convex", modulus=modulus, of="potential", before_clipping=False)
    assert convex in sample.report(DELTA).promises
    assert str(convex) == f"The potential is {shape}: this is assumed, not checked."


@pytest.mark.parametrize("name", LOSSES)
def test_a_verdict_returns_them_and_rejects_others(name: str) -> None:
    report = REPORTS[name]
    assert li.verify(report.certificate).assumptions == report.assumptions
    needed = report.assumptions
    for change, place in (
        (lambda old: old[:-1], len(needed)),
        (lambda old: old[1:], 1),
        (lambda old: old[::-1], 1),
        (lambda old: [*old[:-2], old[-1], old[-2]], len(needed) - 1),
        (lambda old: [MORE.to_dict(), *old], 1),  # more is accepted at the end
        (lambda old: [], 1),
    ):
        verdict = li.verify(with_assumptions(report, change))
        reason = f"its assumptions are not those of its run: no. {place} must be {needed[place - 1]!r}"
        assert (verdict.reason, verdict.assumptions) == (reason, ())
    for nonsense in (None, "And so on.", {}, 3, [*report.certificate["assumptions"], "And so on."]):
        verdict = li.verify({**report.certificate, "assumptions": nonsense})
        assert not verdict.accepted
        assert verdict.reason.startswith("it is not a certificate: ")


MORE = fact("durations_tell_nothing")


def with_assumptions(report: li.results.Report, change: Callable[[list[dict[str, Any]]], Any]) -> dict[str, Any]:
    certificate = report.certificate
    return {**certificate, "assumptions": change(certificate["assumptions"])}


@pytest.mark.parametrize("name", LOSSES)
def test_no_value_of_an_assumption_can_be_another_one(name: str) -> None:
    report, tried = REPORTS[name], 0
    for place, one in enumerate(report.assumptions):
        for entry, value in one.values:
            for other in others_than(value):
                tried += 1
                twin = report.certificate
                assert entry in twin["assumptions"][place]
                twin["assumptions"][place][entry] = other
                assert not li.verify(twin).accepted, (one, entry, other)
            twin = report.certificate
            del twin["assumptions"][place][entry]
            assert f"{one.code} must have the values" in li.verify(twin).reason
        twin = report.certificate
        twin["assumptions"][place]["text"] = "as in the paper"
        assert f"{one.code} must have the values" in li.verify(twin).reason
    assert tried > 10


def others_than(value: Any) -> list[Any]:
    """Larger, smaller, of another type, none."""
    if isinstance(value, bool):
        return [not value, int(value), str(value), None]
    if isinstance(value, float | int):
        return [
            value + 1e-9,
            value * (1 - 1e-9) - 1e-12,
            -1.0 - value,
            math.nan,
            math.inf,
            str(value),
            value == 1,
            None,
        ]
    if isinstance(value, str):
        return [value.upper(), "record" if value != "record" else "potential", "", 1, None, [value]]
    return [[3], "x", True, 0.5]


@pytest.mark.parametrize("name", LOSSES)
def test_to_assume_more_is_to_claim_less(name: str) -> None:
    report = REPORTS[name]
    more = with_assumptions(report, lambda old: [*old, MORE.to_dict(), fact("noise").to_dict()])
    assert li.verify(json.dumps(more)).assumptions == (*report.assumptions, MORE, fact("noise"))
    assumed = replace(report, also_assumed=(MORE,))
    assert assumed.assumptions == (*report.assumptions, MORE)
    assert li.verify(assumed.certificate).assumptions == assumed.assumptions
    for nonsense in ({"code": "and_so_on"}, {}, "noise", {"code": ["noise"]}, {"code": "exact_arithmetic"}):
        verdict = li.verify(with_assumptions(report, lambda old, last=nonsense: [*old, last]))
        assert not verdict.accepted
        assert verdict.reason.startswith("it is not a certificate: ")


STRENGTH = (Basis.PROMISED, Basis.CHECKED, Basis.ENFORCED)


@pytest.mark.parametrize("name", LOSSES)
def test_nobody_stands_for_more_than_can_be_known(name: str) -> None:
    """A basis up to the strongest of its kind is the statement of whoever executed the run; a stronger one is none."""
    report = REPORTS[name]
    for place, one in enumerate(report.assumptions):
        for basis in Basis:
            twin = report.certificate
            twin["assumptions"][place]["basis"] = basis.value
            verdict = li.verify(twin)
            if STRENGTH.index(basis) <= STRENGTH.index(KINDS[one.code].most):
                assert verdict.accepted, verdict
                assert verdict.assumptions[place] == one.on(basis)
            else:
                assert verdict.reason == f"it is not a certificate: {one.code} cannot be {basis.value}."
        for nonsense in ("proved", "", None, 1, "PROMISED", ["promised"]):
            twin = report.certificate
            twin["assumptions"][place]["basis"] = nonsense
            assert not li.verify(twin).accepted


def test_every_kind_of_batches_has_a_sentence_of_its_own() -> None:
    said = {str(fact("batches", kind=kind.example.kind)) for kind in kinds.BATCHES}
    assert len(said) == len(kinds.BATCHES)
    assert not [one for one in said if "of the kind" in one]


def test_the_strongest_basis_of_every_kind_is_read_and_a_stronger_one_is_not() -> None:
    for code, kind in KINDS.items():
        one = fact(code, **kind.values)
        for basis in Basis:
            content = json.loads(json.dumps(one.on(basis).to_dict()))
            assert content == one.on(basis).to_dict()
            if STRENGTH.index(basis) <= STRENGTH.index(kind.most):
                assert fact_from_json(content) == one.on(basis)
                assert fact_from_json(content).stated == one
            else:
                with raises("fact_basis", "facts", kind=li.errors.InvalidInput, of=code, basis=basis.value):
                    fact_from_json(content)


@pytest.mark.parametrize("format_", ["lastiterate certificate 2", "lastiterate certificate 3", "", None, 1])
def test_a_certificate_of_another_format_is_not_taken_for_one(format_: Any) -> None:
    assert REPORTS["logistic"].certificate["format"] == "lastiterate certificate 1"
    verdict = li.verify({**REPORTS["logistic"].certificate, "format": format_})
    assert verdict.reason == "it is not a lastiterate certificate 1. Make the certificate again with this version"


def test_the_command_line_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = REPORTS["one-vs-rest"]
    report.save_certificate(tmp_path / "certificate.json")
    assert cli.main(["verify", str(tmp_path / "certificate.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assumptions"] == facts_to_json(report.assumptions)
    assert cli.main(["verify", str(tmp_path / "certificate.json")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_nonlinear_contraction_says_what_it_checks() -> None:
    theorem = next(one for one in li.theorems.ALL if one.name == "nonlinear-contraction")
    statements = " ".join(one.statement for one in theorem.assumptions)
    assert "within 30 times the noise, because gradients are bounded or the Lipschitz constant is known" in statements
    ball = li.Ball(radius=1.0)
    far = a_run(LOSSES["network"], batches=li.FixedSize(40, 10), noise=li.OnIterate(0.01), domain=ball)
    (reason,) = theorem.apply(far.process).reasons  # type: ignore[union-attr]
    assert (reason.code, dict(reason.values)["at_most"]) == ("iterates_too_far_apart", 30.0)
    assert dict(reason.values)["times_noise"] > 30
    unknown = li.losses.general(gradient_sensitivity=1.0)
    run = a_run(unknown, batches=li.FixedSize(40, 10), noise=li.OnIterate(1.0), domain=ball)
    (reason,) = theorem.apply(run.process).reasons  # type: ignore[union-attr]
    assert reason == fact("neither_clipped_nor_smooth")
