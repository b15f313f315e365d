"""Training with momentum, Adam and averages: the steps of torch.optim, the law that is accounted for, and going on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.filtered import left_of_steps
from lastiterate.numerics.randomness import Source
from lastiterate.runs.noise import STRAYING
from lastiterate.training.checkpoint import State
from lastiterate.training.data import any_data
from lastiterate.training.objectives import EachRecord
from lastiterate.training.steps import OptimisedStep
from raising import raises
from training_stops import Killed, stop_after

torch = pytest.importorskip("torch")

RECORDS, FEATURES = 30, np.random.default_rng(0).normal(size=(30, 4)) / 4
TARGETS = np.where(FEATURES @ [1.0, -1.0, 0.5, 0.0] > 0, 1, -1)
DATA = (FEATURES, TARGETS)
OPTIMIZERS: tuple[tuple[Any, Any], ...] = (
    (li.SGD(momentum=0.9), lambda w, d: torch.optim.SGD([w], lr=0.3, momentum=0.9, weight_decay=d)),
    (
        li.SGD(momentum=0.8, nesterov=True),
        lambda w, d: torch.optim.SGD([w], lr=0.3, momentum=0.8, nesterov=True, weight_decay=d),
    ),
    (li.Adam(), lambda w, d: torch.optim.Adam([w], lr=0.3, weight_decay=d)),
    (
        li.Adam(betas=(0.7, 0.9), decoupled=True),
        lambda w, d: torch.optim.AdamW([w], lr=0.3, betas=(0.7, 0.9), weight_decay=d),
    ),
)
AVERAGES = (li.LAST, li.EMA(decay=0.7), li.AVERAGE(), li.AVERAGE(last=4))


def a_run(optimizer: Any, released: Any = li.LAST, noise: float = 1e-11, steps: int = 12, **more: Any) -> li.Run:
    given: dict[str, Any] = {"step_size": 0.3, "batches": li.Cyclic(RECORDS, 10)} | more
    loss = li.losses.logistic(feature_norm=1.0)
    return li.Run(
        loss, noise=li.OnMeanGradient(std=noise), steps=steps, optimizer=optimizer, released=released, **given
    )


def by_torch(make: Any, decay: float, sizes: list[float]) -> list[np.ndarray]:
    """All iterates, without noise, by torch's own optimiser."""
    weights = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer, found = make(weights, decay), []
    for step, size in enumerate(sizes):
        first = step % 3 * 10
        x, y = (torch.tensor(one[first : first + 10], dtype=torch.float64) for one in (FEATURES, TARGETS))
        optimizer.zero_grad()
        torch.nn.functional.softplus(-y * (x @ weights)).mean().backward()
        for group in optimizer.param_groups:
            group["lr"] = size
        optimizer.step()
        found.append(weights.detach().numpy().copy())
    return found


@pytest.mark.parametrize("which", range(len(OPTIMIZERS)))
@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("falling", [False, True])
def test_steps_are_those_of_torch(which: int, decay: float, falling: bool) -> None:
    ours, theirs = OPTIMIZERS[which]
    sizes = [0.3 / (1 + step * falling) for step in range(12)]
    expected = by_torch(theirs, decay, sizes)
    run = a_run(ours, weight_decay=decay, step_size=sizes if falling else 0.3)
    trained = li.train(run, DATA, seed=1, releases=[3, 7])
    for step, weights in {**trained.released, 12: trained.weights}.items():
        assert weights == pytest.approx(expected[step - 1], abs=1e-7)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_averages_are_those_of_the_iterates(which: int) -> None:
    ours, theirs = OPTIMIZERS[which]
    iterates = by_torch(theirs, 0.0, [0.3] * 12)
    moving = np.zeros(4)
    for one in iterates:
        moving = 0.7 * moving + 0.3 * one
    expected = (iterates[-1], moving, np.mean(iterates, axis=0), np.mean(iterates[-4:], axis=0))
    for released, value in zip(AVERAGES, expected, strict=True):
        trained = li.train(a_run(ours, released), DATA, seed=1)
        assert trained.weights == pytest.approx(value, abs=1e-7)
        inside = li.train(a_run(ours, released), DATA, seed=1, releases=[11])
        assert inside.weights == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("released", AVERAGES, ids=repr)
