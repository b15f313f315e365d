"""What the owner of a run has to guarantee is said in the report and in the certificate, in the same words."""

from __future__ import annotations

import copy
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate import cli
from lastiterate.facts import fact
from when_asked import WhenAsked

DELTA = 1e-5
START = "The first iterate does not depend on the data, and lies in the domain."
FLAT = "Each record's gradient is clipped to norm"
PER_CLASS = "clipped class by class"


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


def said(name: str) -> str:
    return " ".join(REPORTS[name].assumptions)


SAME = "A record has the same features and target every time it is used"


def test_records_stay_the_same_where_noise_before_their_turns_counts() -> None:
    assert all(SAME in said(name) for name in ("logistic", "clipped", "one-vs-rest", "hinges", "softmax", "pull"))
    assert not any(
        SAME in said(name) for name in ("convex", "network")
    )  # a push may see all parameters, or nothing is known
    logistic = LOSSES["logistic"]
    for changes in ({"batches": li.FullBatch(40)}, {"domain": li.Ball(radius=1.0)}, {"batches": li.Poisson(40, 0.25)}):
        assert SAME not in " ".join(li.account(a_run(logistic, **changes), DELTA).assumptions)


@pytest.mark.parametrize("name", LOSSES)
def test_every_report_and_certificate_says_where_it_starts(name: str) -> None:
    report = REPORTS[name]
    assert START in report.assumptions
    assert START in str(report)
    assert report.certificate is not None
    assert report.certificate["assumptions"] == list(report.assumptions)
    assert all(sentence.endswith(".") for sentence in report.assumptions)


def test_one_against_the_rest_is_clipped_class_by_class() -> None:
    """One clip of the whole gradient is not that of a convex function: see the next test."""
    assert "in each of the 4 one-against-the-rest problems to norm 0.5/√4" in said("one-vs-rest")
    assert "in each of the 3 one-against-the-rest problems to norm 0.5/√3" in said("hinges")
    assert FLAT not in said("one-vs-rest")
    assert FLAT in said("clipped")
    assert PER_CLASS not in said("clipped")
    clipped_by_the_noise = li.losses.logistic(feature_norm=1.0, classes=4)
    run = a_run(clipped_by_the_noise, noise=li.OnGradientSum(multiplier=1.0, clip=0.5))
    assert PER_CLASS in " ".join(li.account(run, DELTA).assumptions)


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
    assert "softmax loss with its pull limit applied" in said("pull")
    assert "at most 0.7 together and 0.175 each" in said("pull")
    assert "pull" not in said("softmax")


def test_convexity_of_a_loss_that_only_its_owner_knows() -> None:
    assert "Each record's loss is convex: this is assumed, not checked." in REPORTS["convex"].assumptions
    assert "Each record's loss is strongly convex with modulus 0.25" in said("strongly")
    assert "assumed, not checked" not in said("weakly")
    clipped = li.losses.general(smoothness=1.0, strong_convexity=0.5, clip=1.0)
    assert "modulus 0.5, before clipping: this" in " ".join(li.account(a_run(clipped), DELTA).assumptions)


@pytest.mark.parametrize(
    ("modulus", "shape"), [({}, "convex"), ({"strong_convexity": 0.5}, "strongly convex with modulus 0.5")]
)
def test_langevin_says_what_it_takes_for_granted(modulus: dict[str, float], shape: str) -> None:
    sample = li.mechanisms.langevin(
        lambda x: x, np.zeros(2), lipschitz=1.0, step_size=0.1, steps=5, smoothness=1.0, **modulus
    )
    assert f"The potential is {shape}: this is assumed, not checked." in sample.report(DELTA).assumptions


@pytest.mark.parametrize("name", LOSSES)
def test_a_verdict_returns_them_and_rejects_others(name: str) -> None:
    report = REPORTS[name]
    assert li.verify(report.certificate).assumptions == report.assumptions
    count, first = len(report.assumptions), report.assumptions[0]
    for change, which in (
        (lambda old: old[:-1], f"it has {count - 1} of them, and needs {count}"),
        (lambda old: [*old, "And so on."], f"it has {count + 1} of them, and needs {count}"),
        (lambda old: old[::-1], f"no. 1 should read “{first}”"),
        (lambda old: None, f"it has 0 of them, and needs {count}"),
    ):
        twin: Any = copy.deepcopy(report.certificate)
        twin["assumptions"] = change(twin["assumptions"])
        verdict = li.verify(twin)
        assert verdict.reason == f"its assumptions are not those of its run: {which}"
        assert verdict.assumptions == ()


def test_an_older_certificate_is_not_taken_for_one() -> None:
    twin: Any = copy.deepcopy(REPORTS["logistic"].certificate)
    twin["format"] = "lastiterate certificate 2"
    del twin["assumptions"]
    assert "it is not a lastiterate certificate 3" in li.verify(twin).reason


def test_the_command_line_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = REPORTS["one-vs-rest"]
    report.save_certificate(tmp_path / "certificate.json")
    assert cli.main(["verify", str(tmp_path / "certificate.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assumptions"] == list(report.assumptions)
    assert cli.main(["verify", str(tmp_path / "certificate.json")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_nonlinear_contraction_says_what_it_checks() -> None:
    theorem = next(one for one in li.CATALOGUE if one.name == "nonlinear-contraction")
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
