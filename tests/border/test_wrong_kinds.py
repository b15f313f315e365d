"""What is passed from Python: other types, other libraries, names with NUL, dates, texts."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.curves.sampled_steps import SampledStep
from lastiterate.errors import one_line
from lastiterate.runs.files import run_from_dict, run_from_text, run_to_dict
from raising import raises

RUN = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(records=4), 0.1, li.OnMeanGradient(std=1.0), 3)
PLAIN = run_to_dict(RUN)


@pytest.mark.parametrize("run", [None, 3, "run.toml", {}, li.Run])
def test_only_runs_are_written(run: Any, tmp_path: Path) -> None:
    with raises("not_a_run", "run", kind=li.errors.InvalidInput):
        li.write_run(run, tmp_path / "x.toml")


def test_names_with_nul() -> None:
    for use in (
        lambda: li.read_run("a\0b.toml"),
        lambda: li.write_run(RUN, "a\0b.toml"),
        lambda: li.account(RUN, 1e-5).save_certificate("a\0b.json"),
        lambda: li.account(RUN, 1e-5).plot_comparison("a\0b.png"),
    ):
        with pytest.raises(li.errors.InvalidInput, match=r"a\\x00b\.\w+ cannot be (read|written|drawn)"):
            use()


@pytest.mark.parametrize("path", [None, 3, b"x.toml", []])
def test_paths_are_names(path: Any) -> None:
    with raises("must_be", "path", kind=li.errors.InvalidInput, allowed="the name of a file"):
        li.account(RUN, 1e-5).save_certificate(path)


@pytest.mark.parametrize("name", ["momentum", "nesterov", "betas"])
def test_other_optimisers_are_told_what_to_do(name: str) -> None:
    values = {field: getattr(RUN, field) for field in ("loss", "batches", "step_size", "noise", "steps")}
    with pytest.raises(li.errors.InvalidInput, match=f"{name} is not an entry of a run; write optimizer="):
        li.Run(**values, **{name: 0.9})
    with pytest.raises(li.errors.InvalidInput, match=r"write optimizer=li.SGD\(momentum=0.9\)") as caught:
        run_from_dict({**PLAIN, name: 0.9})
    assert len(str(caught.value)) <= 300


@pytest.mark.parametrize("entry", ["steps = 2020-01-01", "step_size = 2020-01-01T10:00:00Z", "weight_decay = 10:00:00"])
def test_dates_in_a_run(entry: str) -> None:
    text = "\n".join(
        [entry, *(f"{name} = {value}" for name, value in (("steps", 3), ("step_size", 0.1)) if name not in entry)]
    )
    text += '\n[loss]\nkind="logistic"\nfeature_norm=1.0\n[batches]\nkind="full"\nrecords=4'
    text += '\n[noise]\nkind="on_iterate"\nstd=1.0'
    with pytest.raises(li.errors.InvalidInput, match="run, line 1: "):
        run_from_text(text, toml=True)


def zeros(weights: Any, features: Any, targets: Any) -> Any:
    return np.zeros((len(targets), *weights.shape))


def test_dates_as_data_can_be_kept(tmp_path: Path) -> None:
    days = np.array(["2020-01-01"] * 4, "datetime64[D]")
    trained = li.train(RUN, (days, np.zeros(4)), loss=zeros, start=np.zeros(2), checkpoint=tmp_path / "kept", seed=1)
    assert trained.weights.shape == (2,)
    objects = np.array([datetime.date(2020, 1, 1)] * 4)
    with raises("must_be", "data", kind=li.errors.InvalidInput, got="objects"):
        li.train(RUN, (objects, np.zeros(4)), loss=zeros, start=np.zeros(2), checkpoint=tmp_path / "kept")


@pytest.mark.parametrize("returned", ["text", None, [[1.0, 2.0], [3.0]], {}, object(), 1j, np.array([[None]])])
def test_what_a_loss_returns(returned: Any) -> None:
    with raises("gradients_not_numbers", "loss", kind=li.errors.InvalidInput):
        li.train(RUN, (np.eye(4), np.ones(4)), loss=lambda *_: returned, start=np.zeros(4))


MAPS = {"without": lambda x: x / 2, "record": lambda x: x / 2 + 0.1, "neighbour": lambda x: x / 2 - 0.1}
CHAIN: dict[str, Any] = {**MAPS, "noise": [1.0, 1.0], "hazard": [0.5, 0.5], "low": -1.0, "high": 1.0}


def test_a_chain_from_lists() -> None:
    assert li.auditing.Chain(**CHAIN).epsilon(0.01) > 0


@pytest.mark.parametrize(
    "change",
    [
        {"without": 3},
        {"record": None},
        {"noise": [1.0]},
        {"noise": [1.0, -1.0]},
        {"noise": "x"},
        {"noise": 1.0},
        {"noise": [], "hazard": []},
        {"hazard": [0.5, 1.5]},
        {"hazard": [np.nan, 0.5]},
        {"low": np.nan},
        {"low": 1.0},
        {"high": np.inf},
        {"start": 2.0},
        {"cells": 0},
        {"cells": 10**9},
        {"per_epoch": 0},
        {"per_epoch": 1.5},
    ],
)
def test_a_chain_checks_what_it_is_made_of(change: dict[str, Any]) -> None:
    with pytest.raises(li.errors.InvalidInput):
        li.auditing.Chain(**{**CHAIN, **change})


STEP = SampledStep(0.5, 0.1, li.notions.POISSON)


@pytest.mark.parametrize(
    ("steps", "adjacency"),
    [
        (3, li.REPLACE_ONE),
        ((), li.REPLACE_ONE),
        (((1, 2),), li.REPLACE_ONE),
        (((STEP, 0),), li.REPLACE_ONE),
        (((STEP, 1),), "replace"),
        (((SampledStep(0.5, 0.1, li.notions.FIXED_SIZE), 1),), li.ADD_OR_REMOVE_ONE),
    ],
)
def test_compositions_check_what_they_are_made_of(steps: Any, adjacency: Any) -> None:
    with pytest.raises(li.errors.InvalidInput):
        li.notions.SubsampledGaussians(steps, adjacency)
    with pytest.raises(li.errors.InvalidInput):
        SampledStep(-1.0, 0.1, li.notions.POISSON)


def test_messages_are_one_line_of_at_most_300_characters() -> None:
    long = str(li.errors.InvalidInput("a\nb\0" + "x" * 5000 + " do this."))
    assert long.startswith("a\\nb\\x00xxx")
    assert long.endswith("xx do this.")
    assert len(long) == 300
    assert one_line("ε ≤ 1") == "ε ≤ 1"
    with raises("must_be", "mu", kind=li.errors.InvalidInput, allowed="a float in [0, 1e+150]"):
        li.notions.GaussianDP(mu=10**5000)


def test_a_run_that_no_theorem_covers_says_why_briefly() -> None:
    loss = li.losses.general(gradient_sensitivity=1.0)
    run = li.Run(loss, li.Poisson(records=100, rate=0.1), 0.1, li.OnIterate(std=1.0), 10**9)
    with raises("no_theorem_applies", kind=li.errors.Unavailable) as caught:
        li.account(run, 1e-5)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("module", "missing", "install"),
    [
        ("lastiterate.estimators", "sklearn", "lastiterate[estimators]"),
        ("lastiterate.torch as room; room.PrivateTrainer", "torch", "lastiterate[torch]"),
    ],
)
def test_extras_say_how_to_install_them(module: str, missing: str, install: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\ntry: import {module}\nexcept ImportError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert f"pip install '{install}'" in out


def test_squares_that_overflow() -> None:
    assert li.mechanisms.Brownian(sensitivity=1.0).gaussian_error(time=5e-324, dimension=10) < 1e-300
    assert (
        li.mechanisms.OrnsteinUhlenbeck(theta=1.0, rho=0.1, sensitivity=1e300).intrinsic_sensitivity(time=0.3) == np.inf
    )
    assert li.baselines.clt_mu_estimate(mu=1e10, inclusion=0.1, times=1) == np.inf
    with raises("closed_form_range", "mu", kind=li.errors.Unavailable):
        li.baselines.sampled_gaussian_rdp_closed_form(mu=1e308, inclusion=0.01, order=2.0)
    with raises("must_be", "mu", kind=li.errors.InvalidInput, allowed="a float in [0, 1e+150]"):
        li.notions.GaussianDP(mu=1e200)
    with raises("unit_of_length", "sensitivity", kind=li.errors.InvalidInput):
        li.Run(li.losses.network(clip=1e308), li.FullBatch(4), 0.1, li.OnIterate(std=1.0), 3)


@pytest.mark.parametrize("value", [None, "x", [1.0], {}, -1.0, 10**5000], ids=lambda value: type(value).__name__)
def test_smaller_doors_are_watched_too(value: Any) -> None:
    composed = li.notions.subsampled_gaussian(mu=0.5, inclusion=0.1).compose(3)
    for call in (
        lambda: li.OnIterate(std=1.0).scaled(value),
        lambda: li.mechanisms.FiniteKernel([[0.5, 0.5], [0.2, 0.8]], rounding=value),
        lambda: composed.log_delta_upper(value),  # type: ignore[union-attr]
        lambda: composed.log_delta_estimate(value),  # type: ignore[union-attr]
        lambda: li.notions.best(np.ma.masked),
        lambda: li.audit(zeros, 0, 1, delta=0.1, runs=10**12),
        lambda: li.audit(zeros, 0, 1, delta=0.1, workers=10**9),
        lambda: li.read_run(10**5000),  # type: ignore[arg-type]
    ):
        with pytest.raises(li.errors.InvalidInput):
            call()


def test_a_trainer_that_fails_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from lastiterate.cli import main

    trainer = tmp_path / "trainer.py"
    trainer.write_text("def train(data, seed):\n    raise OSError('no disk')\ndata = neighbour = 0\n")
    assert main(["audit", str(trainer), "--runs", "40"]) == 2
    assert capsys.readouterr().err.endswith("failed while training. OSError: no disk.\n")


def test_a_domain_that_is_neither_true_nor_false() -> None:
    with raises("must_be", "domain", kind=li.errors.InvalidInput, allowed="a Domain, such as li.Ball(radius=1.0)"):
        li.Run(RUN.loss, RUN.batches, 0.1, RUN.noise, 3, domain=np.array([]))  # type: ignore[arg-type]


def test_more_records_than_can_be_counted() -> None:
    with raises("must_be", "records", kind=li.errors.InvalidInput, allowed="at most 1e+15"):
        li.Cyclic(records=10**18, batch_size=1)
    most = li.Run(RUN.loss, li.Cyclic(records=10**15, batch_size=1), 0.1, li.OnIterate(std=1.0), 3)
    assert li.account(most, 1e-5).epsilon > 0
