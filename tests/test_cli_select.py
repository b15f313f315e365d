"""`lastiterate select`: the price of releasing the best of many trials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.cli import main
from refusing import refused

RUN = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
    batches=li.Cyclic(records=1000, batch_size=100),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.1),
    steps=20,
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    written = tmp_path / "run.toml"
    li.write_run(RUN, written)
    return str(written)


def outputs(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_same_number_as_in_python(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outputs(["select", path, path, "--trials", "poisson", "--mean", "10", "--json"], capsys)
    report = li.account(RUN, delta=1e-5)
    said = json.loads(out)
    assert code == 0
    assert said["epsilon"] == li.select(report, trials=li.trials.Poisson(mean=10)).epsilon(1e-5)
    assert said["trials"] == {"law": "poisson", "mean": 10.0, "shape": None}
    assert [one["epsilon"] for one in said["each"]] == [report.epsilon] * 2
    code, out, _ = outputs(["select", path, "--mean", "10", "--delta", "1e-6"], capsys)
    assert code == 0
    assert "at delta = 1e-06 (replace one record) for releasing only the best trial\n" in out
    assert "drawn from a geometric distribution with mean 10\n" in out
    assert "one trial of" in out


@pytest.mark.parametrize(
    ("options", "code", "field", "got"),
    [
        ("--mean 0.5", "must_be", "mean", "0.5"),
        ("--mean 5 --shape 2", "shape_of_other_trials", "shape", None),
        ("--mean 5 --trials negative-binomial", "shape_of_other_trials", "shape", None),
        ("--mean 5 --trials negative-binomial --shape -1", "must_be", "shape", "-1"),
        ("--mean 5 --delta 2", "must_be", "delta", "2"),
    ],
)
def test_bad_input_is_one_sentence(
    path: str, options: str, code: str, field: str, got: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(["select", path, *options.split()], capsys)
    assert (error.code, error.field, error.got) == (code, field, got)
    allowed = {"mean": "a float in (1, 1e+06]", "shape": "a float in [-0.9, 50]", "delta": "a float in (0, 1)"}
    assert error.allowed == (allowed[field] if got else None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--trials", "uniform", "--mean", "5"], "invalid choice: 'uniform'"),
        ([], "the following arguments are required: --mean"),
    ],
)
def test_options_that_argparse_refuses_are_one_sentence(
    path: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = outputs(["select", path, *options], capsys)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_run_is_calibrated_as_one_trial_of_a_search(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outputs(["calibrate", path, "--epsilon", "1", "--mean", "10"], capsys)
    assert code == 0
    assert "meets epsilon <= 1 at delta = 1e-05" in out
    assert "for the best trial; number of trials: geometric distribution with mean 10" in out
    total = float(out.split("search: epsilon = ")[1].split()[0])
    assert 0.98 < total <= 1.0
    code, out, _ = outputs(["calibrate", path, "--epsilon", "1", "--mean", "10", "--json"], capsys)
    assert json.loads(out)["search"]["epsilon"] == pytest.approx(total)
    assert json.loads(out)["search"]["trials"] == {"law": "geometric", "mean": 10.0}


def test_trials_without_a_mean_are_refused(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(["calibrate", path, "--epsilon", "1", "--trials", "poisson"], capsys)
    assert (error.code, error.field) == ("mean_of_trials_missing", "mean")
