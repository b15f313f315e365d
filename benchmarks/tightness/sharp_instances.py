"""For each theorem runs in one dimension whose exact δ is known, chosen so that the theorem's bound is close to it.

A quadratic step x ← c·x + noise, a record that adds s/2 and a neighbour that takes s/2 away, or a record that pushes and one
that does not. Whether x > 0 survives a projection on an interval around 0: what it tells is exact in a bounded domain, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

import lastiterate as li
from lastiterate.auditing.filtered import smooth_steps
from lastiterate.facts import own
from lastiterate.kernel.prepaid import Smooth
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.process import Process, Update

Delta = Callable[[float], float]

FULL = li.FullBatch(records=10)
CYCLIC = li.Cyclic(records=40, batch_size=10)
THREE_OF_TEN = li.FixedSize(records=10, batch_size=3)
POISSON = li.Poisson(records=10, rate=0.3)
_EDGES = np.linspace(-9.0, 9.0, 901)
_FINE = np.linspace(-30.0, 30.0, 60_001)


@dataclass(frozen=True)
class Sharp:
    """A run, its exact δ(ε), and the ε at which the bounds are looked at; `what` says what it is."""

    what: str
    process: Process
    exact: Delta
    epsilons: tuple[float, ...]


def run(
    batches: Any, steps: int, s: Any, c: Any = 1.0, noise: Any = 1.0, diameter: float = math.inf, **more: Any
) -> Process:
    """A process of so many steps: sensitivity s, Lipschitz constant c."""

    def spread(value: Any) -> Floats:
        return np.broadcast_to(np.asarray(value, float), steps)

    drift, retain = more.pop("drift", math.inf), more.pop("retain", 1.0)
    arrays = [spread(value) for value in (s, noise, c, drift, retain, s)]
    return Process(batches, *arrays, diameter, own("the instance"), **more)


def gap(epsilon: float, mu: float) -> float:
    """θ_ε(μ) = Q(ε/μ − μ/2) − e^ε·Q(ε/μ + μ/2): the profile of N(0, 1) against N(μ, 1)."""
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def gaussian(mu: float) -> Delta:
    return lambda epsilon: gap(epsilon, mu)


def sampled(rate: float, mu: float) -> Delta:
    """A record that pushes, or one that does not, in one batch: δ = p·θ_ε'(μ), e^ε' = 1 + (e^ε − 1)/p."""
    return lambda epsilon: rate * gap(math.log1p(math.expm1(epsilon) / rate), mu)


def counted(steps: int, rate: float, mu: float) -> Delta:
    """A record that pushes, or one that does not, and steps that keep everything: Σ p_n·N(n·μ/√k, 1) against N(0, 1)."""
    turns = np.arange(steps + 1.0)
    chances = np.array([math.comb(steps, int(n)) * rate**n * (1 - rate) ** (steps - n) for n in turns])
    means = turns * mu / math.sqrt(steps)

    def exact(epsilon: float) -> float:
        ratio = np.logaddexp.reduce(np.log(chances) + np.outer(_FINE, means) - means**2 / 2, axis=1)
        above = float(np.interp(epsilon, ratio, _FINE))
        return float(chances @ ndtr(means - above) - math.exp(epsilon) * ndtr(-above))

    return exact


def average(mus: list[float]) -> Delta:
    """Opposite pushes, each place equally likely: the sign of x tells, whatever the place. At ε = 0 only."""
    return lambda epsilon: sum(gap(0.0, mu) for mu in mus) / len(mus) if epsilon == 0 else 0.0


def quadratic(given: Process, turns: Floats) -> Delta:
    """Two Gaussians, whose means drift apart at the record's turns as their variance grows."""
    apart, variance = 0.0, 0.0
    for factor, push, noise, turn in zip(given.lipschitz, given.sensitivity, given.noise, turns, strict=True):
        apart, variance = factor * apart + turn * push, factor**2 * variance + noise**2
    return gaussian(apart / math.sqrt(variance))


