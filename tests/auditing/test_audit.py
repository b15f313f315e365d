"""Audits: never above the truth beyond their confidence, and not far below it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.tightness.audits import noisy_gd
from scipy.stats import binomtest

import lastiterate as li
from lastiterate.auditing.audit import Rates, rate_above, rate_below
from lastiterate.auditing.quadratic import OPPOSITE, PUSHES, exact_mu, simulation, steps_of, weights_of
from lastiterate.cli import main
from raising import raises

DELTA = 1e-5


def gaussian(mean: float, seed: int) -> np.ndarray:
    """Three coordinates, of which one knows the data."""
    return np.random.default_rng(seed).normal([0.0, mean, 0.0], [1.0, 1.0, 5.0])


@pytest.mark.parametrize("count", [50, pytest.param(200, marks=pytest.mark.study)])
def test_audits_of_noisy_gradient_descent(count: int) -> None:
    """At 95% never above the exact ε, and at least half of it; all steps of a run in one product."""
    run = noisy_gd(0.06)
    steps = steps_of(run, 0.2)
    weights = weights_of(steps.factor)
    pushed, noises = float(weights @ steps.push), weights * steps.noise

    def train(record: float, seed: int) -> float:
        source = np.random.Generator(np.random.Philox(key=seed))  # made in a tenth of the time
        return record * pushed + float(noises @ source.standard_normal(len(noises)))

    exact = li.notions.GaussianDP(exact_mu(run, 0.2)).epsilon(DELTA)
    found = [li.audit(train, PUSHES, OPPOSITE, delta=DELTA, runs=1500, seed=seed) for seed in range(count)]
    assert max(max(one.epsilon, one.epsilon_if_gaussian) for one in found) <= exact
    assert min(one.epsilon_if_gaussian for one in found) >= exact / 2
    assert min(one.epsilon for one in found) > 0


@pytest.mark.parametrize(
    "batches", [li.FullBatch(100), li.Cyclic(100, 50), li.Shuffled(100, 50), li.FixedSize(100, 50)]
)
def test_simulated_runs_have_the_mean_and_the_spread_that_is_computed(batches: object) -> None:
    run = li.Run(noisy_gd(0.06).loss, batches, 0.5, li.OnMeanGradient(std=0.06), 7)  # type: ignore[arg-type]
    steps, train = steps_of(run, 0.2), simulation(run).train
    last = np.array([train(PUSHES, seed) for seed in range(4000)])
    weights, inclusion = weights_of(steps.factor), run.process.inclusion
    mean = 0.5 * float((weights * steps.push) @ inclusion)
    assert last.mean() == pytest.approx(mean, abs=4 * last.std() / math.sqrt(len(last)))
    assert last.std() >= math.sqrt(float(np.square(weights * steps.noise).sum())) * 0.95


def test_projection_holds_simulated_runs() -> None:
    run = li.Run(noisy_gd(0.06).loss, li.FullBatch(100), 0.5, li.OnMeanGradient(std=0.06), 7, li.Ball(radius=0.01))
    last = [simulation(run).train(PUSHES, seed) for seed in range(50)]
    assert max(map(abs, last)) == 0.01


def test_the_direction_is_learnt_and_equal_data_prove_nothing() -> None:
    found = li.audit(gaussian, 2.0, 0.0, delta=DELTA, runs=1000)
    assert 1.3 < found.mu <= 2.0
    assert found.epsilon_if_gaussian <= li.notions.GaussianDP(2.0).epsilon(DELTA)
    same = li.audit(gaussian, 0.0, 0.0, delta=DELTA, runs=400)
    assert same.epsilon == same.mu == same.epsilon_if_gaussian == 0.0


def test_a_score_of_ones_own_and_several_processes() -> None:
    alone = li.audit(gaussian, 2.0, 0.0, delta=DELTA, runs=200, score=lambda iterate: iterate[1])
    spread = li.audit(gaussian, 2.0, 0.0, delta=DELTA, runs=200, score=lambda iterate: iterate[1], workers=2)
    assert alone.epsilon == spread.epsilon > 0.3


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (17, 1000)])
def test_intervals_are_those_of_clopper_and_pearson(hits: int, trials: int) -> None:
    exact = binomtest(hits, trials).proportion_ci(0.9, method="exact")
    assert rate_above(hits, trials, 0.05) == pytest.approx(exact.low, rel=1e-9)
    assert rate_below(hits, trials, 0.05) == pytest.approx(exact.high, rel=1e-9)


def test_rates_prove_what_a_gaussian_mechanism_has() -> None:
    rates = Rates(li_power(1.0, 0.1), 0.1)
    assert rates.mu == pytest.approx(1.0, rel=1e-9)
    assert rates.epsilon(0.0) == pytest.approx(math.log(rates.true_alarms / 0.1))
    assert rates.epsilon(1e-3) <= li.notions.GaussianDP(1.0).epsilon(1e-3)
    assert Rates(0.2, 0.3).epsilon(DELTA) == Rates(0.0, 1.0).mu == 0.0


def li_power(mu: float, false_alarms: float) -> float:
    return 1 - float(li.notions.GaussianDP(mu).tradeoff(false_alarms)) * (1 + 1e-11)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"runs": 10}, "runs must be at least 40"),
        ({"delta": 0.0}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"workers": 0}, "workers"),
        ({"score": lambda iterate: math.nan}, "finite"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], said: str) -> None:
    given = {"delta": DELTA, "runs": 40, **arguments}
    with pytest.raises(li.errors.InvalidInput, match=said):
        li.audit(gaussian, 1.0, 0.0, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("train", "said"),
    [
        (lambda data, seed: np.zeros(seed % 3 + 1), "one shape"),
        (lambda data, seed: np.zeros(int(data) + 1), "one shape"),
        (lambda data, seed: None, "Got None"),
        (3, "a function of data and seed"),
    ],
)
def test_bad_trainers(train: object, said: str) -> None:
    with pytest.raises(li.errors.InvalidInput, match=said):
        li.audit(train, 1.0, 0.0, delta=DELTA, runs=40)  # type: ignore[arg-type]


def test_seeds_fit_numpy_and_a_trainer_that_ignores_them_is_told() -> None:
    def train(data: float, seed: int) -> float:
        assert 0 <= seed < 2**32
        return 1.0

    assert "check that train uses its seed" in str(li.audit(train, 1.0, 0.0, delta=DELTA, runs=40))


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, plot = tmp_path / "run.toml", tmp_path / "scores.png"
    li.write_run(noisy_gd(0.06), run)
    assert main(["audit", str(run), "--runs", "300", "--plot", str(plot)]) == 0
    out = capsys.readouterr().out
    assert "an allowed loss exists with epsilon >= 4.426, and epsilon <= 4.426 is proved." in out
    assert plot.stat().st_size > 1000
    assert main(["audit", str(run), "--runs", "300", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] > 0


def test_a_trainer_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trainer.py"
    body = "def train(mean, seed):\n    return random.Random(seed).gauss(mean, 1.0)\n"
    file.write_text(f"import random\ndata, neighbour = 3.0, 0.0\n{body}")
    assert main(["audit", str(file), "--runs", "200"]) == 0
    assert "with 95% confidence, from 200 runs" in capsys.readouterr().out
    (tmp_path / "helper.py").write_text("neighbour = 0.0\n")
    file.write_text(f"import random\nfrom helper import neighbour\ndata = 3.0\n{body}")
    assert main(["audit", str(file), "--runs", "40"]) == 0
    file.write_text("import nothing_of_this_name\n")
    assert main(["audit", str(file)]) == 2
    assert "cannot be run: ModuleNotFoundError" in capsys.readouterr().err
    file.write_text("data = 1\n")
    assert main(["audit", str(file)]) == 2
    assert "It lacks train, neighbour." in capsys.readouterr().err
    assert main(["audit", str(tmp_path / "none.py")]) == 2


def test_a_score_that_is_no_number_is_refused_in_a_sentence() -> None:
    with raises("score_failed", "score", kind=li.errors.InvalidInput):
        li.audit(lambda data, seed: "x", data=0.0, neighbour=1.0, delta=1e-5, runs=60, score=float)
