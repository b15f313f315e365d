"""`lastiterate forget`: what `li.forget` says, from a shell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.cli import main
from refusing import refused


@pytest.fixture
def file(tmp_path: Path) -> str:
    run = li.Run(
        loss=li.losses.logistic(feature_norm=1.0, l2=0.1),
        batches=li.FullBatch(records=200),
        step_size=1.0,
        noise=li.OnMeanGradient(std=0.02),
        steps=40,
        adjacency=li.ZERO_OUT,
    )
    li.write_run(run, tmp_path / "run.toml")
    return str(tmp_path / "run.toml")


def test_the_plan_and_its_certificate(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = str(tmp_path / "forget.json")
    assert main(["forget", file, "--epsilon", "0.5", "--certificate", written]) == 0
    plan = li.forget(li.read_run(file), epsilon=0.5, delta=1e-5)
    said = capsys.readouterr().out
    assert said.startswith(str(plan))
    assert f"lastiterate verify {written}" in said
    assert main(["verify", written, "--run", file]) == 0
    assert "one record forgotten (left out)" in capsys.readouterr().out


def test_released_models_and_adaptive_requests(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = li.read_run(file)
    noisy, bounded = str(tmp_path / "noisy.toml"), str(tmp_path / "bounded.toml")
    li.write_run(run.with_noise(10.0), noisy)
    li.write_run(replace(run, domain=li.Ball(radius=1.0)), bounded)
    asked = ["--removals", "1", "1", "--epsilon", "1", "--json"]
    assert main(["forget", noisy, *asked, "--releases", "40", "--release-each"]) == 0
    assert json.loads(capsys.readouterr().out)["releases"] == [40]
    assert main(["forget", bounded, *asked, "--adaptive"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["adaptive"]
    assert content["requests"][0]["steps"] == content["requests"][1]["steps"] > 0


def test_requests_as_json(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forget", file, "--epsilon", "0.5", "--removals", "2", "1", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [one["removals"] for one in content["requests"]] == [2, 1]
    assert content["epsilon"] <= 0.5


@pytest.mark.parametrize(
    ("words", "field", "said"),
    [
        ("--epsilon 0.5 --removals 0", "removals", "removals must be"),
        ("--epsilon 0.5 --removals 201", "removals", "from 1 to 200 records"),
        ("--epsilon -1", "epsilon", "epsilon must be"),
        ("--epsilon 0.01 --most-steps 2", "epsilon", "Even 2 further steps leave epsilon"),
        ("--epsilon 0.5 --releases 40", "releases", "No number of further steps reaches epsilon = 0.5"),
        ("--epsilon 0.5 --adaptive", "domain", "domain must be bounded for adaptive requests"),
        ("--epsilon 0.5 --adaptive --release-each", "releases", "releases and release_each must be left out"),
    ],
)
def test_bad_input_is_one_sentence(
    file: str, words: str, field: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(["forget", file, *words.split()], capsys)
    assert error.field == field
    assert said in str(error)