def two_poisson_steps(rate: float, mu: float) -> Delta:
    """Both steps released: (1 − p)N(0) + pN(±μ/2) twice, on cells in the plane, which tell no more than the laws."""
    laws = []
    for mean in (mu / 2, -mu / 2):
        away = _EDGES - mean
        pushed = np.where(away[1:] > 0, -np.diff(ndtr(-away)), np.diff(ndtr(away)))
        still = np.where(_EDGES[1:] > 0, -np.diff(ndtr(-_EDGES)), np.diff(ndtr(_EDGES)))
        one = (1 - rate) * still + rate * pushed
        laws.append(np.outer(one, one))
    return lambda epsilon: float(np.maximum(laws[0] - math.exp(epsilon) * laws[1], 0.0).sum())


def _on(batches: Any, steps: int, s: Any, c: Any, turns: Any, what: str, noise: Any = 1.0) -> Sharp:
    given = run(batches, steps, s, c, noise)
    return Sharp(what, given, quadratic(given, np.broadcast_to(np.asarray(turns, float), steps)), (0.3, 1.0, 3.0))


LAST_OF_FOUR = (np.arange(12) + 1) % 4 == 0
SCHEDULED = _on(
    FULL, 20, np.linspace(0.5, 0.1, 20), 0.9, 1.0, "quadratic losses, pushes that fall, noise in proportion",
    noise=np.linspace(1.0, 0.2, 20),
)  # fmt: skip
THIRTY = _on(FULL, 30, 0.3, 0.9, 1.0, "quadratic losses, 30 full batches")
ONE = _on(li.Cyclic(records=40, batch_size=10), 1, 6.0, 0.9, 1.0, "one step that sees the record")
LAST_OF_A_PASS = _on(CYCLIC, 4, 6.0, 0.001, LAST_OF_FOUR[:4], "the last batch of one pass")
FLAT = _on(li.Cyclic(records=10, batch_size=10), 30, 1.5, 1.0, 1.0, "linear losses, one batch, 30 epochs")
PASSES = _on(CYCLIC, 12, 1.0, 0.2, LAST_OF_FOUR, "quadratic losses, three epochs of four batches")
COMPOSED = _on(FULL, 5, 0.6, 1.0, 1.0, "linear losses, five full batches")
TURNS = _on(CYCLIC, 12, 1.0, 0.0, LAST_OF_FOUR, "the last turn alone")
MANY = _on(FULL, 200, 0.05, 0.95, 1.0, "quadratic losses, 200 full batches")


def interval(batches: Any, steps: int, s: float, width: float, what: str) -> Sharp:
    """Opposite pushes at every step on an interval, carried along on a grid; the error of the grid is taken off."""
    chain = li.auditing.Chain(
        lambda x: x, lambda x: x + s / 2, lambda x: x - s / 2, np.ones(steps), np.ones(steps), -width / 2, width / 2
    )

    def exact(epsilon: float) -> float:
        found, error = chain.delta_with_error(np.array([epsilon]))
        return float(found[0] - error[0])

    return Sharp(what, run(batches, steps, s, diameter=width, drift=s), exact, (0.0,))


def two_places(c: float, what: str) -> Sharp:
    """One epoch of two batches in a random order; the first step has hardly any noise."""
    given = run(li.Shuffled(records=20, batch_size=10), 2, 1.0, c, np.array([0.01, 1.0]))
    noise = math.hypot(c * 0.01, 1.0)
    return Sharp(what, given, average([c / noise, 1.0 / noise]), (0.0,))


def without_turning(instance: Sharp, batches: Any) -> Sharp:
    """The push is the same everywhere, and a linear step keeps what is prepaid."""
    given = instance.process
    nothing = np.broadcast_to(0.0, len(given))
    smooth = Smooth(given.lipschitz, nothing, nothing, nothing, nothing, turning=0.0, rank=1, start=0.0)
    return replace(instance, process=replace(given, batches=batches, smooth=smooth))


