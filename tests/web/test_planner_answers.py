"""What the page is told: parts of an answer, files, and in one sentence what is wrong and with which field."""

from __future__ import annotations

import json
import math
import random
import tomllib
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from planner_address import Ask

import lastiterate as li
from lastiterate.cli import main
from lastiterate.runs.files import run_from_dict
from lastiterate.runs.kinds import SECTIONS
from lastiterate.web.form import ARGUMENTS, KINDS, OFFERED, as_form, form, run_to_python
from lastiterate.web.serve import example
from lastiterate.web.worker import work

MNIST = Path(__file__).parents[2] / "examples" / "mnist.toml"
Table = dict[str, Any]


def test_an_account_comes_in_parts_the_claim_first(ask: Ask, run: Table) -> None:
    status, parts = ask(ask="account", run=run, delta=1e-5)
    assert status == 200
    assert [one["part"] for one in parts] == [
        "answer",
        "lower",
        "attack",
        "report",
        "alternatives",
        "curves",
        "curves",
        "curves",
    ]
    claim, lower, attack, report, _, ours, papers, lowers = parts
    assert claim["epsilon"] == report["epsilon"] == li.account(example(), 1e-5).epsilon
    assert ours["ours"][-1] == pytest.approx(claim["epsilon"], rel=1e-9)
    assert ours["composition"][-1] == claim["composition"]
    assert ours["along"][-1] == 50
    assert ours["unit"] == "epochs"
    assert lowers["lower"][-1] == lower["epsilon"] <= claim["epsilon"] <= papers["papers"][-1] <= claim["composition"]
    assert all(one <= other for one, other in zip(ours["ours"], ours["composition"], strict=True))
    assert attack["detection_rates"][-1] == pytest.approx(1)
    assert all(
        rate <= found + 1e-12
        for rate, found in zip(attack["false_positive_rates"], attack["detection_rates"], strict=True)
    )


def test_parts_can_be_asked_for_by_name(ask: Ask, run: Table) -> None:
    _, parts = ask(ask="account", run=run, delta=1e-5, parts=["lower"])
    assert [one["part"] for one in parts] == ["lower"]


def test_the_sentences_say_what_the_numbers_are(ask: Ask, run: Table) -> None:
    _, (claim, lower, attack) = ask(ask="account", run=run, delta=1e-5, parts=["answer", "lower", "attack"])
    assert claim["sentences"][0] == (
        f"Releasing the last iterate is (ε, δ)-differentially private with ε = {claim['shown']} and δ = 1e-05, for any two "
        "data sets that differ in one record, replaced by another."
    )
    for std in (0.0021, 0.0023, 0.0025, 0.0027, 0.0029):  # to the nearest number, some would be less
        noise = {"kind": "on_mean_gradient", "std": std}
        _, [other] = ask(ask="account", run={**run, "noise": noise}, delta=1e-5, parts=["answer"])
        assert other["epsilon"] <= float(other["shown"]) <= 1.001 * other["epsilon"]
    assert "at most" in attack["sentence"]
    assert "times too large" in lower["sentence"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"step_size": -1}, "step_size"),
        ({"step_size": "<img src=x onerror=alert(1)>"}, "step_size"),
        ({"steps": {"epochs": 0}}, "epochs"),
        ({"noise": {"kind": "on_mean_gradient", "std": 0}}, "std"),
        ({"batches": {"kind": "cyclic", "records": 10, "batch_size": 3}}, "batch_size"),
        ({"batches": {"kind": "poisson", "records": 10, "rate": 2}}, "rate"),
        ({"adjacency": "add_or_remove_one"}, "adjacency"),
        ({"loss": {"kind": "logistic", "feature_norm": -1}}, "feature_norm"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_field(ask: Ask, run: Table, changes: Table, field: str) -> None:
    status, [answer] = ask(ask="account", run={**run, **changes}, delta=1e-5)
    assert (status, answer["field"]) == (422, field)
    assert "\n" not in answer["error"]


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({"delta": 0}, "delta"),
        ({"delta": None}, "delta"),
        ({"delta": "1e-5"}, "delta"),
        ({"parts": 3}, "parts"),
        ({"parts": ["answer", "all"]}, "parts"),
        ({"run": None}, "run"),
        ({"run": []}, None),
        ({"ask": "everything"}, "ask"),
        ({"ask": ["account"]}, "ask"),
        ({"ask": "export", "form": "pdf"}, "form"),
        ({"ask": "calibrate", "free": "noise", "epsilon": -1}, "epsilon"),
        ({"ask": "calibrate", "free": "all", "epsilon": 1}, "free"),
        ({"ask": "plan", "features": 0, "epsilon": 1, "passes": 9}, "features"),
        ({"ask": "plan", "features": 5, "epsilon": 1}, "passes"),
        ({"ask": "plan", "run": {"loss": 3}, "features": 5, "epsilon": 1, "passes": 9}, "batches"),
        ({"ask": "open", "name": 3, "text": ""}, "file"),
        ({"ask": "open", "name": "run.toml", "text": "step_size = "}, None),
    ],
)
def test_bad_questions_are_refused(ask: Ask, run: Table, question: Table, field: str | None) -> None:
    status, [answer] = ask(**{"ask": "account", "run": run, "delta": 1e-5, **question})
    assert (status, answer["field"]) == (422, field)


