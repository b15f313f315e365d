"""`lastiterate plan`: what `li.plan` says, from a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.cli import main
from refusing import refused

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
    ("words", "code", "field", "got"),
    [
        ("--width 3", "option_of_other_loss", "width", None),
        ("--delta 2", "must_be", "delta", "2"),
        ("--feature-norm 1e-300", "must_be", "feature_norm", "1e-300"),
        ("--feature-norm 1e200", "must_be", "feature_norm", "1e+200"),
    ],
)
def test_bad_input(words: str, code: str, field: str, got: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused([*WORDS.split(), *words.split()], capsys)
    assert (error.code, error.field, error.got) == (code, field, got)
    assert error.values.get("loss", "logistic") == "logistic"
