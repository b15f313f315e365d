"""Chourasia et al. 2021 and Ye and Shokri 2022: strongly convex, Rényi DP, as Boninsegna 2023 VII states them, corrected.

In Boninsegna2023: 1/σ is sensitivity/noise, ηλ is 1 − lipschitz.
"""

from __future__ import annotations

import math
from operator import attrgetter

import numpy as np

from lastiterate.curves.renyi import DEFAULT_ORDERS, RenyiDP
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.process import Process
from lastiterate.theorems import features
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import (
    ANY_MAP,
    ANY_NEIGHBOURS,
    CONTRACTING,
    FIXED_ORDER,
    FULL_BATCHES,
    ONE_ORDER,
    RANDOM_SIZES,
    UNEVEN_BATCHES,
    Assumption,
)
from lastiterate.theorems.theorem import Theorem

_MOST_STEPS = 200_000  # gone through one after the other, in Python: a limit of patience
_LOOK_EVERY = 100  # to look costs a step: 1 % of the work
_LARGEST = 600.0  # whose exponential is a float
_PATIENCE = 10_000  # orders that have not settled by then are given up, if others have: any set of orders is valid


def _full(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), full batches.
    Bound: ρ = (4/(λη))·(s/ν)²/2·(1 − e^{−ληT/2}).
        Above Bok et al. 2024, Theorem 4.2, for every contraction (docs/proofs.md), so neither η < 1/β nor the start is
        needed.
    Assumes: L < 1, identical steps; only the last iterate is released.
    Attained by: no known instance: quadratic losses come to 60 % of it.
    Reference: Chourasia et al. 2021, as Boninsegna 2023, Theorem VII.1.
    """
    lost = 1 - process.contraction
    return Evidence(RenyiDP(rho=up(4 / lost * process.step_mu**2 / 2 * -math.expm1(-lost * len(process) / 2))))


def _random(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), random batches.
    Bound: log(S)/(α − 1), S ← p·e^{α(α−1)(s/ν)²/2}·S + (1 − p)·S^{c²} once a step, from S = 1 at the very start.
        Given the batches this is a bound on the Rényi divergence of a run from a fixed start; Jensen's inequality
        averages it.
    Assumes: L < 1, identical steps, few enough to compute one by one; only the last iterate is released.
    Attained by: one step on all records, to 2 %.
    Reference: Ye and Shokri 2022, as Boninsegna 2023, Theorem VII.2, corrected.
    """
    rate, square = float(process.inclusion[0]), process.contraction**2
    push = DEFAULT_ORDERS * (DEFAULT_ORDERS - 1) * process.step_mu**2 / 2

    def after(logs: Floats) -> Floats:
        """log(p·e^{push}·S + (1 − p)·S^{c²}), where nothing cancels near 0; it rises with the push by as much at most."""
        further = push + (1 - square) * logs
        near = np.minimum(further, _LARGEST)
        return up(square * logs + np.log1p(rate * np.expm1(near)) + (further - near))

    logs = np.zeros_like(push)
    for step in range(1, len(process) + 1):
        logs = after(logs)
        if step % _LOOK_EVERY == 0:
            raised = up(logs, by=1e-9)
            settled = after(raised) <= raised  # then no number of steps leads beyond
            if settled.all() or (step >= _PATIENCE and settled.any()):
                return Evidence(_curve(DEFAULT_ORDERS[settled], raised[settled]))
    return Evidence(_curve(DEFAULT_ORDERS, logs))


def _curve(orders: Floats, logs: Floats) -> RenyiDP:
    return RenyiDP(orders=orders, divergences=up(logs / (orders - 1)))


def _shuffled(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), whole epochs in one order.
    Bound: of l ≥ 2 batches: earlier epochs ε_{⌊l/2⌋}·(1 − c^{2(K−1)h})/(1 − c^{2h}), h = l − ⌊l/2⌋; the last ε_1.
        ε_j = (α/2)(s/ν)²·c^{2(j−1)}(1 − c²)/(1 − c^{2j}), for a record's step with j steps to go, its own included.
        One batch is not enough.
    Assumes: L < 1, identical steps, at least two batches; only the last iterate is released.
    Attained by: the last batch of a pass, to 5 %.
    Reference: Ye and Shokri 2022, 3.3, shuffle and partition; proof: docs/proofs.md.
    """
    per_epoch, square = process.batches.per_epoch, process.contraction**2
    epochs = len(process) // per_epoch
    half = per_epoch - per_epoch // 2
    rho = (
        process.step_mu**2
        / 2
        * (_hidden(square, 1) + _hidden(square, per_epoch // 2) * _repeated(square**half, epochs - 1))
    )
    return Evidence(RenyiDP(rho=up(rho)))


def _hidden(square: float, steps: int) -> float:
    return 1.0 if steps <= 1 else square ** (steps - 1) * (1 - square) / (1 - square**steps)


def _repeated(factor: float, times: int) -> float:
    return (1 - factor**times) / (1 - factor)


def _few_steps(process: Process) -> Fact | None:
    steps = len(process)
    return None if steps <= _MOST_STEPS else fact("too_many_steps", at_most=_MOST_STEPS, steps=steps)


def _several_batches(process: Process) -> Fact | None:
    return None if process.batches.per_epoch > 1 else fact("not_two_batches")


FULL_BATCH = Theorem(
    "chourasia2021/full-batch",
    "Chourasia et al. 2021, as Boninsegna 2023, Theorem VII.1",
    "strongly convex, full batches",
    {FULL_BATCHES} | ANY_MAP | ANY_NEIGHBOURS,
    (CONTRACTING,),
    _full,
    "E1.7: consistent, but twice the exact value in the limit",
)
RANDOM_BATCHES = Theorem(
    "ye2022/random",
    "Ye and Shokri 2022, as Boninsegna 2023, Theorem VII.2, corrected",
    "strongly convex, random batches",
    {features.RANDOM_BATCHES, RANDOM_SIZES} | ANY_MAP | ANY_NEIGHBOURS,
    (
        CONTRACTING,
        Assumption("short_enough", _few_steps),
    ),
    _random,
    "E1.5: the printed start makes the first epoch free",
    sees=attrgetter("sensitivity", "noise", "lipschitz"),
)
PASSES = Theorem(
    "ye2022/shuffled",
    "Ye and Shokri 2022, shuffle and partition",
    "strongly convex, passes in one order, worst record",
    {FIXED_ORDER, ONE_ORDER, UNEVEN_BATCHES} | ANY_MAP | ANY_NEIGHBOURS,
    (
        Assumption("two_batches", _several_batches),
        CONTRACTING,
    ),
    _shuffled,
)