def test_calibrating_meets_the_target(ask: Ask, run: Table) -> None:
    status, [found] = ask(ask="calibrate", run=run, delta=1e-5, epsilon=1.0, free="noise")
    expected = li.calibrate(example(), epsilon=1.0, delta=1e-5)
    assert status == 200
    assert run_from_dict(found["run"]) == expected
    assert found["sentence"].startswith("To meet ε = 1: standard deviation of the noise 0.00")
    _, [found] = ask(ask="calibrate", run=run, delta=1e-5, epsilon=1.9, free="steps")
    assert 1 <= found["run"]["steps"]["epochs"] < 50
    assert found["sentence"].endswith(", instead of 50.")
    _, [found] = ask(ask="calibrate", run=run, delta=1e-5, epsilon=1.5, free="batch_size")
    assert found["run"]["batches"]["batch_size"] > 1_500
    assert found["run"]["steps"] == {"epochs": 50}
    _, [found] = ask(ask="calibrate", run=run, delta=1e-5, epsilon=2.17, free="step_size")
    assert found["run"]["step_size"] < 0.5
    status, [refused] = ask(ask="calibrate", run=run, delta=1e-5, epsilon=2.0, free="step_size")
    assert "Calibrate the noise instead." in refused["error"]


def test_a_file_is_opened_as_the_command_line_reads_it(ask: Ask) -> None:
    status, [found] = ask(ask="open", name="mnist.toml", text=MNIST.read_text(encoding="utf-8"))
    assert status == 200
    assert run_from_dict(found["run"]) == li.read_run(MNIST)
    assert found["run"]["steps"] == {"epochs": 50}


def test_every_export_says_the_same_run(ask: Ask, run: Table, tmp_path: Path) -> None:
    files = {}
    for kind in ("toml", "python", "certificate", "page", "text", "json"):
        status, [file] = ask(ask="export", run=run, delta=1e-5, form=kind)
        assert status == 200
        files[file["name"]] = file["text"]
    assert run_from_dict(tomllib.loads(files["run.toml"])) == example()
    report = li.account(example(), 1e-5)
    assert files["report.txt"].startswith(f"{report.details()}\n")
    assert json.loads(files["report.json"])["report"]["epsilon"] == report.epsilon
    (tmp_path / "report.html").write_text(files["report.html"], encoding="utf-8")
    assert main(["verify", str(tmp_path / "report.html")]) == 0
    assert li.verify(json.loads(files["certificate.json"]), example()).accepted
    assert "li.epochs(50)" in files["run.py"]


@pytest.mark.parametrize("section", ["batches", "noise", "domain", "prox", "optimizer", "released", "loss"])
def test_the_python_of_every_kind_is_the_run(section: str) -> None:
    for kind in SECTIONS[section]:
        made = kind.example
        run = example()
        if section == "noise":
            run = replace(run, loss=li.losses.logistic(feature_norm=1.0))
        run = replace(run, **{section: made})
        names: Table = {}
        code = run_to_python(run, 1e-5).partition("report =")[0]
        exec(code, names)
        assert names["run"] == run


def test_the_python_of_schedules_and_of_what_rounding_adds() -> None:
    run = replace(example(), step_size=li.cosine(0.5, end=0.1), adjacency=li.ZERO_OUT, prior_mu=0.1, steps=30)
    run = replace(run, arithmetic=run.expected_arithmetic)
    names: Table = {}
    exec(run_to_python(run, 1e-5).partition("report =")[0], names)
    assert names["run"] == run


def test_every_kind_and_argument_of_the_form_has_its_words() -> None:
    for section in OFFERED:
        for kind in form()[section]:
            assert kind["kind"] in KINDS
            assert [one["name"] for one in kind["arguments"] if one["name"] not in ARGUMENTS] == []
            assert all(one["unit"] for one in kind["arguments"])


def test_epochs_stay_epochs_and_other_lengths_stay_steps() -> None:
    assert as_form(example())["steps"] == {"epochs": 50}
    assert as_form(replace(example(), steps=7))["steps"] == 7


def test_a_bound_that_protects_nobody_is_said(ask: Ask, run: Table) -> None:
    changes = {"noise": {"kind": "on_mean_gradient", "std": 1e-9}}
    status, [claim, attack] = ask(ask="account", run={**run, **changes}, delta=1e-5, parts=["answer", "attack"])
    assert status == 200
    assert claim["epsilon"] is None or claim["epsilon"] > 1e3
    assert attack["sentence"].endswith("at most 100% of the time. This is hardly any protection for a single record.")


ODD = (
    None,
    True,
    "",
    "x",
    -1,
    0,
    1e308,
    5e-324,
    2**70,
    math.nan,
    math.inf,
    [],
    [1],
    {},
    {"kind": "cosine"},
    "\x00",
    "９",
)


def test_whatever_is_asked_is_answered_or_refused(run: Table) -> None:
    """One entry of a question is replaced by something odd; nothing breaks inside."""
    source = random.Random(0)
    small = {**run, "steps": 4, "batches": {"kind": "cyclic", "records": 40, "batch_size": 10}}
    for _ in range(120):
        asked = {"ask": source.choice(["account", "export"]), "run": small, "delta": 1e-5, "form": "python"}
        question = json.loads(json.dumps({**asked, "parts": ["answer"]}))
        parts = [question, question["run"], *(question["run"][name] for name in ("loss", "batches", "noise"))]
        section = source.choice(parts)
        name = source.choice([name for name in sorted(section) if name != "steps"])  # which may take for ever
        section[name] = source.choice(ODD)
        said: list[Table] = []
        work(json.dumps(question), said.append, Event())
        assert said
        assert not [one for one in said if one.get("broken")], question
