"""Balle et al. 2019, Examples 1 to 5 and Theorem 8, in numbers."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad

from lastiterate.mechanisms.additive import GaussianAfterGaussian, LaplaceAfterLaplace, LipschitzThenGaussian
from lastiterate.mechanisms.diffusions import Brownian, Diffusion, OrnsteinUhlenbeck
from lastiterate.reproduction.exhibit import Cell, Claim, Exhibit, Made, Setting, from_curves, judged, judged_curves
from lastiterate.reproduction.pictures import Panel, Role, line

_POINTS = "points of the formula"
_GRID = np.geomspace(0.1, 10.0, 41)


def _close(name: str, formula: float, value: float) -> Cell:
    """A formula of the paper against the library, to nine digits."""
    return Cell(name, repr(float(formula)), value, tolerance=1e-9 * abs(formula))


def _rho(mu: float) -> float:
    return mu**2 / 2


def _example_1(setting: Setting) -> Made:
    """Noise 1, then noise σ₂: Δ²/(2(σ₁² + σ₂²)), exact."""
    formula = [1 / (2 * (1 + x**2)) for x in _GRID]
    ours = [_rho(GaussianAfterGaussian(1.0, 1.0, x).guarantee.mu) for x in _GRID]
    exact = [(1 / math.hypot(1.0, x)) ** 2 / 2 for x in _GRID]  # two Gaussians, one apart
    curves = (
        line("σ₁ alone", _GRID, [0.5] * len(_GRID), Role.OTHER),
        line("Example 1", _GRID, formula, Role.PAPER),
        line("ours", _GRID, ours, Role.OURS),
        line("exact", _GRID, exact, Role.LOWER),
    )
    panel = Panel("Gaussian noise after Gaussian noise", "σ₂/σ₁", "ρ = ε/α", curves, log_x=True, log_y=True)
    cells = [_close(f"σ₂ = {x:.3g}", f, o) for x, f, o in zip(_GRID, formula, ours, strict=True)]
    claim = Claim("ρ at σ₁ = σ₂ = Δ = 1", 0.25, _rho(GaussianAfterGaussian(1.0, 1.0, 1.0).guarantee.mu), 0.25)
    return from_curves((panel,), judged(cells, kind=_POINTS, note="variances add, and the bound is exact"), (claim,))


def _exact_divergence(mechanism: LaplaceAfterLaplace, order: float) -> float:
    """By quadrature of density (6), without the tails beyond ±40: a lower bound."""

    def integrand(x: float) -> float:
        one, two = mechanism.density([x, x - mechanism.sensitivity])
        return float(one * (one / two) ** (order - 1))

    breaks = [0.0, mechanism.sensitivity]
    total = sum(quad(integrand, a, b, limit=200)[0] for a, b in zip([-40, *breaks], [*breaks, 40], strict=True))
    return math.log(total) / (order - 1)


def _example_2(setting: Setting) -> Made:
    orders = np.geomspace(1.1, 60.0, 8 if setting.quick else 30)
    panels, cells = [], []
    for second in (1.0, 0.5):
        both = LaplaceAfterLaplace(1.0, 1.0, second)
        bound = [float(both.renyi.rdp(order)) for order in orders]
        alone = [_laplace_divergence(order) for order in orders]
        exact = [_exact_divergence(both, order) for order in orders]
        pure = [both.pure_epsilon] * len(orders)
        curves = (
            line("scale 1 alone", orders, alone, Role.OTHER),
            line("Example 2", orders, bound, Role.PAPER),
            line("pure ε, Lemma 3", orders, pure, Role.OTHER),
            line("exact, by quadrature", orders, exact, Role.LOWER),
        )
        panels.append(Panel(f"λ₁ = 1, λ₂ = {second:g}", "order α", "Rényi divergence", curves, log_x=True))
        cells.append(_close(f"pure ε, λ₂ = {second}", 1 / max(1.0, second), both.pure_epsilon))
    ends = [{curve.role: curve.y[0] for curve in panel.curves} for panel in panels]
    claims = [
        Claim(f"R_α at α = {orders[0]:.3g}, {panel.title}", end[Role.PAPER], end[Role.PAPER], end[Role.LOWER])
        for panel, end in zip(panels, ends, strict=True)
    ]
    note = "the bound lies above the exact divergence, and both tend to the pure ε of Lemma 3"
    verdict = judged_curves(panels, note=note)
    return from_curves(
        panels, verdict if not verdict.errata and all(c.agrees for c in cells) else judged(cells), claims
    )


def _laplace_divergence(order: float) -> float:
    """Of Laplace noise of scale 1 at distance 1. (Mironov 2017)"""
    up, down = order * math.exp(order - 1), (order - 1) * math.exp(-order)
    return math.log((up + down) / (2 * order - 1)) / (order - 1)


def _example_3(setting: Setting) -> Made:
    formula = [1 / (2 * (1 + 1 / x**2)) for x in _GRID]
    ours = [_rho(LipschitzThenGaussian(1.0, 1.0, 1.0, lipschitz=x).guarantee.mu) for x in _GRID]
    exact = [x**2 / (x**2 + 1) / 2 for x in _GRID]  # ψ(x) = Lx: means L apart, variance L² + 1
    curves = (
        line("σ₁ alone", _GRID, [0.5] * len(_GRID), Role.OTHER),
        line("Example 3", _GRID, formula, Role.PAPER),
        line("ours", _GRID, ours, Role.OURS),
        line("exact for ψ(x) = Lx", _GRID, exact, Role.LOWER),
    )
    panel = Panel("an L-Lipschitz map, then Gaussian noise", "L", "ρ = ε/α", curves, log_x=True, log_y=True)
    cells = [_close(f"L = {x:.3g}", f, o) for x, f, o in zip(_GRID, formula, ours, strict=True)]
    claim = Claim(
        "ρ at L = 1/2, σ₁ = σ₂ = Δ = 1", 0.1, _rho(LipschitzThenGaussian(1.0, 1.0, 1.0, 0.5).guarantee.mu), 0.1
    )
    return from_curves((panel,), judged(cells, kind=_POINTS, note="exact for linear maps"), (claim,))


def _example_5(setting: Setting) -> Made:
    """Brownian motion: Λ(t) = Δ²/(4t), by its variance and by integrating κ(t) = Δ²/(4t²). (Examples 4 and 5)"""
    times = _GRID[:: 20 if setting.quick else 4]
    brackets = [Diffusion(lambda s: 1 / (4 * s**2)).bracket(time) for time in times]
    formula = [1 / (4 * t) for t in times]
    ours = [Brownian(1.0).intrinsic_sensitivity(time) for time in times]
    curves = (
        line("Examples 4 and 5", times, formula, Role.PAPER),
        line("ours", times, ours, Role.OURS),
        line("integral of κ, upper", times, [high for _, high in brackets], Role.OURS),
        line("integral of κ, lower", times, [low for low, _ in brackets], Role.LOWER),
    )
    panel = Panel("Brownian motion", "time t", "intrinsic sensitivity Λ", curves, log_x=True, log_y=True)
    cells = [_close(f"t = {t:.3g}", f, o) for t, f, o in zip(times, formula, ours, strict=True)]
    held = all(low <= f <= high for (low, high), f in zip(brackets, formula, strict=True))
    note = f"between the bounds of the integral of κ: {'yes' if held else 'no'}"
    claim = Claim("Λ at t = 0.1, Δ = 1", formula[0], brackets[0][1], brackets[0][0])
    return from_curves((panel,), judged(cells, kind=_POINTS, note=note), (claim,))


def _theorem_8(setting: Setting) -> Made:
    """d = 10, ‖f‖ ≤ 1: the mean squared error at time 1, and its ratio to the Gaussian mechanism's at other times."""
    levels = np.geomspace(0.01, 10.0, 13 if setting.quick else 60)
    chosen = [OrnsteinUhlenbeck.for_target(rdp=x, sensitivity=1.0, norm=1.0, dimension=10) for x in levels]
    plain = [one.gaussian_error(1.0, 10) for one in chosen]
    bound = [10 / (2 * x) / (1 + 10 / (2 * x)) for x in levels]
    errors = [one.mean_squared_error(1.0, 1.0, 10) for one in chosen]
    left = Panel(
        "mean squared error at t = 1",
        "ε of (α, αε)-RDP",
        "error",
        (
            line("Gaussian mechanism", levels, plain, Role.OTHER),
            line("paper, Theorem 8", levels, bound, Role.PAPER),
            line("Ornstein–Uhlenbeck, exact", levels, errors, Role.OURS),
        ),
        log_x=True,
        log_y=True,
    )
    cells = [_close(f"ε = {x:.3g}", b, e) for x, b, e in zip(levels, bound, errors, strict=True)]
    far = OrnsteinUhlenbeck.for_target(rdp=0.5, sensitivity=1.0, norm=1.0, dimension=10)
    times = np.geomspace(0.01, 2.0, 40)
    ratios = [far.mean_squared_error(t, 1.0, 10) / far.gaussian_error(t, 10) for t in times]
    right = Panel(
        "error divided by that of the Gaussian mechanism",
        "time t",
        "ratio",
        (line("Ornstein–Uhlenbeck, exact", times, ratios, Role.OURS), line("1", times, [1.0] * 40, Role.OTHER)),
        log_x=True,
    )
    note = "at t = 1 the theorem holds with equality; at other times the ratio is not at most 1 but "
    claims = (
        Claim("error at ε = 0.01, t = 1", bound[0], errors[0], errors[0]),
        Claim("largest ratio at other times, d·Δ²/(2εR²) = 10", "≤ 1", max(ratios), max(ratios)),
    )
    errata = ("E3.7",) if max(ratios) > 1 else ()
    return from_curves(
        (left, right), judged(cells, errata, kind=_POINTS, note=f"{note}up to {max(ratios):.3g}"), claims
    )


EXAMPLES = (
    Exhibit("balle2019", "example-1", "Gaussian noise after Gaussian noise", (("Δ", 1), ("σ₁", 1)), _example_1),
    Exhibit(
        "balle2019",
        "example-2",
        "Laplace noise after Laplace noise: Rényi divergences, and Lemma 3",
        (("Δ", 1), ("λ₁", 1), ("λ₂", "1 and 0.5")),
        _example_2,
    ),
    Exhibit(
        "balle2019", "example-3", "A Lipschitz map, then Gaussian noise", (("Δ", 1), ("σ₁", 1), ("σ₂", 1)), _example_3
    ),
    Exhibit("balle2019", "example-5", "Brownian motion as a mechanism (Examples 4 and 5)", (("Δ", 1),), _example_5),
    Exhibit(
        "balle2019",
        "theorem-8",
        "The Ornstein–Uhlenbeck mechanism and the Gaussian mechanism",
        (("d", 10), ("Δ", 1), ("R", 1)),
        _theorem_8,
    ),
)
