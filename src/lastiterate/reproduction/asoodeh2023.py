"""Asoodeh and Diaz 2023, Fig. 1 to 3: δ and ε of clipped DP-SGD against the number of steps, projected and regularised.

The paper prints no numbers, and says neither the largest T nor the dimension (Fig. 2).
"""

from __future__ import annotations

import numpy as np

from lastiterate.auditing.chain import Chain, iid_hazard
from lastiterate.reproduction.bounds import least_delta, least_epsilon
from lastiterate.reproduction.evidence import printed_theorem_3
from lastiterate.reproduction.exhibit import Claim, Exhibit, Made, Setting, from_curves, judged_curves
from lastiterate.reproduction.instances import two_wells
from lastiterate.reproduction.pictures import Panel, Role, line
from lastiterate.runs.batches import FixedSize
from lastiterate.runs.domains import ConvexSet, Unbounded
from lastiterate.runs.losses import network
from lastiterate.runs.noise import OnIterate
from lastiterate.runs.run import Run
from lastiterate.theorems.block_mixing import BLOCK_MIXING, REGULARISED_MIXING
from lastiterate.theorems.composition import RANDOM_COMPOSITION
from lastiterate.theorems.papers.asoodeh2023 import CURVED, PROJECTED, REGULARISED, closed_limit_epsilon, limit_epsilon
from lastiterate.theorems.theorem import Theorem

_DIAMETER, _CLIP, _STEP_SIZE, _NOISE, _RATE = 3.0, 2.0, 0.01, 1.0, 0.001
_EPSILON, _DELTA = 3.0, 1e-3
_FLOOR = 1e-30  # of logarithmic axes: smaller values are drawn there
_BEST = (BLOCK_MIXING, REGULARISED_MIXING, RANDOM_COMPOSITION, CURVED)
_PROJECTED_SETTING = (("D", 3), ("C", 2), ("η", 0.01), ("σ, on the iterate", 1), ("p = b/n", 0.001))


def _projected(steps: int) -> Run:
    domain, batches = ConvexSet(_DIAMETER), FixedSize(records=1000, batch_size=1)
    return Run(network(clip=_CLIP), batches, _STEP_SIZE, OnIterate(_NOISE), steps, domain)


def _regularised(steps: int, decay: float) -> Run:
    """λ multiplies the iterate as such; `weight_decay` is multiplied by the step size first."""
    batches, domain = FixedSize(records=1000, batch_size=1), Unbounded(dimension=1)
    return Run(network(clip=1.0), batches, 0.1, OnIterate(5.0), steps, domain, weight_decay=decay / 0.1)


def _steps(quick: bool) -> tuple[int, ...]:
    return (1, 3, 10) if quick else (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)


def _shown(delta: float) -> float | str:
    return delta if delta > _FLOOR else f"≤ {_FLOOR:g}"


def _instance(steps: int) -> Chain:
    """On an interval as wide as the domain: the record moves the iterate by ηC, its replacement by −ηC."""
    move = _STEP_SIZE * _CLIP
    return Chain(
        lambda x: x,
        lambda x: x + move,
        lambda x: x - move,
        np.full(steps, _NOISE),
        iid_hazard(_RATE, steps),
        -_DIAMETER / 2,
        _DIAMETER / 2,
        cells=400,
    )


def _by_delta(epsilon: float, steps: tuple[int, ...]) -> Panel:
    def along(*theorems: Theorem) -> list[float]:
        return [max(least_delta(theorems, _projected(t), epsilon), _FLOOR) for t in steps]

    curves = [
        line("paper, Theorem 2", steps, along(PROJECTED), Role.PAPER),
        line("Theorem 2, exact curve (E0.3)", steps, along(CURVED), Role.CORRECTED),
        line("ours", steps, along(*_BEST), Role.OURS),
    ]
    if epsilon == 0:
        exact = [float(_instance(t).delta(np.array([epsilon]))[0]) for t in steps]
        curves.append(line("lower bound", steps, exact, Role.LOWER))
    return Panel(
        f"δ at ε = {epsilon:g}",
        "iterations T",
        "δ (1e-30 means at most 1e-30)" if epsilon else "δ",
        tuple(curves),
        log_x=True,
        log_y=True,
    )


def _by_epsilon(steps: tuple[int, ...]) -> Panel:
    def along(*theorems: Theorem) -> list[float]:
        return [least_epsilon(theorems, _projected(t), _DELTA) for t in steps]

    lower = [_instance(t).least_epsilon(_DELTA) for t in steps]
    curves = (
        line("paper, Theorem 2", steps, along(PROJECTED), Role.PAPER),
        line("Theorem 2, exact curve (E0.3)", steps, along(CURVED), Role.CORRECTED),
        line("ours", steps, along(*_BEST), Role.OURS),
        line("lower bound", steps, lower, Role.LOWER),
    )
    return Panel(f"ε at δ = {_DELTA:g}", "iterations T", "ε", curves, log_x=True)