TINY_FULL = interval(FULL, 5, 1.0, 0.01, "a tiny interval, full batches")
TINY_SAMPLED = Sharp(
    "a tiny interval, one step on three records of ten",
    run(THREE_OF_TEN, 1, 1.0, diameter=0.01, drift=1.0),
    average([1.0] * 3 + [1e-300] * 7),
    (0.0,),
)
ACROSS = Sharp(
    "pushed to opposite ends of the interval, then one step more",
    run(FULL, 2, np.array([40.0, 0.5]), 0.9, np.array([0.01, 1.0]), 1.0),
    average([0.9 * 1.0 + 0.5]),
    (0.0,),
)
WIDE_FULL = interval(FULL, 6, 2.0, 2.0, "from end to end of an interval, full batches")
WIDE_CYCLIC = interval(li.Cyclic(records=10, batch_size=10), 6, 2.0, 2.0, "from end to end of an interval, one batch")
TWO_PLACES = two_places(0.8, "one epoch of two batches in a random order")
HIDDEN_BY_ALL = without_turning(
    _on(CYCLIC, 12, 1.0, 0.97, LAST_OF_FOUR, "quadratic losses, all noise hides the record"), CYCLIC
)
TWO_PREPAID = without_turning(TWO_PLACES, li.Shuffled(records=20, batch_size=10, each_epoch=False))
NEARLY_STILL = Sharp(
    "one epoch of two batches that may move iterates apart a little, and do not",
    replace(
        run(li.Shuffled(records=20, batch_size=10), 2, 1.0, 1.05),
        smooth=Smooth(
            *(np.broadcast_to(value, 2) for value in (1.0, 0.05, 0.0, 0.0, 0.0)), turning=0.0, rank=1, start=0.0
        ),
    ),
    average([math.sqrt(0.5)] * 2),
    (0.0,),
)
GROWING = two_places(1.3, "one epoch of two batches that move iterates apart, in a random order")
FORGOTTEN = Sharp(
    "full decay: the last step alone",
    run(FULL, 4, 1.0, math.inf, drift=1.0, retain=0.0, dimension=1),
    average([1.0]),
    (0.0,),
)
FORGOTTEN_SAMPLED = Sharp(
    "full decay, one step on three records of ten",
    run(THREE_OF_TEN, 1, 1.0, math.inf, drift=1.0, retain=0.0, dimension=1),
    sampled(0.3, 1.0),
    (0.0,),
)
ONE_SAMPLED = Sharp(
    "one step on three records of ten", run(THREE_OF_TEN, 1, 1.0, 0.5), sampled(0.3, 1.0), (0.0, 0.3, 1.0)
)
COUNTED = without_turning(
    Sharp(
        "steps on three records of ten that keep everything: how often the record took part",
        run(THREE_OF_TEN, 12, 1.0),
        counted(12, 0.3, 1.0),
        (0.0, 0.3, 1.0),
    ),
    THREE_OF_TEN,
)
MANY_SAMPLED = Sharp(
    "steps on three records of ten that forget everything before",
    run(THREE_OF_TEN, 50, 1.0, 0.001),
    sampled(0.3, 1.0),
    (0.0, 0.3, 1.0),
)
TWO_RELEASED = Sharp(
    "two Poisson steps, both released", run(POISSON, 2, 1.4), two_poisson_steps(0.3, 1.4), (0.0, 0.3, 1.0)
)
ALWAYS = Sharp(
    "one step on all of ten records",
    run(li.FixedSize(records=10, batch_size=10), 1, 6.0, 0.001),
    gaussian(6.0),
    (3.0, 20.0),
)


def with_momentum(batches: Any, steps: int, curvature: float) -> Process:
    update = Update(li.SGD(momentum=0.1), li.LAST, (curvature, 0.0))
    return replace(run(batches, steps, 1.0), update=update)


