"""Runs: units, per-step values, files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import lastiterate as li
from lastiterate.runs.batches.base import Turns
from lastiterate.runs.files import run_from_text, run_to_json, run_to_toml
from raising import raises

LOSS = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=4.0)


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        (li.OnIterate(std=0.3), 0.3),
        (li.OnMeanGradient(std=0.3), 0.3 * 0.1),
        (li.OnGradientSum(multiplier=3.0, clip=2.0), 0.1 * 3.0 * 2.0 / 5),
        (li.Langevin(std=0.3), math.sqrt(0.2) * 0.3),
    ],
)
def test_noise_on_the_iterate(noise: object, expected: float) -> None:
    """theorems of different papers, one unit: the standard deviation on the iterate."""
    run = li.Run(LOSS, li.Cyclic(records=20, batch_size=5), 0.1, noise, li.epochs(2))  # type: ignore[arg-type]
    assert run.steps == 8
    assert run.process.noise[0] == pytest.approx(expected, rel=1e-14)
    assert run.process.sensitivity[0] == pytest.approx(0.1 * 4.0 / 5, rel=1e-14)
    assert run.process.constant
    assert run.process.noise.strides == (0,)


def test_a_strongly_convex_prox_scales_its_step() -> None:
    """X = prox(φ + noise): the ratio of sensitivity and noise is as before, the next step starts closer together."""
    plain = li.Run(LOSS, li.FullBatch(records=5), 0.1, li.OnIterate(0.3), 4)
    with_prox = li.Run(
        LOSS, li.FullBatch(records=5), 0.1, li.OnIterate(0.3), 4, prox=li.parts.ElasticNet(l1=1.0, l2=2.0)
    )
    squeeze = 1 / 1.2
    for name in ("sensitivity", "noise", "lipschitz"):
        before, after = getattr(plain.process, name), getattr(with_prox.process, name)
        assert after == pytest.approx(squeeze * before, rel=1e-13)


def test_one_value_per_step() -> None:
    run = li.Run(
        li.losses.network(clip=(1.0, 2.0, 3.0)),
        li.FullBatch(records=10),
        [0.1, 0.2, 0.3],
        li.OnMeanGradient([1, 2, 3]),
        3,
    )
    assert run.process.sensitivity == pytest.approx(np.array([0.1, 0.2, 0.3]) * 2 * np.array([1, 2, 3]) / 10, rel=1e-14)
    assert run.process.noise == pytest.approx([0.1, 0.4, 0.9], rel=1e-14)
    assert not run.process.constant
    shorter = run.first(2)
    assert shorter.process.noise == pytest.approx([0.1, 0.4], rel=1e-14)
    assert run_from_text(run_to_json(shorter), toml=False) == shorter


@pytest.mark.parametrize("name", ["step_size", "std", "clip"])
def test_lists_of_the_wrong_length_are_refused(name: str) -> None:
    values = {"step_size": 0.1, "std": 1.0, "clip": 1.0, name: [0.1, 0.2]}
    loss = li.losses.network(clip=values["clip"])  # type: ignore[arg-type]
    with pytest.raises(li.errors.InvalidInput, match=f"{name} must be one float, or one per step: 3"):
        li.Run(loss, li.FullBatch(records=10), values["step_size"], li.OnIterate(values["std"]), 3)  # type: ignore[arg-type]


def test_noise_on_the_sum_clips() -> None:
    """DP-SGD noise implies clipping: a logistic loss stays convex, a softmax does not."""
    noise = li.OnGradientSum(multiplier=1.0, clip=0.5)
    batches = li.Cyclic(records=20, batch_size=5)
    assert li.Run(li.losses.logistic(feature_norm=1.0), batches, 0.1, noise, 4).convex
    softmax = li.Run(li.losses.softmax(feature_norm=1.0), batches, 0.1, noise, 4)
    assert not softmax.convex
    assert softmax.process.lipschitz[0] > 1
    with raises("two_clips", "clip", kind=li.errors.InvalidInput):
        li.Run(li.losses.logistic(feature_norm=1.0, clip=1.0), batches, 0.1, noise, 4)


@pytest.mark.parametrize(
    ("domain", "ends"),
    [
        (li.Ball(radius=3.0), [(3.0, 0.0), (-3.0, 0.0)]),
        (li.parts.Box(side=2.0, dimension=3), [(-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)]),
        (li.parts.ConvexSet(diameter=5.0), [(0.0,), (5.0,)]),
    ],
    ids=repr,
)
def test_two_points_of_a_domain_are_as_far_apart_as_its_diameter(domain: object, ends: list[tuple[float, ...]]) -> None:
    exact = math.dist(*ends)
    assert exact <= domain.diameter <= exact * (1 + 1e-15)  # type: ignore[attr-defined]


def test_an_empty_batch_moves_nothing() -> None:
    """Errata E0.4: of a mean over an empty batch; its map is the identity, so no step is sure to contract."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.5, gradient_sensitivity=1.0)
    run = li.Run(loss, li.parts.PoissonMean(records=10, rate=0.1), 0.5, li.OnMeanGradient(std=1.0), 5)
    assert run.process.contraction == run.process.but_for(1e-12).contraction == 1.0


def test_inclusion() -> None:
    cyclic = li.Run(LOSS, li.Cyclic(records=20, batch_size=5), 0.1, li.OnIterate(1.0), 6)
    assert cyclic.process.inclusion.tolist() == [0, 1, 0, 0, 0, 1]
    poisson = li.Run(LOSS, li.Poisson(records=20, rate=0.25), 0.1, li.OnIterate(1.0), 6)
    assert poisson.process.inclusion.tolist() == [0.25] * 6
    shuffled = [li.Shuffled(records=20, batch_size=5, each_epoch=each) for each in (True, False)]
    for batches, turns in zip(shuffled, (Turns.NEW_ORDERS, Turns.ONE_ORDER), strict=True):
        assert li.Run(LOSS, batches, 0.1, li.OnIterate(1.0), 6).process.inclusion.tolist() == [0.25] * 6
        assert batches.turns is turns


