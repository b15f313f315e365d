"""`lastiterate plan`: what `li.plan` says, from a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.cli import main

WORDS = "plan --records 2000 --features 10 --epsilon 2 --passes 5"


def test_the_table_and_the_run_that_it_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written, plot = tmp_path / "plan.toml", tmp_path / "plan.png"
    assert main([*WORDS.split(), "--write", str(written), "--plot", str(plot)]) == 0
    loss = li.losses.logistic(feature_norm=1.0)
    plans = li.plan(loss=loss, records=2000, features=10, epsilon=2.0, delta=1e-5, passes=5)
    said = capsys.readouterr().out
    assert said.startswith(str(plans))
    assert f"lastiterate account {written}" in said
    assert li.read_run(written) == plans.best.run
    assert plot.stat().st_size > 10_000


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS.split(), "--json", "--adjacency", "zero-out", "--loss", "smooth_hinge", "--width", "0.5"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["adjacency"] == "zero_out"
    assert content["plans"][0]["run"]["loss"]["kind"] == "smooth_hinge"
    assert all(one["epsilon"] <= 2 for one in content["plans"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--width 3", "width is not a setting of the loss logistic. Remove it."),
        ("--delta 2", "delta must be"),
        ("--feature-norm 1e-300", "feature_norm must be"),
        ("--feature-norm 1e200", "feature_norm must be"),
    ],
)
def test_bad_input(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS.split(), *words.split()]) == 2
    assert message in capsys.readouterr().err
