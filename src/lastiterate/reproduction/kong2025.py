"""Kong and Ribero 2025: Fig. 1; Tables 1 and 2 are in modules of their own.

All bounds are (α, αρ)-RDP, and ρ is shown. The captions do not say which m, M and Q were drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from lastiterate.reproduction.exhibit import Claim, Exhibit, Made, Setting, from_curves, judged_curves
from lastiterate.reproduction.kong2025_assumptions import TABLE_1_EXHIBIT
from lastiterate.reproduction.kong2025_bounds import TABLE_2_EXHIBIT
from lastiterate.reproduction.kong2025_runs import (
    CLIP,
    NOISE,
    ONE,
    PER_PASS,
    SETTING,
    STEP_SIZE,
    lower_rho,
    printed_constant,
    rho,
    run_of,
)
from lastiterate.reproduction.pictures import Curve, Panel, Role, line
from lastiterate.shift.distance_bounds import amplification
from lastiterate.theorems.composition import PASSES_COMPOSITION
from lastiterate.theorems.shift_engine import SHIFT_ENGINE

_WEAK = (0.0, 100.0, 1000.0, 10_000.0)


def _printed(passes: int, weak: float, clipped: bool) -> float:
    """(17) and (19)."""
    return 4 * ONE * (1 + passes * amplification(printed_constant(weak, clipped), PER_PASS))


def _passes(quick: bool) -> tuple[int, ...]:
    return (1, 10, 100) if quick else (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)


def _weakly_convex(passes: Sequence[int], weak: float) -> Panel:
    """One panel for each m, without clipping. Convex losses are weakly convex, so their lower bound counts for every m."""
    printed = [_printed(n, weak, False) for n in passes]
    ours = [rho(SHIFT_ENGINE, run_of(n, weak)) for n in passes]
    return _panel(f"no clipping, m = {weak:g}", passes, printed, "paper, (19)", ours)


def _clipped(passes: Sequence[int]) -> Panel:
    printed, ours = _printed_when_clipped(passes), _ours_when_clipped(passes)
    return _panel("convex, clipped at C", passes, printed, "paper, (17)", ours)


def _printed_when_clipped(passes: Sequence[int]) -> list[float]:
    return [_printed(n, 0.0, True) for n in passes]


def _ours_when_clipped(passes: Sequence[int]) -> list[float]:
    return [rho(SHIFT_ENGINE, run_of(n, 0.0, clipped=True)) for n in passes]


def _panel(title: str, passes: Sequence[int], printed: Sequence[float], formula: str, ours: Sequence[float]) -> Panel:
    composed = [rho(PASSES_COMPOSITION, run_of(n, 0.0)) for n in passes]
    curves = (
        line(formula, _steps(passes), printed, Role.PAPER),
        line("local DP as printed (E2.8)", _steps(passes), [n / 2 * ONE for n in passes], Role.PAPER),
        line("composition", _steps(passes), composed, Role.OTHER),
        line("ours", _steps(passes), ours, Role.OURS),
        line("lower bound", _steps(passes), [lower_rho(run_of(n, 0.0)) for n in passes], Role.LOWER),
    )
    return _framed(title, curves)


def _framed(title: str, curves: Sequence[Curve]) -> Panel:
    return Panel(title, "iterations T", "ρ = ε/α", tuple(curves), log_x=True, log_y=True)


def _steps(passes: Sequence[int]) -> list[int]:
    return [n * PER_PASS for n in passes]


def _beside_iteration(passes: Sequence[int]) -> Panel:
    """Privacy amplification by iteration, as in Table 2: its Lipschitz constant Q may be larger than the clipping norm."""
    curves = [
        line("paper, (17)", _steps(passes), _printed_when_clipped(passes), Role.PAPER),
        line("ours", _steps(passes), _ours_when_clipped(passes), Role.OURS),
    ]
    for times, name in ((1, "C"), (3, "3C"), (10, "10C")):
        iterated = [n / PER_PASS * (STEP_SIZE * times * CLIP / NOISE) ** 2 for n in passes]
        curves.append(line(f"PABI, Q = {name}", _steps(passes), iterated, Role.OTHER))
    return _framed("convex, clipped at C, and PABI without clipping", curves)


def _figure_1(setting: Setting) -> Made:
    passes = _passes(setting.quick)
    panels = (*(_weakly_convex(passes, weak) for weak in _WEAK), _clipped(passes), _beside_iteration(passes))
    claims = [
        Claim(
            f"ρ after 10⁵ steps, no clipping, m = {weak:g}",
            _printed(100, weak, False),
            rho(SHIFT_ENGINE, run_of(100, weak)),
            lower_rho(run_of(100, weak)) if not weak else None,
        )
        for weak in _WEAK
    ]
    claims.append(
        Claim("ρ after 10⁵ steps, convex, clipped", _printed(100, 0.0, True), rho(SHIFT_ENGINE, run_of(100, 0.0, True)))
    )
    note = (
        "the caption does not give m, M and Q; chosen here: m = 0, 100, 1000, 10000, Q = C, 3C, 10C, and the largest M that "
        "Theorem 2.3 allows"
    )
    return from_curves(panels, judged_curves(panels, ("E2.5", "E2.8"), note), claims)


EXHIBITS = (
    TABLE_1_EXHIBIT,
    TABLE_2_EXHIBIT,
    Exhibit(
        "kong2025",
        "fig-1",
        "RDP bounds of the last iterate: weakly convex without clipping, convex with clipping",
        (*SETTING, ("T", "up to 10⁵"), ("m, chosen", "0, 100, 1000, 10000"), ("Q/C, chosen", "1, 3, 10")),
        _figure_1,
        cost=20,
    ),
)