MOMENTUM = Sharp(
    "the last batch of a pass with momentum, on steep quadratic losses",
    with_momentum(CYCLIC, 4, 1.1),
    gaussian(1 / math.sqrt(1 + 0.1**2 + 0.01**2)),  # what is left of a step: 1, 0, −0.1, −0.01
    (0.0, 0.3, 1.0),
)
LEFT = np.array([(1 - 0.5 ** (k + 1)) / 0.5 for k in range(12)])  # of a step with momentum 0.5 on linear losses
PREPAID_MOMENTUM = Sharp(
    "linear losses with momentum, three epochs of four batches, all noise hides the record",
    replace(
        run(CYCLIC, 12, 1.0),
        update=Update(li.SGD(momentum=0.5), li.LAST, (0.0, 0.0)),
        smooth=smooth_steps(12, 0.0, 0.0, 0.0, 0.0),
    ),
    gaussian(max(float(LEFT[k::4].sum()) for k in range(4)) / math.sqrt(float(np.square(LEFT).sum()))),
    (0.0, 0.3, 1.0),
)
TWO_WITH_MOMENTUM = Sharp(
    "one epoch of two batches with momentum, in a random order",
    with_momentum(li.Shuffled(records=20, batch_size=10), 2, 0.8),
    average([one / math.hypot(1.0, 0.3) for one in (1.0, 0.3)]),  # 1 is left of the last step, 0.3 of the one before
    (0.0,),
)
BINS = li.BallsAndBins(records=20, batches=2)


def in_the_plane(mu: float) -> Delta:
    """One epoch of two batches, both iterates released: the record in one of them, against none."""
    alone, nothing = (_cells(mean) for mean in (mu, 0.0))
    present = (np.outer(alone, nothing) + np.outer(nothing, alone)) / 2
    absent = np.outer(nothing, nothing)
    return lambda epsilon: float(np.maximum(present - math.exp(epsilon) * absent, 0.0).sum())


def _cells(mean: float) -> Floats:
    away = _EDGES - mean
    return np.where(away[1:] > 0, -np.diff(ndtr(-away)), np.diff(ndtr(away)))


def two_bins(c: float, what: str) -> Sharp:
    """The first step has hardly any noise: of the record's two places the first counts c times."""
    given = run(BINS, 2, 1.0, c, np.array([0.01, 1.0]), adjacency=li.ZERO_OUT)
    spread = math.hypot(c * 0.01, 1.0)

    def exact(epsilon: float) -> float:
        mus, factor = (c / spread, 1.0 / spread), math.exp(epsilon)
        absent = _cells(0.0)
        present = sum(_cells(mu) for mu in mus) / 2
        return float(np.maximum(present - factor * absent, 0.0).sum())

    return Sharp(what, given, exact, (0.3, 1.0))


TWO_BINS = two_bins(0.8, "one epoch of two bins, the record there or not")
PREPAID_BINS = Sharp(
    "one epoch of two bins, all noise hides the record",
    replace(run(BINS, 2, 1.0, adjacency=li.ZERO_OUT), smooth=smooth_steps(2, 0.0, 0.0, 0.0, 0.0)),
    gaussian(math.sqrt(0.5)),
    (0.3, 1.0),
)
ONE_BIN = li.BallsAndBins(records=10, batches=1)
FORGETFUL_BIN = Sharp(
    "one bin, epochs that forget everything before",
    run(ONE_BIN, 8, 1.0, 0.001, adjacency=li.ZERO_OUT),
    gaussian(1.0),
    (0.3, 1.0),
)
TINY_BIN = replace(
    TINY_FULL,
    what="a tiny interval, one bin, the others push against the record",
    process=run(ONE_BIN, 5, 1.0, diameter=0.01, drift=1.0, adjacency=li.ZERO_OUT),
)
BOTH_BINS = Sharp(
    "two bins, both iterates released", run(BINS, 2, 1.4, adjacency=li.ZERO_OUT), in_the_plane(1.4), (0.3, 1.0)
)

