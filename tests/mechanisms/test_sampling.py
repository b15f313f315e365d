"""The exponential mechanism and Langevin Monte Carlo."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import brentq

import lastiterate as li
from lastiterate.curves.profile import BoundedRange
from lastiterate.facts import facts_to_json
from lastiterate.runs.noise import EXACT, STRAYING
from raising import raises


def test_exponential_mechanism_when_strongly_convex() -> None:
    """Tight for Gaussians: N(0, 1/m) and N(L/m, 1/m) are L/√m apart."""
    assert li.mechanisms.exponential_mechanism(lipschitz=0.3, strong_convexity=4.0).mu == pytest.approx(0.15)  # type: ignore[attr-defined]


def test_on_a_bounded_set_the_better_of_gaussian_and_pure_privacy() -> None:
    both = li.mechanisms.exponential_mechanism(lipschitz=1.0, diameter=2.0)
    gaussian, pure = li.notions.GaussianDP(2 * math.sqrt(2.0)), li.notions.Profile(epsilons=[2.0], deltas=[0.0])
    for epsilon in (0.1, 1.0, 1.9, 5.0):
        assert both.delta(epsilon) <= min(gaussian.delta(epsilon), pure.delta(epsilon)) * (1 + 1e-9)


def test_where_they_cross() -> None:
    """The advantage at ε = 0 of (2LD, 0)-DP is tanh(LD), that of μ-GDP 2Φ(μ/2) − 1: equal at LD ≈ 0.676.

    That is how Bok2024, §D.4, compares them; (LD, 0)-DP holds as well, and is better up to larger LD.
    """

    def ahead(product: float) -> float:
        return float(li.notions.GaussianDP(2 * math.sqrt(product)).delta(0.0)) - math.tanh(product)

    crossing = brentq(ahead, 0.2, 2.0)
    assert crossing == pytest.approx(0.676, abs=1e-3)


@pytest.mark.parametrize("slope", [0.3, 1.0, 3.0])
def test_half_of_the_usual_pure_epsilon_holds(slope: float) -> None:
    """Errata E5.4: for F = 0 and F' = slope·x on [0, 1] the log ratio of the densities is at most LD, both ways."""
    x = np.linspace(0, 1, 100_001)
    tilted = np.exp(-slope * x)
    ratio = np.log(tilted / trapezoid(tilted, x))
    assert np.abs(ratio).max() <= slope
    pure = li.mechanisms.exponential_mechanism(lipschitz=slope, diameter=1.0)
    assert float(pure.delta(slope * (1 + 1e-9))) == 0.0


@pytest.mark.parametrize("width", [1e-6, 0.3, 1.0, 8.0, 2000.0])
def test_a_bounded_range_is_attained_by_two_outcomes_and_by_no_more(width: float) -> None:
    """Enumerated: two outcomes whose losses are the ends of an interval of this length, wherever it lies."""
    ours = BoundedRange(width)
    for share in (0.0, 0.2, 0.7, 0.99):
        epsilon = share * width
        ends = np.append(np.linspace(0.0, 1.0, 2001), 0.5 * (1 + share)) * width  # the upper end of the interval
        upper = -np.expm1(ends - width) / -np.expm1(-width)  # P of the outcome whose loss is there
        exact = float((upper * -np.expm1(epsilon - np.maximum(ends, epsilon))).max())
        assert exact <= float(ours.delta(epsilon)) <= exact * (1 + 1e-5)
    assert float(ours.delta(width * (1 + 1e-11))) == 0.0
    for delta in (1e-12, 1e-3, 0.2):
        assert float(ours.delta(max(ours.epsilon(delta) * (1 - 1e-6), 0.0))) > delta or ours.epsilon(delta) == 0
        assert float(ours.delta(ours.epsilon(delta) * (1 + 1e-12))) <= delta
    pure = li.notions.Profile(epsilons=[width], deltas=[0.0])
    assert ours.tradeoff(0.1) >= pure.tradeoff(0.1) * (1 - 1e-9)


@pytest.mark.parametrize(("slope", "hill"), [(1.0, 0.0), (1.0, 6.0), (3.0, 40.0)])
def test_the_exponential_mechanism_is_within_its_range(slope: float, hill: float) -> None:
    """A hill ± slope·x/2 on [0, 1], on a grid: a high hill leaves the two ends alone."""
    x = np.linspace(0, 1, 200_001)
    p, q = (np.exp(-hill * 4 * x * (1 - x) - tilt * x) for tilt in (-slope / 2, slope / 2))
    p, q = p / p.sum(), q / q.sum()
    ours = BoundedRange(slope)
    for epsilon in (0.0, 0.1 * slope, 0.5 * slope):
        exact = max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p)))
        assert exact <= float(ours.delta(epsilon))
    if hill > 30:
        assert float(np.maximum(p - q, 0).sum()) > 0.9 * float(ours.delta(0.0))


def test_the_range_is_what_the_exponential_mechanism_pays_for() -> None:
    """LD = 1: tanh(1/4) at ε = 0, where (LD, 0)-DP alone is tanh(1/2)."""
    found = li.mechanisms.exponential_mechanism(lipschitz=0.5, diameter=2.0)
    assert float(found.delta(0.0)) == pytest.approx(math.tanh(0.25), rel=1e-9)


