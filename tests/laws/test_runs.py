"""Laws of whole runs: between a lower and an upper bound, in any units, under any convention of the noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing.quadratic import exact_mu

DELTA = 1e-5
BATCHES = (
    li.FullBatch(records=40),
    li.Cyclic(records=40, batch_size=10),
    li.Shuffled(records=40, batch_size=10),
    li.Shuffled(records=40, batch_size=10, each_epoch=False),
    li.FixedSize(records=40, batch_size=10),
    li.Poisson(records=40, rate=0.25),
    li.parts.PoissonMean(records=40, rate=0.5),
)


def random_loss(source: np.random.Generator) -> li.losses.Loss:
    l2 = float(source.choice([0.0, 0.3]))
    match int(source.integers(5)):
        case 0:
            curvature = float(source.choice([0.0, 0.1]))
            return li.losses.general(smoothness=1.0, strong_convexity=curvature, gradient_sensitivity=2.0, l2=l2)
        case 1:
            return li.losses.logistic(feature_norm=1.0, l2=l2)
        case 2:
            return li.losses.network(clip=1.0, l2=l2)
        case 3:
            return li.losses.network(clip=1.0, smoothness=0.8, l2=l2)
    return li.losses.ridge(feature_norm=1.0, clip=0.5, l2=l2)


def random_run(source: np.random.Generator, batches: object) -> li.Run:
    steps = int(source.integers(1, 40))
    step_size = 0.4 if source.random() < 0.7 else source.uniform(0.1, 0.8, steps)
    divisor = batches.divisor  # type: ignore[attr-defined]
    std = float(10 ** source.uniform(-0.7, 0.7)) / divisor
    noise = (li.OnIterate(std), li.OnMeanGradient(3 * std), li.Langevin(2 * std))[int(source.integers(3))]
    domain = (
        li.Ball(radius=float(source.choice([0.5, 3.0])) * std) if source.random() < 0.4 else li.Unbounded(dimension=2)
    )
    return li.Run(random_loss(source), batches, step_size, noise, steps, domain)  # type: ignore[arg-type]


@pytest.mark.parametrize("batches", BATCHES, ids=repr)
def test_no_guarantee_is_below_an_instance(batches: object) -> None:
    source = np.random.default_rng(5)
    for _ in range(8):
        run = random_run(source, batches)
        try:
            report = li.account(run, delta=DELTA)
        except li.errors.Unavailable:
            continue
        lower = report.lower_bound
        assert lower.epsilon <= report.epsilon * (1 + 1e-9), (run, lower)
        assert report.ratio >= 1 - 1e-9


@pytest.mark.parametrize("curvature", [0.0, 1e-3, 0.2, 0.9])
@pytest.mark.parametrize("steps", [1, 7, 1000, 10**5])
def test_strongly_convex_full_batches_are_exact(curvature: float, steps: int) -> None:
    """The theory says so (Bok2024, Theorem 4.2), and the sandwich closes."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=curvature, gradient_sensitivity=2.0)
    run = li.Run(loss, li.FullBatch(records=100), 0.5, li.OnMeanGradient(std=0.03), steps)
    for delta in (1e-10, 1e-5, 0.01):
        report = li.account(run, delta=delta)
        assert report.ratio == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("releases", [(3,), (5, 10, 15), tuple(range(1, 20))])
def test_released_iterates_are_exact_too(releases: tuple[int, ...]) -> None:
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.1, gradient_sensitivity=2.0)
    run = li.Run(loss, li.FullBatch(records=100), 0.5, li.OnMeanGradient(std=0.03), 20)
    report = li.account(run, delta=DELTA, releases=releases)
    assert report.ratio == pytest.approx(1.0, abs=1e-9)


UNFINISHED = li.Run(
    li.losses.logistic(feature_norm=1.0, clip=0.3),
    li.Shuffled(records=60, batch_size=4),
    step_size=0.1,
    noise=li.OnIterate(std=0.168),
    steps=22,
    domain=li.Ball(radius=0.5),
)


