"""Schedules by name: what torch's schedulers do, and a run that remembers them."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.runs.files import run_from_text, run_to_json, run_to_toml
from lastiterate.runs.kinds import SCHEDULES
from lastiterate.runs.run import Run
from raising import raises

BATCHES = li.Cyclic(records=20, batch_size=5)


def run_with(schedule: Any = 0.1, std: Any = 0.5, clip: Any = None, steps: Any = 12, batches: Any = BATCHES) -> Run:
    loss = li.losses.logistic(feature_norm=1.0, clip=clip)
    return li.Run(loss, batches, schedule, li.OnMeanGradient(std=std), steps)


def sizes(schedule: Any, steps: int = 12) -> np.ndarray:
    return np.array(run_with(schedule, steps=steps).step_size)


def by_torch(start: float, steps: int, make: Any) -> list[float]:
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=start)
    scheduler, found = make(torch.optim.lr_scheduler, optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("steps", [1, 2, 12, 501])
def test_they_do_what_torch_does(steps: int) -> None:
    cosine = by_torch(0.3, steps, lambda of, optimizer: of.CosineAnnealingLR(optimizer, steps, eta_min=0.01))
    assert sizes(li.cosine(0.3, 0.01), steps) == pytest.approx(cosine, rel=1e-9)
    line = by_torch(0.3, steps, lambda of, optimizer: of.LinearLR(optimizer, 1.0, 0.1, total_iters=steps))
    assert sizes(li.linear(0.3, 0.03), steps) == pytest.approx(line, rel=1e-9)
    some = by_torch(0.3, steps, lambda of, optimizer: of.MultiStepLR(optimizer, [4, 8], gamma=0.1))
    assert sizes(li.multistep(0.3, {4: 0.03, 8: 0.003}, unit="steps"), steps) == pytest.approx(some, rel=1e-9)


def test_milestones_and_warm_up_are_counted_in_epochs_unless_said_otherwise() -> None:
    assert sizes(li.multistep(0.4, {1: 0.2, 2: 0.1})).tolist() == [0.4] * 4 + [0.2] * 4 + [0.1] * 4
    assert sizes(li.multistep(0.4, [(2, 0.1)], unit="steps")).tolist() == [0.4] * 2 + [0.1] * 10
    warm = sizes(li.multistep(0.5, {2: 0.1}, warmup=1))
    assert warm == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1], rel=1e-15)
    rising = sizes(li.linear(0.6, 0.0, warmup=2, unit="steps"))
    assert rising == pytest.approx([0.2, 0.4, *(0.6 * (1 - np.arange(10) / 10))], rel=1e-14)
    assert sizes(li.cosine(0.1, warmup=1))[4] == 0.1


def test_a_cosine_that_ends_at_0_is_positive_to_the_last_step_and_accurate_there() -> None:
    last = sizes(li.cosine(1.0), 100_000)[-1]
    assert last == pytest.approx((math.pi / 2e5) ** 2, rel=1e-9)


@pytest.mark.parametrize("kind", SCHEDULES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("where", ["schedule", "std", "clip"])
def test_runs_remember_them(kind: Any, where: str) -> None:
    run = run_with(**{where: kind.example})
    for written, toml in ((run_to_toml(run), True), (run_to_json(run), False)):
        assert f'"{kind.name}"' in written
        again = run_from_text(written, toml=toml)
        assert again == run
        assert run_to_toml(again) == run_to_toml(run)
    for twin in (pickle.loads(pickle.dumps(run)), copy.deepcopy(run)):
        assert twin == run
        assert run_to_toml(twin) == run_to_toml(run)
    report = li.account(run, delta=1e-5)
    assert f"{kind.name}(start=0.1" in report.details()
    assert li.verify(report.certificate, run).accepted
    listed = {"schedule": run.step_size, "std": run.noise.std, "clip": run.loss.clip}[where]  # type: ignore[attr-defined]
    assert li.account(run_with(**{where: list(listed)}), delta=1e-5).epsilon == report.epsilon


def test_the_first_steps_have_the_first_numbers_and_are_written_by_name() -> None:
    run = run_with(li.cosine(0.2, warmup=1), std=li.multistep(0.5, {1: 0.4}))
    first = run.first(6)
    assert first.step_size == run.step_size[:6]  # type: ignore[index]
    assert first.noise.std == run.noise.std[:6]  # type: ignore[attr-defined]
    assert "over = 12" in run_to_toml(first)
    assert run_from_text(run_to_toml(first), toml=True) == first
    assert first.first(3).step_size == run.step_size[:3]  # type: ignore[index]
    assert run.first(12) == run
    with raises("schedule_too_short", "over", kind=li.errors.InvalidInput):
        run.first(13)
    longer = replace(run, steps=24)  # another run, which its schedule spans
    assert longer.step_size == run_with(li.cosine(0.2, warmup=1), steps=24).step_size


def test_calibrating() -> None:
    run = run_with(li.cosine(0.2, warmup=1), std=li.linear(0.5, 0.4))
    found = li.calibrate(run, epsilon=1.0, delta=1e-5, free=li.NOISE)
    assert li.account(found, delta=1e-5).epsilon <= 1.0
    assert 'std = { kind = "linear"' in run_to_toml(found)
    target = li.account(run.first(8), delta=1e-5).epsilon
    assert li.calibrate(run, epsilon=target * 1.0001, delta=1e-5, free="steps").steps >= 8


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: li.cosine(0.0), "start must be"),
        (lambda: li.cosine(0.1, -0.1), "end must be"),
        (lambda: li.linear(0.1, warmup=-1), "warmup must be"),
        (lambda: li.linear(0.1, unit="batches"), "unit must be"),
        (lambda: li.multistep(0.1, {3: 0.1, 2: 0.1}), "milestones must be in order"),
        (lambda: li.multistep(0.1, {2: 0.0}), "milestones must be"),
        (lambda: li.multistep(0.1, 7), "milestones must be such as"),  # type: ignore[arg-type]
        (lambda: run_with(li.cosine(0.1, warmup=3)), "warmup must be shorter"),
        (lambda: run_with(li.cosine(0.1, over=11)), "must span all steps"),
        (lambda: run_with(li.cosine(1e-318), steps=100_000), "step_size must be > 0"),
    ],
)
def test_refusals(make: Any, said: str) -> None:
    with pytest.raises(li.errors.InvalidInput, match=said):
        make()


TOML = run_to_toml(run_with(li.cosine(0.1), std=li.multistep(0.5, {1: 0.25})))


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('kind = "cosine"', 'kind = "cosinus"', "line 2: step_size must be a number, a list, or a table with a kind"),
        ("milestones", "milestone", "milestone is not an entry of std of kind multistep; did you mean milestones"),
        ("start = 0.1", "end = 0.1", "line 2: step_size of kind cosine lacks 'start'"),
        ("[[1, 0.25]]", "[[1, -0.25]]", "milestones must be a float"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(right: str, wrong: str, said: str) -> None:
    with pytest.raises(li.errors.InvalidInput, match=said):
        run_from_text(TOML.replace(right, wrong), toml=True)
