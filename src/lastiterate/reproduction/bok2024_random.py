"""Bok et al. 2024, Fig. 10: NoisySGD on a bounded domain, by batch size and by the difference that one record makes.

The paper replaces the compositions in Theorems 4.8 and 4.10 by normal approximations, which are estimates (errata E4.7).
The parameters of the panels are from the authors' published script.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from lastiterate.curves.baselines import clt_mu_estimate
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.reproduction.bok2024_runs import constrained, sampled
from lastiterate.reproduction.bounds import TYPE_I_ERRORS, lower_epsilon, tradeoff_of
from lastiterate.reproduction.exhibit import Claim, Exhibit, Made, Setting, judged
from lastiterate.reproduction.pictures import Curve, Grid, Panel, Role, line
from lastiterate.reproduction.tables import Row, number, tabled
from lastiterate.runs.run import Run
from lastiterate.theorems.block_mixing import BLOCK_MIXING

_RATES, _PUSHES = (0.0025, 0.005, 0.01, 0.02, 0.04), (0.125, 0.25, 0.5, 1.0, 2.0)
_STEP_SIZES, _LENGTHS, _NOISE = (0.2, 0.1, 0.05), (5_000, 20_000, 80_000), 3.0
_DELTA = 1e-5
_CORNERS = {(0.0025, 0.125), (0.01, 0.5), (0.04, 2.0)}  # in the summary
_QUICK = (0.01, 0.5)  # the only panel with our bound when it has to be quick


def _run(rate: float, push: float, step_size: float) -> Run:
    return constrained(sampled(rate), push, step_size, _NOISE, _LENGTHS[-1])


def _printed_mu(rate: float, push: float, step_size: float) -> float:
    """Theorem 4.10 with factors √10 and √10/3 in the place of √2, by the normal approximation, best of 49 windows."""
    last = 2 * math.sqrt(10) / 3 * push / _NOISE
    return min(
        math.hypot(
            math.sqrt(10 / window) / (step_size * _NOISE),
            clt_mu_estimate(mu=last, inclusion=rate, times=window),
        )
        for window in range(100, min(_LENGTHS), 100)
    )


def _composed_mu(rate: float, push: float, length: int) -> float:
    return clt_mu_estimate(mu=push / _NOISE, inclusion=rate, times=length)


def _row(rate: float, push: float, step_size: float, setting: Setting) -> Row:
    wanted = not setting.quick or ((rate, push) == _QUICK and step_size == _STEP_SIZES[-1])
    run, mu = _run(rate, push, step_size), _printed_mu(rate, push, step_size)
    return {
        "b/n": rate,
        "L/b": push,
        "η": step_size,
        "μ of 4.10 by CLT, as drawn": mu,
        **{f"μ of 4.8 by CLT, t = {t}": _composed_mu(rate, push, t) for t in _LENGTHS},
        "ε at δ = 1e-5, as drawn": float(GaussianDP(mu).epsilon(_DELTA)),
        "ε ours, t = 80000": float(_mixing(run).epsilon(_DELTA)) if wanted else None,
        "ε of an instance": lower_epsilon(run, _DELTA) if wanted and step_size == _STEP_SIZES[-1] else None,
    }


@lru_cache(maxsize=8)
def _mixing(run: Run) -> Notion:
    return BLOCK_MIXING.notion(run.process)


def _ours(run: Run, epsilon: float) -> Curve:
    """The trade-off function of a few proved points of the profile."""
    levels = [0.0, epsilon / 4, epsilon / 2, epsilon]
    few = Profile(epsilons=levels, deltas=[float(_mixing(run).delta(level)) for level in levels])
    return line("ours, η = 0.05, proved", TYPE_I_ERRORS, few.tradeoff(list(TYPE_I_ERRORS)), Role.OURS)


def _panel(rate: float, push: float, rows: Sequence[Row]) -> Panel:
    curves = [
        line(
            "Theorem 4.10, estimated: η = 0.2, 0.1, 0.05 from top to bottom",
            TYPE_I_ERRORS,
            tradeoff_of(number(row["μ of 4.10 by CLT, as drawn"])),
            Role.PAPER,
        )
        for row in rows
    ]
    curves += [
        line(
            "composition, estimated: t = 5000, 20000, 80000 from top to bottom",
            TYPE_I_ERRORS,
            tradeoff_of(_composed_mu(rate, push, t)),
            Role.OTHER,
        )
        for t in _LENGTHS
    ]
    epsilon = rows[-1]["ε ours, t = 80000"]
    if epsilon is not None:
        curves.append(_ours(_run(rate, push, _STEP_SIZES[-1]), number(epsilon)))
    return Panel(f"b/n = {rate:g}, L/b = {push:g}", "", "", tuple(curves))


def _figure_10(setting: Setting) -> Made:
    grid = [(rate, push) for rate in _RATES for push in _PUSHES]
    rows = {place: [_row(*place, eta, setting) for eta in _STEP_SIZES] for place in grid}
    panels = tuple(_panel(*place, rows[place]) for place in grid)
    picture = Grid(
        panels,
        tuple(f"b/n = {rate:g}" for rate in _RATES),
        tuple(f"L/b = {push:g}" for push in _PUSHES),
        "type I error",
        "type II error",
    )
    every = [row for place in grid for row in rows[place]]
    claims = [
        Claim(
            f"ε at δ = 1e-5 after 80000 steps, b/n = {row['b/n']}, L/b = {row['L/b']}, η = {row['η']}",
            row["ε at δ = 1e-5, as drawn"],
            row["ε ours, t = 80000"],
            row["ε of an instance"],
        )
        for row in every
        if (row["b/n"], row["L/b"]) in _CORNERS and row["η"] == _STEP_SIZES[-1]
    ]
    note = "the paper draws normal approximations, which are estimates; ours is a proved bound"
    return tabled(every, (picture,), judged((), ("E4.7",), note=note), claims)


FIGURE_10_EXHIBIT = Exhibit(
    "bok2024",
    "fig-10",
    "NoisySGD on a bounded domain: trade-off functions of Theorem 4.10 and of composition, by b/n and L/b",
    (("D", 1), ("σ", 3), ("η", "0.2, 0.1, 0.05"), ("t", "5000, 20000, 80000"), ("windows", "100, 200, …, 4900")),
    _figure_10,
    cost=500,
)