@pytest.mark.parametrize("batches", BATCHES, ids=repr)
def test_a_release_never_costs_less_than_nothing(batches: object) -> None:
    """What holds with a checkpoint holds without it."""
    source = np.random.default_rng(11)
    runs = [random_run(source, batches) for _ in range(3)] + [UNFINISHED] * (batches == BATCHES[2])
    for run in runs:
        alone = li.account(run, DELTA).epsilon
        for release in sorted({run.steps // 2, run.batches.per_epoch, run.steps - 1} & set(range(1, run.steps))):
            assert li.account(run, DELTA, releases=[release]).epsilon >= alone * (1 - 1e-9)


@pytest.mark.parametrize("batches", BATCHES[:-1], ids=repr)
@pytest.mark.parametrize("bounded", [False, True])
def test_units_of_the_iterate_and_of_the_loss_do_not_matter(batches: object, bounded: bool) -> None:
    """x → a·x and f → b·f: Hessians by b/a², gradients by b/a, steps by a²/b, noise and domain by a."""
    a, b = 7.0, 0.3

    def run(x: float, f: float) -> li.Run:
        loss = li.losses.general(smoothness=f / x**2, strong_convexity=0.0, gradient_sensitivity=2 * f / x, clip=None)
        clipped = li.losses.network(clip=f / x, smoothness=f / x**2)
        chosen = clipped if isinstance(batches, li.Poisson) else loss
        domain = li.Ball(radius=2 * x) if bounded else li.Unbounded()
        return li.Run(chosen, batches, 0.5 * x**2 / f, li.OnIterate(std=0.2 * x), 12, domain)  # type: ignore[arg-type]

    one, two = li.account(run(1.0, 1.0), DELTA), li.account(run(a, b), DELTA)
    assert two.epsilon == pytest.approx(one.epsilon, rel=1e-6)
    assert two.lower_bound.epsilon == pytest.approx(one.lower_bound.epsilon, rel=1e-6)


CONVENTIONS = (
    li.OnIterate(std=0.5 * 0.06),
    li.OnMeanGradient(std=0.06),
    li.OnGradientSum(multiplier=0.06 * 10, clip=1.0),
    li.Langevin(std=0.5 * 0.06 / math.sqrt(2 * 0.5)),
)


@pytest.mark.parametrize("batches", BATCHES[:-1], ids=repr)
def test_every_convention_says_the_same(batches: object) -> None:
    """One noise on the iterate, written in four ways; batches of ten records."""
    if isinstance(batches, li.FullBatch):
        batches = li.FullBatch(records=10)
    loss = li.losses.ridge(feature_norm=1.0, clip=1.0, l2=0.1)
    runs = [li.Run(loss, batches, 0.5, noise, 12) for noise in CONVENTIONS]  # type: ignore[arg-type]
    reports = [li.account(run, DELTA) for run in runs]
    for report in reports[1:]:
        assert report.epsilon == pytest.approx(reports[0].epsilon, rel=1e-9)
        assert report.lower_bound.epsilon == pytest.approx(reports[0].lower_bound.epsilon, rel=1e-9)


def test_the_quadratic_oracle_agrees_with_the_update_as_written() -> None:
    """Constant steps by a formula, schedules by products, and both by going through the update."""
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.2, gradient_sensitivity=2.0, l2=0.05)
    for batches in (li.FullBatch(records=10), li.Cyclic(records=30, batch_size=10)):
        every = batches.per_epoch
        for steps in (1, 2, 3, 7, 12):
            run = li.Run(
                loss, batches, 0.5, li.OnMeanGradient(std=0.1), steps, prox=li.parts.ElasticNet(l1=0.1, l2=0.3)
            )
            scheduled = replace(run, step_size=tuple([0.5] * steps))
            gap, variance = 0.0, 0.0
            for step in range(steps):
                seen = (steps - 1 - step) % every == 0
                squeeze, factor = 1 / (1 + 0.5 * 0.3), 1 - 0.5 * (0.05 + 0.2)
                gap = squeeze * (factor * gap + (0.5 * 2.0 / batches.divisor if seen else 0.0))
                variance = squeeze**2 * (factor**2 * variance + (0.5 * 0.1) ** 2)
            by_hand = gap / math.sqrt(variance)
            assert exact_mu(run, 0.2) == pytest.approx(by_hand, rel=1e-12)
            assert exact_mu(scheduled, 0.2) == pytest.approx(by_hand, rel=1e-12)
