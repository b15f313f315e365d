"""One fixed loss whose curvature changes over time (docs/proofs.md, "A loss with a clock"), built and run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import lastiterate as li
from lastiterate.numerics.arrays import Floats

STRETCH, RANGE, TOP = 3e5, 30.0, 100.0  # of the clock's face; of x; beyond it x has no more to do with the clock


@dataclass(frozen=True)
class ClockLoss:
    """c·x²/2 + (a(y) − c)·q(x)/2 + e·y²/2 − k·y with Hessian in [0, 1]; step size 1."""

    curvatures: Floats
    middle: float = 0.5
    spring: float = 0.02

    @property
    def hours(self) -> Floats:
        return STRETCH * (1 - (1 - self.spring) ** np.arange(len(self.curvatures))) / self.spring

    def face(self, y: Floats) -> tuple[Floats, Floats, Floats]:
        """a, a' and a'': flat around the hours, a smooth step of degree 5 between them."""
        hours, width = self.hours, np.diff(self.hours)
        at = np.clip(np.searchsorted(hours, y, side="right") - 1, 0, len(hours) - 2)
        share = np.clip((y - hours[at] - width[at] / 4) / (width[at] / 2), 0, 1)
        rise, step = np.diff(self.curvatures)[at], width[at] / 2
        slope, bend = 30 * share**2 * (1 - share) ** 2, 60 * share * (1 - share) * (1 - 2 * share)
        value = share**3 * (10 - 15 * share + 6 * share**2)
        return self.curvatures[at] + rise * value, rise * slope / step, rise * bend / step**2

    def bump(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """q, q' and q'': x² up to RANGE, then bent down at most as fast, to a constant."""
        size = np.abs(x)
        out = np.clip(size - RANGE, 0, 2 * RANGE)
        first = np.where(size <= RANGE, 2 * size, RANGE * (1 + np.cos(np.pi * out / (2 * RANGE))))
        second = np.where(size <= RANGE, 2.0, -np.pi / 2 * np.sin(np.pi * out / (2 * RANGE)))
        risen = RANGE * out + 2 * RANGE**2 / np.pi * np.sin(np.pi * out / (2 * RANGE))
        return np.minimum(size, RANGE) ** 2 + risen, np.sign(x) * first, second

    def gradient(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        (a, slope, _), (q, first, _) = self.face(y), self.bump(x)
        along = self.middle * x + (a - self.middle) * first / 2
        return along, slope * q / 2 + self.spring * y - STRETCH

    def eigenvalues(self, x: Floats, y: Floats) -> Floats:
        (a, slope, bend), (q, first, second) = self.face(y), self.bump(x)
        one, across = self.middle + (a - self.middle) * second / 2, slope * first / 2
        return np.linalg.eigvalsh(np.stack([one, across, across, self.spring + bend * q / 2], -1).reshape(-1, 2, 2))


LOSS = ClockLoss(np.array([0.5, 0.02, 0.98, 0.02, 0.3, 0.98, 0.02, 0.98]))


def test_its_hessian_is_that_of_a_smooth_convex_loss() -> None:
    x, y = np.meshgrid(np.linspace(-TOP, TOP, 401), np.linspace(-STRETCH, 9 * STRETCH, 2001))
    values = LOSS.eigenvalues(x.ravel(), y.ravel())
    assert values.min() >= 0
    assert values.max() <= 1


def test_its_gradient_is_that_of_its_hessian() -> None:
    source = np.random.default_rng(0)
    x, y = source.uniform(-TOP, TOP, 500), source.uniform(0, 8 * STRETCH, 500)
    step = 1e-4
    differences = [
        (ahead - back) / (2 * step)
        for ahead, back in zip(LOSS.gradient(x + step, y), LOSS.gradient(x - step, y), strict=True)
    ]
    (a, slope, _), (_, first, second) = LOSS.face(y), LOSS.bump(x)
    assert differences[0] == pytest.approx(LOSS.middle + (a - LOSS.middle) * second / 2, abs=1e-5)
    assert differences[1] == pytest.approx(slope * first / 2, abs=1e-5)


def test_it_moves_as_the_chain_whose_slopes_change() -> None:
    source = np.random.default_rng(1)
    steps, runs = len(LOSS.curvatures), 2000
    x, y, linear = np.zeros(runs), np.zeros(runs), np.zeros(runs)
    for step in range(steps):
        along, across = LOSS.gradient(x, y)
        noise = source.standard_normal((2, runs))
        push = 0.5 if step % 4 == 3 else 0.0
        x, y = x - along + push + noise[0], y - across + noise[1]
        linear = (1 - LOSS.curvatures[step]) * linear + push + noise[0]
    assert x == pytest.approx(linear, abs=1e-9)


def runs(**changes: object) -> li.Run:
    given: dict[str, object] = {
        "loss": li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.0),
        "batches": li.Cyclic(records=100, batch_size=10),
        "step_size": 1.0,
        "noise": li.OnIterate(std=0.1),
        "steps": 40,
    } | changes
    return li.Run(**given)  # type: ignore[arg-type]


SUPREMUM = "changing_curvature"


@pytest.mark.parametrize("smoothness", [1.0, 1.6])
def test_the_engine_is_exact_if_slopes_may_be_zero(smoothness: float) -> None:
    loss = li.losses.general(smoothness=smoothness, strong_convexity=0.0, gradient_sensitivity=1.0)
    report = li.account(runs(loss=loss), 1e-6)
    assert report.ratio == pytest.approx(1.0, abs=1e-9)
    assert report.lower_bound.instance.code == SUPREMUM


def test_the_engine_is_exact_after_releases_too() -> None:
    report = li.account(runs(), 1e-6, releases=[13, 20])
    assert report.ratio == pytest.approx(1.0, abs=1e-9)


def test_schedules_of_step_sizes() -> None:
    sizes = np.where(np.arange(40) < 20, 1.0, 0.8)
    loss = li.losses.general(smoothness=1.5, strong_convexity=0.1, gradient_sensitivity=1.0)
    assert li.account(runs(loss=loss, step_size=sizes), 1e-6).ratio == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.0, clip=0.5)},
        {"loss": li.losses.logistic(feature_norm=1.0)},
        {"domain": li.Unbounded(dimension=1)},
        {"domain": li.Ball(radius=1.0)},
        {"loss": li.losses.general(smoothness=0.5, strong_convexity=0.5, gradient_sensitivity=1.0)},
        {"batches": li.FixedSize(records=100, batch_size=10)},
    ],
)
def test_where_there_is_no_room_for_a_clock_curvature_stays(changes: dict[str, object]) -> None:
    assert li.lower_bound(runs(**changes), 1e-6).instance.code != SUPREMUM


def test_random_orders_show_the_last_step() -> None:
    """20 epochs: a sum of all epochs, and the last step, are each worth less than both together."""
    run = runs(batches=li.Shuffled(records=1000, batch_size=50), steps=li.epochs(20), noise=li.OnIterate(std=1 / 150))
    report = li.account(run, 1e-6)
    assert report.lower_bound.instance.code == SUPREMUM
    assert 20.0 < report.lower_bound.epsilon <= report.epsilon
