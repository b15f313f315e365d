"""`lastiterate train` on columns of raw numbers: public ranges; a warning where the model says the same of everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastiterate.cli import main

SOURCE = np.random.default_rng(5)
RAW = np.column_stack([SOURCE.uniform(20, 80, 3000), SOURCE.uniform(0, 1e6, 3000), SOURCE.uniform(-1, 1, 3000)])
LABELS = np.where(RAW[:, 0] / 30 + 2 * RAW[:, 2] > 50 / 30, "yes", "no")
PRIVATE = ["--target", "y", "--classes", "no", "yes", "--epsilon", "2", "--delta", "1e-5"]
BOUNDS = ["--bounds", "age=20:80", "wealth=0:1000000", "mood=-1:1"]


def written(path: Path, labels: np.ndarray = LABELS) -> str:
    rows = [",".join(map(str, [*row, label])) for row, label in zip(RAW, labels, strict=True)]
    path.write_text("\n".join(["age,wealth,mood,y", *rows]) + "\n")
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> str:
    return written(tmp_path / "raw.csv")


def accuracy(content: dict[str, Any]) -> float:
    scores = RAW @ np.array(content["coefficients"][0]) + content["intercept"][0]
    return float(np.mean((scores > 0) == (LABELS == "yes")))


@pytest.mark.parametrize(
    "known",
    [BOUNDS, ["--bounds", "*=-1:1", "age=20:80", "--scale", "wealth=1e6"], ["--scale", "age=50", "wealth=1e6"]],
    ids=["bounds", "both", "scales"],
)
def test_public_ranges_give_a_model_of_the_columns_as_they_are(
    known: list[str], table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    norm = [] if known is BOUNDS else ["--feature-norm", "3"]
    assert main(["train", table, *PRIVATE, *known, *norm, "--json"]) == 0
    said = capsys.readouterr()
    content = json.loads(said.out)
    assert "predicts" not in said.err
    assert accuracy(content) > 0.9
    assert content["private"] is True  # with bounds for every column, feature_norm is known as well


def test_without_them_one_column_drowns_the_others(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", table, *PRIVATE, "--feature-norm", "1e6", "--json"]) == 0
    assert accuracy(json.loads(capsys.readouterr().out)) < 0.7


@pytest.mark.parametrize("test", [True, False])
@pytest.mark.parametrize("known", [BOUNDS, ["--feature-norm", "1e6"]], ids=["bounds", "none"])
def test_one_answer_for_everything_is_warned_of(
    known: list[str], test: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether records say so is private: what is looked at is public, or drawn around what was released."""
    data = written(tmp_path / "raw.csv", np.where(np.arange(3000) < 2990, "no", "yes"))
    public = ["--test", written(tmp_path / "public.csv")] if test else []
    assert main(["train", data, *PRIVATE, "--epsilon", "20", *known, *public]) == 0
    where = f"every record of {public[1]}" if test else "each of 1000 rows drawn"
    assert f"the model predicts 'no' for {where}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--bounds size=0:1",
            "--bounds names the column 'size', which is not in the data. The columns are age, wealth, mood.",
        ),
        ("--bounds age", "--bounds must look like age=17:90. Got 'age'."),
        ("--bounds age=80:20", "--bounds of age must be LOW:HIGH, two numbers, the lower one first. Got '80:20'."),
        ("--bounds age=5", "--bounds of age must be LOW:HIGH"),
        ("--bounds age=nan:5", "--bounds of age must be LOW:HIGH"),
        ("--scale age=-1", "--scale of age must be"),
        ("--scale age=big", "--scale of age must be a number. Got 'big'."),
        ("--bounds age=0:1 --scale age=1", "column age is in both --bounds and --scale. Remove it from one of them."),
    ],
)
def test_bad_ranges_are_one_sentence(
    options: str, message: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", table, *PRIVATE, *options.split()]) == 2
    assert message in capsys.readouterr().err
