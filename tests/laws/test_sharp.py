"""Every bound meets an instance close to it, and the formula of every paper meets itself, written once more."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from benchmarks.tightness.sharp_instances import INSTANCES, closeness, gap

import lastiterate as li
from lastiterate.theorems.papers.asoodeh2023 import printed_ratio, sharper_ratio
from lastiterate.theorems.window_tail import window_of
from processes import process

BY_NAME = {theorem.name: theorem for theorem in li.theorems.ALL}
# Loose by what they leave out, however the run is chosen: their formulas are held from below instead.
LOOSE = {"chourasia2021/full-batch", "bok2024/random/strongly-convex", "bok2024/random/constrained"}


def test_every_theorem_has_instances() -> None:
    assert set(INSTANCES) == set(BY_NAME)
    assert {name for name, (_, floor) in INSTANCES.items() if floor < 0.9} == LOOSE


@pytest.mark.parametrize("name", BY_NAME)
def test_an_instance_is_within_a_tenth_of_the_bound(name: str) -> None:
    """A bound on δ, or on ε, that is a tenth smaller would be refuted; and no instance lies above the bound."""
    instances, floor = INSTANCES[name]
    found = [closeness(BY_NAME[name], one) for one in instances]
    assert max(one.delta for one in found) <= 1 + 1e-9
    assert max(one.epsilon for one in found) <= 1 + 1e-9
    assert max(one.largest for one in found) >= floor
    assert floor >= (0.9 if name not in LOOSE else 0.3)


FULL, CYCLIC = li.FullBatch(records=10), li.Cyclic(records=40, batch_size=10)
ALL = li.FixedSize(records=10, batch_size=10)


def mu_of(name: str, *arguments: object, **more: object) -> float:
    return BY_NAME[name].notion(process(*arguments, **more)).mu  # type: ignore[arg-type, attr-defined, no-any-return]


def rho_of(name: str, *arguments: object, **more: object) -> float:
    """The slope of a Rényi curve that is linear."""
    notion = BY_NAME[name].notion(process(*arguments, **more))  # type: ignore[arg-type]
    assert notion.rdp(2.0) == pytest.approx(float(notion.rdp(7.0)) * 2 / 7, rel=1e-12)
    return float(notion.rdp(2.0)) / 2


def is_just_above(found: float, exact: object) -> bool:
    """Equal, and rounded up if at all."""
    return bool(exact <= found <= exact * (1 + mpmath.mpf("1e-9")))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("s", "noise", "c", "steps"), [(0.7, 1.3, 0.9, 12), (2.0, 0.5, 0.3, 4), (0.1, 1.0, 0.999, 400)]
)
def test_closed_forms_for_contracting_steps(s: float, noise: float, c: float, steps: int) -> None:
    r, q, n = mpmath.mpf(s) / noise, mpmath.mpf(c), steps // 4
    power = q**steps
    assert is_just_above(
        mu_of("bok2024/full-batch/strongly-convex", FULL, steps, s, noise, c),
        r * mpmath.sqrt((1 - power) / (1 + power) * (1 + q) / (1 - q)),
    )
    last = q ** (4 * (n - 1))
    repeated = q**6 * (1 - q**2) / (1 - q**4) ** 2 * (1 - last) / (1 + last)
    assert is_just_above(
        mu_of("bok2024/cyclic/strongly-convex", CYCLIC, steps, s, noise, c), r * mpmath.sqrt(1 + repeated)
    )
    left = q**6 / mpmath.fsum(q ** (2 * j) for j in range(4))
    assert is_just_above(mu_of("kong2025/cyclic", CYCLIC, steps, s, noise, c), r * mpmath.sqrt(1 + (n - 1) * left))
    lost = 1 - q
    assert is_just_above(
        rho_of("chourasia2021/full-batch", FULL, steps, s, noise, c),
        4 / lost * r**2 / 2 * (1 - mpmath.exp(-lost * steps / 2)),
    )
    # Ye2022 3.3, l = 4: h = 2; earlier epochs cost ε_2·(1 − c^{4(K−1)})/(1 − c⁴), the last ε_1.
    second = q**2 * (1 - q**2) / (1 - q**4)
    assert is_just_above(
        rho_of("ye2022/shuffled", CYCLIC, steps, s, noise, c),
        r**2 / 2 * (1 + second * (1 - q ** (4 * (n - 1))) / (1 - q**4)),
    )


@pytest.mark.parametrize(("s", "noise", "steps"), [(0.7, 1.3, 12), (2.0, 0.5, 4), (0.1, 1.0, 400)])
def test_closed_forms_for_convex_steps(s: float, noise: float, steps: int) -> None:
    r, turns = mpmath.mpf(s) / noise, steps // 4
    assert is_just_above(mu_of("bok2024/full-batch/composition", FULL, steps, s, noise), r * mpmath.sqrt(steps))
    assert is_just_above(mu_of("bok2024/cyclic/composition", CYCLIC, steps, s, noise), r * mpmath.sqrt(turns))
    assert is_just_above(
        rho_of("boninsegna2023/fixed-batches", CYCLIC, steps, s, noise), r**2 / 2 * (1 + (turns - mpmath.mpf(1)) / 4)
    )
    for name in ("feldman2018/one-pass", "balle2019/one-pass/convex", "balle2019/one-pass/strongly-convex"):
        assert is_just_above(rho_of(name, CYCLIC, 4, s, noise, 0.9), r**2 / 2)


@pytest.mark.parametrize(("s", "noise", "diameter"), [(0.5, 1.3, 1.0), (0.5, 0.7, 1.2), (2.0, 1.0, 0.3)])
def test_closed_forms_for_bounded_domains(s: float, noise: float, diameter: float) -> None:
    t, d = mpmath.mpf(s), mpmath.mpf(diameter)
    turns = math.ceil(diameter / s)
    assert is_just_above(
        mu_of("bok2024/full-batch/constrained", FULL, 40, s, noise, diameter=diameter),
        mpmath.sqrt(3 * t * d + t**2 * turns) / noise,
    )
    assert is_just_above(
        mu_of("bok2024/cyclic/constrained", CYCLIC, 40, s, noise, diameter=diameter),
        mpmath.sqrt(3 * t * d / 4 + t**2 + t**2 / 4 * turns) / noise,
    )
    for c, drift in ((0.6, 0.9), (1.5, 0.9), (1.5, math.inf)):
        given = process(FULL, 5, s, noise, c, diameter, drift=s + drift)
        reach = min(c * diameter + s, diameter + s + drift)
        assert is_just_above(BY_NAME["kong2025/bounded-domain"].notion(given).mu, mpmath.mpf(reach) / noise)  # type: ignore[attr-defined]
        assert sharper_ratio(given) == pytest.approx(reach / noise, rel=1e-9)
        assert sharper_ratio(given) >= reach / noise
        assert printed_ratio(given) == pytest.approx((diameter + s + drift) / noise, rel=1e-9)


@pytest.mark.parametrize(("rate", "s", "c", "steps"), [(3, 0.7, 0.9, 12), (1, 1.5, 0.5, 3), (10, 0.3, 0.8, 40)])
def test_ye2022_is_its_recursion(rate: int, s: float, c: float, steps: int) -> None:
    """S ← p·e^{α(α−1)s²/2}·S + (1 − p)·S^{c²} from S = 1, in 40 digits."""
    notion = BY_NAME["ye2022/random"].notion(process(li.FixedSize(records=10, batch_size=rate), steps, s, 1.0, c))
    for order in (2.0, 5.0, 20.0):
        at = min(notion.orders, key=lambda one: abs(one - order))  # type: ignore[attr-defined]
        with mpmath.workdps(40):
            p, a, total = mpmath.mpf(rate) / 10, mpmath.mpf(at), mpmath.mpf(1)
            for _ in range(steps):
                total = p * mpmath.exp(a * (a - 1) * mpmath.mpf(s) ** 2 / 2) * total + (1 - p) * total ** (
                    mpmath.mpf(c) ** 2
                )
            assert is_just_above(float(notion.rdp(at)), mpmath.log(total) / (a - 1))


EPSILONS = (0.2, 0.7, 1.5, 3.0)

GRID = 1e-3  # the best of a grid may lie so much above the best between its points


@pytest.mark.parametrize(("s", "c", "steps"), [(0.2, 0.8, 12), (0.05, 0.95, 60)])
def test_bok2024_4_9_where_every_batch_has_the_record(s: float, c: float, steps: int) -> None:
    """G(2αcz) ⊗ G(2βs) ⊗ G(2s)^window, z = s(c^window − c^{T−1})/(1 − c): over every window and fine splits."""
    found = BY_NAME["bok2024/random/strongly-convex"].notion(process(ALL, steps, s, 1.0, c))
    squares = []
    for window in range(1, steps):
        z = s * (c**window - c ** (steps - 1)) / (1 - c)
        for alpha in np.geomspace(1.005, 8.0, 400):
            beta = 1 / math.sqrt(1 - 1 / alpha**2)
            squares.append((2 * alpha * c * z) ** 2 + (2 * beta * s) ** 2 + window * (2 * s) ** 2)
    mu = math.sqrt(min(squares))
    for epsilon in EPSILONS:
        assert gap(epsilon, mu) * (1 - GRID) <= found.delta(epsilon) <= gap(epsilon, 1.15 * mu)


@pytest.mark.parametrize(("s", "diameter", "steps"), [(0.1, 1.0, 30), (0.02, 2.0, 200)])
def test_bok2024_4_10_where_every_batch_has_the_record(s: float, diameter: float, steps: int) -> None:
    """G(αD/√window) ⊗ G(2βs)^window."""
    found = BY_NAME["bok2024/random/constrained"].notion(process(ALL, steps, s, 1.0, diameter=diameter))
    alphas = np.geomspace(1.005, 8.0, 400)
    betas = 1 / np.sqrt(1 - 1 / alphas**2)
    mu = min(
        float(np.sqrt((alphas * diameter) ** 2 / window + window * (2 * betas * s) ** 2).min())
        for window in range(1, steps + 1)
    )
    for epsilon in EPSILONS:
        assert gap(epsilon, mu) * (1 - GRID) <= found.delta(epsilon) <= gap(epsilon, 1.15 * mu)


@pytest.mark.parametrize(("s", "c", "steps"), [(0.3, 0.8, 10), (0.1, 0.97, 60), (1.0, 0.5, 6)])
def test_window_and_tail_where_every_batch_has_the_record(s: float, c: float, steps: int) -> None:
    """θ_a(ν_k) + e^a·θ_{ε−a}(s√k), ν_k = B·c^k·√((1 − c²)/(1 − c^{2k})), B = s(1 − c^{T−k})/(1 − c), over all k and a."""
    given = process(ALL, steps, s, 1.0, c)
    whole = BY_NAME["window-tail"].notion(given)
    for epsilon in EPSILONS:
        best = 1.0
        for k in range(1, steps + 1):
            before = s * (1 - c ** (steps - k)) / (1 - c)
            nu = before * c**k * math.sqrt((1 - c**2) / (1 - c ** (2 * k)))
            splits = np.linspace(0.0, epsilon, 801).tolist()
            of_window = [(gap(a, nu) if nu else 0.0) + math.exp(a) * gap(epsilon - a, s * math.sqrt(k)) for a in splits]
            one = min(of_window)
            best = min(best, one)
            found = float(window_of(given, k).delta(epsilon))
            assert found >= one * (1 - GRID), k
            assert found <= one * 1.3 or one < 1e-4, k
        assert float(whole.delta(epsilon)) >= best * (1 - GRID)
        assert float(whole.delta(epsilon)) <= best * 1.2 or best < 1e-4