def _figure_1(setting: Setting) -> Made:
    steps = _steps(setting.quick)
    panels = (_by_delta(_EPSILON, steps), _by_epsilon(steps), _by_delta(0.0, steps))
    delta, epsilon, distance = ({curve.role: curve.y[-1] for curve in panel.curves} for panel in panels)
    claims = (
        Claim(f"Fig. 1 left: δ at ε = 3 after {steps[-1]} steps", delta[Role.PAPER], _shown(delta[Role.OURS])),
        Claim("Fig. 1 right: ε at δ = 1e-3", epsilon[Role.PAPER], epsilon[Role.OURS], epsilon[Role.LOWER]),
        Claim("δ at ε = 0 (not in the paper)", distance[Role.PAPER], distance[Role.OURS], distance[Role.LOWER]),
    )
    note = "formula (5) at the printed parameters is valid but loose (E0.3); the panel at ε = 0 is ours"
    return from_curves(panels, judged_curves(panels, note=note), claims)


def _regularised_panel(decay: float, epsilon: float, steps: tuple[int, ...]) -> Panel:
    def along(*theorems: Theorem) -> list[float]:
        return [max(least_delta(theorems, _regularised(t, decay), epsilon), _FLOOR) for t in steps]

    printed = [max(printed_theorem_3(decay, 0.02, _RATE, t, epsilon), _FLOOR) for t in steps]
    curves = [
        line("paper, Theorem 3", steps, printed, Role.PAPER),
        line("Theorem 3, corrected (E0.1, E0.2)", steps, along(REGULARISED), Role.CORRECTED),
        line("ours", steps, along(*_BEST), Role.OURS),
    ]
    if epsilon == 0:
        exact = [float(two_wells(decay, 0.02, _RATE, t).delta(np.array([epsilon]))[0]) for t in steps]
        curves.append(line("lower bound", steps, exact, Role.LOWER))
    return Panel(
        f"λ = {decay:g}, δ at ε = {epsilon:g}",
        "iterations T",
        "δ (1e-30 means at most 1e-30)" if epsilon else "δ",
        tuple(curves),
        log_x=True,
        log_y=True,
    )


def _figure_2(setting: Setting) -> Made:
    steps = (1, 10) if setting.quick else (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
    panels = tuple(_regularised_panel(decay, epsilon, steps) for epsilon in (5.0, 0.0) for decay in (0.65, 0.01))
    claims = []
    for panel in panels:
        last = {curve.role: curve.y[-1] for curve in panel.curves}
        what = f"{panel.title} after {steps[-1]} steps; corrected: {last[Role.CORRECTED]:.3g}"
        claims.append(Claim(what, last[Role.PAPER], _shown(last[Role.OURS]), last.get(Role.LOWER)))
    note = "the paper does not give the dimension: 1 here; the panels at ε = 0, with exact instances, are ours"
    return from_curves(panels, judged_curves(panels, ("E0.1", "E0.2"), note), claims)


def _figure_3(setting: Setting) -> Made:
    steps = _steps(setting.quick)
    panel, given = _by_epsilon(steps), _projected(1).process
    limits = (limit_epsilon(given, _DELTA), closed_limit_epsilon(given, _DELTA))
    lines = (
        line("limit (22)", (steps[0], steps[-1]), [limits[0]] * 2, Role.OTHER),
        line("closed limit (23)", (steps[0], steps[-1]), [limits[1]] * 2, Role.OTHER),
    )
    drawn = Panel(panel.title, panel.x_label, panel.y_label, panel.curves + lines, log_x=True)
    printed, ours, lower = (
        next(curve.y[-1] for curve in panel.curves if curve.role is role)
        for role in (Role.PAPER, Role.OURS, Role.LOWER)
    )
    claims = (
        Claim("order of Theorem 2, (22) and (23)", f"{printed:.4g} ≤ {limits[0]:.4g} ≤ {limits[1]:.4g}"),
        Claim("ε at δ = 1e-3 after any number of steps", limits[0], ours, lower),
    )
    in_order = printed <= limits[0] <= limits[1]
    note = "Theorem 2 ≤ (22) ≤ (23), valid but loose (E0.3)" if in_order else "the curves are out of order"
    return from_curves((drawn,), judged_curves((drawn,), note=note), claims)


EXHIBITS = (
    Exhibit(
        "asoodeh2023",
        "fig-1",
        "Projected DP-SGD: δ at ε = 3 (left) and ε at δ = 1e-3 (right) against the number of iterations",
        (*_PROJECTED_SETTING, ("ε, left", 3), ("δ, right", 1e-3)),
        _figure_1,
        cost=60,
    ),
    Exhibit(
        "asoodeh2023",
        "fig-2",
        "Regularised DP-SGD without projection, Theorem 3: δ at ε = 5 against the number of iterations",
        (
            ("C", 1),
            ("η", 0.1),
            ("σ, on the iterate", 5),
            ("ε", 5),
            ("p = b/n", 0.001),
            ("λ", "0.65 and 0.01"),
            ("d", 1),
        ),
        _figure_2,
        cost=90,
    ),
    Exhibit(
        "asoodeh2023",
        "fig-3",
        "Projected DP-SGD: Theorem 2 and its limits (22) and (23)",
        (*_PROJECTED_SETTING, ("δ", 1e-3)),
        _figure_3,
        cost=40,
    ),
)