@pytest.mark.parametrize("steps", [1, 10, 5000])
def test_langevin_is_exact_when_strongly_convex(steps: int) -> None:
    """μ = √((1 − c^T)/(1 + c^T)·(2 − ηm)/2)·L/√m, and the limit of Proposition 5.1."""
    sample = li.mechanisms.langevin(
        lambda x: x, [0.0, 0.0], lipschitz=0.4, step_size=0.1, steps=steps, smoothness=1.0, strong_convexity=1.0, seed=1
    )
    power = 0.9**steps
    exact = math.sqrt((1 - power) / (1 + power) * (2 - 0.1) / 2) * 0.4
    ideal = li.account(replace(sample.run, arithmetic=EXACT), 1e-5)
    assert ideal.mu == pytest.approx(exact, rel=1e-9)
    assert ideal.ratio == pytest.approx(1.0, abs=1e-9)
    assert exact < sample.report(1e-5).mu < exact + 2.1 * STRAYING
    assert not sample.private


@pytest.mark.parametrize(("given", "code"), [({"seed": 1}, "noise_seeded"), ({"trace": True}, "trace_kept")])
def test_what_may_not_leave_is_said_first(given: dict[str, object], code: str) -> None:
    sample = li.mechanisms.langevin(lambda x: x, 0.0, lipschitz=0.4, step_size=0.1, steps=3, smoothness=1.0, **given)  # type: ignore[arg-type]
    first = str(sample.report(1e-5)).splitlines()[0]
    assert first.startswith("DO NOT RELEASE")
    assert first == str(sample.caveats[0])
    assert [one.code for one in sample.caveats] == [code]
    assert not sample.private
    assert sample.report(1e-5).to_dict()["caveats"] == facts_to_json(sample.caveats)


def test_langevin_starts_in_its_ball() -> None:
    sample = li.mechanisms.langevin(
        lambda x: 0 * x, [30.0, 40.0], lipschitz=1.0, step_size=0.1, steps=1, smoothness=1.0, radius=5.0, trace=True
    )
    assert sample.trace is not None
    assert sample.trace[0] == pytest.approx([3.0, 4.0])


def test_projected_langevin() -> None:
    sample = li.mechanisms.langevin(
        lambda x: np.ones_like(x), np.zeros(3), lipschitz=0.4, step_size=0.1, steps=500, smoothness=0.0, radius=0.5
    )
    assert sample.private
    assert np.linalg.norm(sample.value) <= 0.5 * (1 + 1e-12)
    printed = math.sqrt(4 * 0.4 * 1.0 + 2 * 0.1 * 0.4**2)
    assert sample.report(1e-5).epsilon <= li.notions.GaussianDP(printed).epsilon(1e-5)


def test_langevin_reaches_its_gaussian() -> None:
    """F(x) = ‖x − 3‖²/2 in 20,000 coordinates: mean 3, variance 1/(1 − η/2)."""
    sample = li.mechanisms.langevin(
        lambda x: x - 3, np.zeros(20_000), lipschitz=1.0, step_size=0.2, steps=60, smoothness=1.0, strong_convexity=1.0
    )
    assert sample.value.mean() == pytest.approx(3.0, abs=0.05)
    assert sample.value.var() == pytest.approx(1 / 0.9, rel=0.05)


def test_a_trace_is_kept_on_request_and_is_not_private(tmp_path: Path) -> None:
    given = {"lipschitz": 1.0, "step_size": 0.1, "steps": 50, "smoothness": 1.0, "strong_convexity": 1.0}
    sample = li.mechanisms.langevin(lambda x: x, np.zeros(2), trace=True, **given)  # type: ignore[arg-type]
    assert sample.trace is not None
    assert sample.trace.shape == (51, 2)
    assert not sample.private
    sample.plot(tmp_path / "trace.png")
    assert (tmp_path / "trace.png").stat().st_size > 1000
    with raises("trace_not_kept", kind=li.errors.InvalidInput):
        li.mechanisms.langevin(lambda x: x, np.zeros(2), **given).plot()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gradient": lambda x: np.zeros(3)}, "shape"),
        ({"gradient": lambda x: np.full(2, np.nan)}, "finite"),
        ({"start": [math.inf, 0.0]}, "start"),
        ({"lipschitz": 0.0}, "lipschitz"),
        ({"smoothness": None}, "smoothness"),
        ({"step_size": [0.1] * 5}, "step_size"),
        ({"gradient": None}, "gradient"),
        ({"gradient": lambda x: "a"}, "gradient"),
        ({"gradient": lambda x: 1e300 * x + 1e300, "radius": 1.0}, "is lost"),
        ({"steps": 0}, "steps"),
        ({"radius": -1.0}, "radius"),
    ],
)
def test_bad_arguments(change: dict[str, object], said: str) -> None:
    given = {
        "gradient": lambda x: x,
        "start": [0.0, 0.0],
        "lipschitz": 1.0,
        "step_size": 0.1,
        "steps": 5,
        "smoothness": 1.0,
    }
    with pytest.raises(li.errors.InvalidInput, match=said):
        li.mechanisms.langevin(**{**given, **change})  # type: ignore[arg-type]
    with raises("exponential_unbounded", kind=li.errors.InvalidInput):
        li.mechanisms.exponential_mechanism(lipschitz=1.0)


def test_a_gradient_that_the_user_keeps_stays_as_it_is() -> None:
    kept = np.array([0.25, -0.5])
    li.mechanisms.langevin(lambda x: kept, np.zeros(2), lipschitz=0.4, step_size=0.1, steps=3, smoothness=1.0, seed=1)
    assert kept.tolist() == [0.25, -0.5]
