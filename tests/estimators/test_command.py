"""`lastiterate train`: a CSV file in, a private model out, one clear sentence on bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lastiterate.cli import main

SOURCE = np.random.default_rng(0)
FEATURES = SOURCE.normal(size=(1500, 3)) / 3
SCORES = FEATURES @ [2.0, -1.0, 0.5]
PRIVATE = ["--epsilon", "2", "--delta", "1e-5", "--feature-norm", "1.5"]


def written(path: Path, targets: object) -> str:
    lines = ["a,b,c,y", *(",".join(map(str, [*row, target])) for row, target in zip(FEATURES, targets, strict=True))]  # type: ignore[call-overload]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def sides(tmp_path: Path) -> str:
    return written(tmp_path / "sides.csv", np.where(SCORES > 0, "yes", "no"))


@pytest.mark.parametrize("model", ["logistic", "svc"])
def test_a_classifier(model: str, sides: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "model.json"
    public = written(tmp_path / "public.csv", np.where(SCORES > 0, "yes", "no"))
    options = ["--target", "y", "--classes", "no", "yes", "--model", model, "--test", public, "--write", str(out)]
    assert main(["train", sides, *options, *PRIVATE]) == 0
    printed = capsys.readouterr()
    assert "epsilon = 2 at delta = 1e-05" in printed.out
    assert "releasing every iterate: epsilon = " in printed.out
    assert "accuracy on" in printed.out
    content = json.loads(out.read_text())
    assert content["classes"] == ["no", "yes"]
    assert content["features"] == ["a", "b", "c"]
    assert content["private"] is True
    assert content["report"]["epsilon"] <= 2.0
    assert main(["verify", str(out)]) == 0
    scores = FEATURES @ np.array(content["coefficients"][0]) + content["intercept"][0]
    assert np.mean((scores > 0) == (SCORES > 0)) > 0.85
    assert content["score_on_test"] > 0.85


@pytest.mark.parametrize("model", ["huber", "ridge"])
def test_a_regression(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = written(tmp_path / "numbers.csv", SCORES)
    public = written(tmp_path / "public.csv", SCORES)
    options = ["--target", "y", "--model", model, "--target-bound", "3", "--test", public, "--json"]
    assert main(["train", data, *options, *PRIVATE]) == 0
    assert json.loads(capsys.readouterr().out)["score_on_test"] > 0.5


def test_a_column_of_numbers_is_not_taken_for_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", written(tmp_path / "numbers.csv", SCORES), "--target", "y", *PRIVATE]) == 2
    assert "1500 different values, too many for a classifier. Use --model ridge" in capsys.readouterr().err


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_the_adjacency_is_an_option(adjacency: str, sides: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--target", "y", "--classes", "no", "yes", "--adjacency", adjacency, "--json"]
    assert main(["train", sides, *options, *PRIVATE]) == 0
    report = json.loads(capsys.readouterr().out)["report"]
    assert report["unit"]["code"] == "neighbours"
    assert report["unit"]["adjacency"] == {"replace-one": "replace_one", "zero-out": "zero_out"}[adjacency]


def test_what_leaks_is_said(sides: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", sides, "--target", "y", "--epsilon", "1", "--seed", "3"]) == 0
    printed = capsys.readouterr()
    for said in ("classes was not given", "delta was not given", "feature_norm was not given", "Leave --seed out"):
        assert said in printed.err
    assert "DO NOT RELEASE" in printed.out
    assert "NOT ACCOUNTED FOR: feature_norm" in printed.out


def test_a_score_on_the_training_data_is_a_release(sides: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", sides, "--target", "y", "--test", sides, *PRIVATE]) == 2
    assert "would be another release" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ("a,b\n1,2\n", ["--target", "y"], "no column 'y'. It has a, b"),
        ("a,y\n", ["--target", "y"], "at least one record"),
        ("a,y\n1,2,3\n", ["--target", "y"], "line 2 must have 2 cells, one per column. Got 3."),
        ("a,y\nred,1\n", ["--target", "y"], "column a must hold numbers. Got 'red'"),
        ("a,y\n1,red\n", ["--target", "y", "--model", "huber"], "target column of a regression must hold numbers"),
        ("a,y\n1,p\n2,p\n", ["--target", "y", "--classes", "p"], "at least two labels"),
        ("a,y\n1,p\n2,q\n", ["--target", "y", "--classes", "p", "r"], "only labels in classes"),
        ("y\np\nq\n", ["--target", "y", "--classes", "p", "q"], "at least one feature column besides the target"),
        ("a,a,y\n1,2,p\n", ["--target", "y"], "a different name for each column"),
        ("y,a,y\np,2,q\n", ["--target", "y"], "a different name for each column"),
        ("a;y\n1;p\n", ["--target", "y"], "separated by commas"),
        ("a,y\n\n\n1_000,p\n", ["--target", "y"], "line 4: column a must hold numbers"),
        ("a,y\n1e300,p\n", ["--target", "y"], "line 2: column a must hold numbers"),
        ('a,y\n"1,p\n', ["--target", "y"], "is not CSV"),
        ("a,y\n1,nan\n", ["--target", "y", "--model", "ridge"], "Got 'nan'"),
        ("a,y\n1,p\n", ["--target", "y", "--target-bound", "1"], "--target-bound needs a regression"),
        ("a,y\n1,1\n", ["--target", "y", "--model", "huber", "--classes", "1", "2"], "--classes needs a classifier"),
        ("a,y\nnan,p\n2,q\n", ["--target", "y", "--classes", "p", "q"], "Got 'nan'"),
    ],
)
def test_bad_tables(
    content: str, options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(content)
    assert main(["train", str(path), *options, *PRIVATE]) == 2
    assert said in capsys.readouterr().err


def test_a_test_set_with_other_columns(sides: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.csv"
    other.write_text("b,a,c,y\n1,2,3,yes\n")
    options = ["--target", "y", "--classes", "no", "yes", "--test", str(other)]
    assert main(["train", sides, *options, *PRIVATE]) == 2
    assert "same order" in capsys.readouterr().err


def test_warnings_name_the_options_of_the_command_line(sides: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--target", "y", "--epsilon", "2", "--seed", "1", "--adjacency", "add-or-remove-one"]
    assert main(["train", sides, *options]) == 0
    said = capsys.readouterr().err
    for advice in (
        "Set --classes to all possible labels.",
        "Set --delta.",
        "Set --feature-norm to a bound",
        "Leave --seed out before you release a model.",
        "it is not where records are added or removed. Use --adjacency zero-out,",
    ):
        assert advice in said