# For each theorem its instances, and how close to its bound they have to come: exact/bound of δ, and of ε at δ = 1e-5.
INSTANCES: dict[str, tuple[tuple[Sharp, ...], float]] = {
    "shift-engine": ((THIRTY, MANY, COMPOSED, SCHEDULED, TURNS), 0.999),
    "random-order": ((TWO_PLACES,), 0.99),
    "prepayment": ((HIDDEN_BY_ALL,), 0.99),
    "prepayment/random-order": ((TWO_PREPAID,), 0.99),
    "prepayment/epoch-by-epoch": ((NEARLY_STILL,), 0.97),
    "hidden-place/prepaid": ((TWO_PREPAID,), 0.99),
    "random-order/epoch-by-epoch": ((GROWING,), 0.99),
    "hidden-place": ((TWO_PLACES,), 0.99),
    "hidden-place/epoch-by-epoch": ((GROWING,), 0.97),
    "block-mixing": ((TINY_FULL, TINY_SAMPLED, TINY_BIN), 0.97),
    "reflection": ((TINY_FULL, TINY_SAMPLED), 0.97),
    "regularised-mixing": ((FORGOTTEN, FORGOTTEN_SAMPLED), 0.97),
    "nonlinear-contraction": ((TINY_FULL, TINY_SAMPLED), 0.97),
    "asoodeh2023/projected": ((TINY_FULL, TINY_SAMPLED), 0.97),
    "asoodeh2023/regularised": ((FORGOTTEN, FORGOTTEN_SAMPLED), 0.97),
    "bok2024/full-batch/strongly-convex": ((THIRTY, MANY), 0.999),
    "bok2024/full-batch/constrained": ((WIDE_FULL,), 0.9),
    "bok2024/cyclic/strongly-convex": ((PASSES,), 0.97),
    "bok2024/cyclic/constrained": ((WIDE_CYCLIC,), 0.9),
    "feldman2018/one-pass": ((LAST_OF_A_PASS,), 0.95),
    "balle2019/one-pass/convex": ((LAST_OF_A_PASS,), 0.95),
    "balle2019/one-pass/strongly-convex": ((LAST_OF_A_PASS,), 0.95),
    "boninsegna2023/fixed-batches": ((FLAT,), 0.95),
    "kong2025/bounded-domain": ((ACROSS, TINY_FULL), 0.97),
    "kong2025/cyclic": ((ONE, PASSES), 0.99),
    "chourasia2021/full-batch": ((MANY,), 0.6),
    "ye2022/random": ((ALWAYS,), 0.98),
    "ye2022/shuffled": ((LAST_OF_A_PASS,), 0.95),
    "linear-optimiser": ((MOMENTUM,), 0.99),
    "linear-optimiser/prepaid": ((PREPAID_MOMENTUM,), 0.95),
    "linear-optimiser/random-order": ((TWO_WITH_MOMENTUM,), 0.95),
    "bok2024/full-batch/composition": ((COMPOSED,), 0.999),
    "bok2024/cyclic/composition": ((FLAT, ONE), 0.999),
    "bok2024/random/strongly-convex": ((ONE_SAMPLED,), 0.3),
    "bok2024/random/constrained": ((TINY_SAMPLED,), 0.5),
    "bok2024/random/composition": ((ONE_SAMPLED, TWO_RELEASED), 0.99),
    "window-tail": ((ONE_SAMPLED, MANY_SAMPLED), 0.99),
    "hidden-participation": ((ONE_SAMPLED,), 0.99),
    "balls-and-bins": ((BOTH_BINS,), 0.99),
    "balls-and-bins/hidden-place": ((TWO_BINS,), 0.99),
    "balls-and-bins/prepaid": ((PREPAID_BINS,), 0.97),
    "balls-and-bins/window-tail": ((FORGETFUL_BIN,), 0.97),
    "hidden-participation/prepaid": ((COUNTED,), 0.97),
}


@dataclass(frozen=True)
class Closeness:
    """exact/bound at its largest: of δ over the instance's ε, and of ε at δ = 1e-5 (0 where that is not known)."""

    what: str
    delta: float
    epsilon: float

    @property
    def largest(self) -> float:
        return max(self.delta, self.epsilon)


def closeness(theorem: li.theorems.Theorem, instance: Sharp) -> Closeness:
    """How close this instance comes to the theorem's bound; above 1 the theorem is wrong."""
    notion = theorem.notion(instance.process)
    deltas = [instance.exact(epsilon) / float(notion.delta(epsilon)) for epsilon in instance.epsilons]
    bound = float(notion.epsilon(1e-5))
    known = len(instance.epsilons) > 1 and math.isfinite(bound) and bound > 0
    return Closeness(instance.what, max(deltas), _epsilon(instance.exact, 1e-5, bound) / bound if known else 0.0)


def _epsilon(exact: Delta, delta: float, bound: float) -> float:
    """The ε at which the exact δ comes down to this, by halving."""
    low, high = 0.0, 2 * bound
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if exact(middle) > delta else (low, middle)
    return low
