"""The page says what the command line says, to the last digit, on the runs of docs/choose.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from planner_address import Ask

import lastiterate as li
from lastiterate.cli import main
from lastiterate.runs.files import run_from_dict
from lastiterate.web.form import as_form

PAGE = Path(__file__).parents[2] / "docs" / "choose.md"
DELTA = 1e-6
# More than a second each, twice: `make study` looks at them.
LONG = (
    "full, convex, ball",
    "cyclic, convex, ball",
    "shuffled, convex, ball",
    "shuffled, smooth network",
    "fixed size, strongly convex",
    "fixed size, convex",
    "fixed size, convex, small steps",
    "fixed size, convex, ball",
    "cyclic, convex, momentum",
    "Poisson, convex, zero-out",
)


def runs() -> dict[str, li.Run]:
    """As the page describes them, before it accounts for them."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(code.partition("\nreports = ")[0], names)
    return dict(names["settings"])


RUNS = runs()


def test_the_long_ones_are_there() -> None:
    assert len(RUNS) > 30
    assert set(LONG) <= set(RUNS)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.study] * (name in LONG)) for name in RUNS])
def test_the_page_says_what_the_command_line_says(
    name: str, ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    li.write_run(RUNS[name], tmp_path / "run.toml")
    assert main(["account", str(tmp_path / "run.toml"), "--delta", str(DELTA), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    status, [claim, report] = ask(ask="account", run=as_form(RUNS[name]), delta=DELTA, parts=["answer", "report"])
    assert status == 200
    assert claim["epsilon"] == pytest.approx(said["epsilon"], rel=1e-12, abs=0)
    assert {entry: report[entry] for entry in said} == said


def test_plans_are_those_of_the_command_line(ask: Ask, run: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--records", "60000", "--features", "20", "--epsilon", "1", "--passes", "40", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    status, [found] = ask(ask="plan", run=run, delta=1e-5, epsilon=1.0, features=20, passes=40)
    assert status == 200
    for one, other in zip(said["plans"], found["plans"], strict=True):
        assert run_from_dict(other.pop("run")) == run_from_dict(one.pop("run"))
        assert {entry: other[entry] for entry in one} == one
    assert found["advice"] == said["advice"]