RUNS = [
    li.Run(LOSS, li.Cyclic(records=20, batch_size=5), 0.1, li.OnMeanGradient(std=0.3), li.epochs(2)),
    li.Run(
        li.losses.logistic(feature_norm=1.0, l2=0.01),
        li.Shuffled(records=20, batch_size=5, each_epoch=False),
        [0.1, 0.2],
        li.OnGradientSum(multiplier=[1.0, 2.0], clip=0.5),
        2,
        li.Ball(radius=2.0),
        li.parts.ElasticNet(l1=0.1, l2=0.2),
        0.3,
    ),
    li.Run(
        li.losses.network(clip=1.0), li.Poisson(records=20, rate=0.1), 0.1, li.OnIterate(1.0), 7, li.parts.Box(1.0, 3)
    ),
    li.Run(
        li.losses.network(clip=1.0),
        li.parts.PoissonMean(records=20, rate=0.1),
        0.1,
        li.OnIterate(1.0),
        7,
        li.Unbounded(5),
    ),
    li.Run(
        li.losses.ridge(feature_norm=1.0, clip=1.0), li.FullBatch(20), 0.1, li.Langevin(1.0), 7, li.parts.ConvexSet(4.0)
    ),
]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.loss.kind)
@pytest.mark.parametrize("ending", ["toml", "json"])
def test_runs_are_read_back_as_they_were_written(run: li.Run, ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"run.{ending}"
    li.write_run(run, file)
    assert li.read_run(file) == run


TOML = """# a run
step_size = 0.05
steps = { epochs = 50 }

[loss]
kind = "logistic"
feature_norm = 1.0

[batches]
kind = "cyclic"
records = 60000
batch_size = 1500

[noise]
kind = "on_mean_gradient"
std = 0.01
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("step_size", "stepsize", 2, "did you mean step_size"),
        ("step_size = 0.05", 'step_size = "0.05"', 2, "step_size must be a float"),
        ("step_size = 0.05", "step_size = -0.05", 2, "step_size must be in (0, inf). Got -0.05"),
        ("epochs = 50", "epoch = 50", 3, "steps must be an integer"),
        ("epochs = 50", "epochs = 2.5", 3, "epochs must be an integer"),
        ('"logistic"', '"logistics"', 6, "did you mean logistic"),
        ("feature_norm = 1.0", "features_norm = 1.0", 7, "did you mean feature_norm"),
        ("feature_norm = 1.0\n", "", 5, "lacks"),
        ("batch_size = 1500", "batch_size = 0.025", 12, "batch_size must be an integer"),
        ("batch_size = 1500", "batch_size = 1501", 12, "batch_size must divide records, or last must be given for"),
        ("std = 0.01", "sigma = 0.01", 16, "sigma is not an entry of noise"),
        ("std = 0.01", "std = true", 16, "std must be a float"),
        ("[noise]", "[nose]", 14, "did you mean noise"),
        ("step_size", "lr", 2, "did you mean step_size"),
        ("steps = { epochs = 50 }", "epochs = 50", 3, "write steps = { epochs"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_line(old: str, new: str, line: int, said: str) -> None:
    assert old in TOML
    with pytest.raises(li.errors.InvalidInput) as caught:
        run_from_text(TOML.replace(old, new), "run.toml", toml=True)
    assert str(caught.value).startswith(f"run.toml, line {line}: ")
    assert said in str(caught.value)


def test_lines_of_json_are_named_too() -> None:
    text = run_to_json(RUNS[0]).replace('"std"', '"sigma"')
    place = next(index for index, line in enumerate(text.splitlines(), 1) if "sigma" in line)
    with raises("wrong_at_line", "sigma", kind=li.errors.InvalidInput, line=place):
        run_from_text(text, "run.json", toml=False)
    with raises("file_not_json", kind=li.errors.InvalidInput, line=1):
        run_from_text("{", "run.json", toml=False)
    with raises("file_not_toml", kind=li.errors.InvalidInput):
        run_from_text("step_size =", "run.toml", toml=True)


def test_a_missing_file_or_ending(tmp_path: Path) -> None:
    with raises("file_unreadable", "path", kind=li.errors.InvalidInput):
        li.read_run(tmp_path / "run.toml")
    (tmp_path / "run.yaml").write_text("")
    with raises("file_ending", "path", kind=li.errors.InvalidInput):
        li.read_run(tmp_path / "run.yaml")


def test_written_files_hold_nothing_but_the_run() -> None:
    assert set(json.loads(run_to_json(RUNS[0]))) == {
        "steps",
        "step_size",
        "weight_decay",
        "loss",
        "batches",
        "noise",
        "domain",
    }
    assert "[noise]" in run_to_toml(RUNS[0])


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    loss = li.losses.general(
        smoothness=np.float32(1), strong_convexity=np.float64(0.5), gradient_sensitivity=np.int64(2)
    )
    run = li.Run(loss, li.FullBatch(records=np.int64(10)), np.float32(0.5), li.OnIterate(np.float64(1)), np.int64(3))
    for ending in ("toml", "json"):
        li.write_run(run, tmp_path / f"run.{ending}")
        assert li.read_run(tmp_path / f"run.{ending}") == run


def test_a_byte_order_mark_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(TOML, encoding="utf-8-sig")
    assert li.read_run(tmp_path / "run.toml").steps == 2000