@pytest.mark.parametrize(
    "optimizer",
    [li.SGD(momentum=0.8), li.SGD(momentum=0.8, nesterov=True), li.SGD(momentum=0.8, dampening=0.5), li.SGD()],
)
def test_the_law_is_the_one_that_is_accounted_for(optimizer: Any, released: Any) -> None:
    """One quadratic loss: mean and variance of what is released, by what is left of each step."""
    loss = li.losses.ridge(feature_norm=1.0, residual_bound=1e6)
    run = li.Run(loss, li.FullBatch(1), 0.2, li.OnIterate(0.5), 6, optimizer=optimizer, released=released)
    count = 4000  # coordinates that do not see each other
    many = li.Run(
        li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1e9),
        li.FullBatch(1), 0.2, li.OnIterate(0.5), 6, optimizer=optimizer, released=released,
    )  # fmt: skip
    found = li.train(many, ([[0.0]], [0.0]), loss=lambda w, x, y: (w - 1.0)[None], start=np.zeros(count)).weights
    left = left_of_steps(optimizer, released, 0.2, 6)
    assert found.mean() == pytest.approx(0.2 * left.sum(), abs=5 * found.std() / math.sqrt(count))
    assert found.std() == pytest.approx(0.5 * math.sqrt(float(np.square(left).sum())), rel=0.06)
    if not run.process.update.plain:
        assert run.process.update.curvature == pytest.approx((0.1, 0.1))


@pytest.mark.parametrize("released", AVERAGES, ids=repr)
@pytest.mark.parametrize("which", range(len(OPTIMIZERS)))
@pytest.mark.parametrize("place", [0, 5, 11])
def test_a_training_that_was_stopped_goes_on(
    which: int, released: Any, place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(OPTIMIZERS[which][0], released, 0.1, batches=li.Shuffled(RECORDS, 10))
    file = tmp_path / "state"
    whole = li.train(run, DATA, seed=1, releases=[2, 8])
    stop_after(monkeypatch, place)
    with pytest.raises(Killed):
        li.train(run, DATA, seed=1, releases=[2, 8], checkpoint=file, checkpoint_every=0)
    again = li.train(run, DATA, seed=1, releases=[2, 8], checkpoint=file, checkpoint_every=0)
    assert (again.weights == whole.weights).all()
    assert [one.tolist() for one in again.released.values()] == [one.tolist() for one in whole.released.values()]
    assert list(tmp_path.iterdir()) == []


def test_a_state_without_its_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state"
    stop_after(monkeypatch, 5)
    with pytest.raises(Killed):
        li.train(a_run(None, noise=0.1), DATA, seed=1, checkpoint=file, checkpoint_every=0)
    with raises("checkpoint_of_another_run", kind=li.errors.InvalidInput):
        li.train(a_run(li.SGD(momentum=0.9), noise=0.1), DATA, seed=1, checkpoint=file)


def test_projections_and_proximal_maps_follow_every_step() -> None:
    for optimizer, _ in OPTIMIZERS:
        run = a_run(optimizer, li.AVERAGE(), 0.1, domain=li.Ball(radius=0.1), prox=li.parts.L1(weight=0.01))
        trained = li.train(run, DATA, releases=[5])
        assert np.linalg.norm(trained.weights) <= 0.1 + 1e-12
        assert np.isfinite(trained.report(1e-5).epsilon)


def test_an_optimiser_without_an_update_is_not_trained() -> None:
    with raises("update_unknown", "optimizer", kind=li.errors.InvalidInput, name="lion"):
        li.train(a_run("lion", noise=0.1), DATA)


def test_rounding_is_nothing_beside_the_noise() -> None:
    """Grids are so fine that all that is rounded stays within what is charged; averages of far iterates are refused."""
    for optimizer, released, felt in (
        (li.SGD(momentum=0.9), li.LAST, 2.8),
        (li.SGD(), li.AVERAGE(), 1.0),
        (li.SGD(), li.EMA(0.99), 1.0),
    ):
        run = a_run(optimizer, released, 0.1, steps=300)
        state = State(0, np.zeros(50))
        step = OptimisedStep(run, EachRecord(np.zeros_like, any_data(([0.0], [0.0]), 1)), Source(0), state)
        grid, weight = 2.0**-step.finer / 2 * math.sqrt(50), released.weight(299, 300)
        assert grid * max(math.sqrt(300) * felt, 1 / weight) <= STRAYING / 4
    far = a_run(li.SGD(), li.AVERAGE(), 1e-6, steps=12)
    with raises("noise_lost_in_rounding", kind=li.errors.InvalidInput):
        li.train(far, DATA, start=[1e4, 0.0, 0.0, 0.0])
