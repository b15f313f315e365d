"""Bok, Su and Altschuler 2024, shifted interpolation (f-DP), with schedules where the proof allows them.

In the paper: L/(nσ) or L/(bσ) is sensitivity/noise here, ησ is noise, η·L/b is sensitivity, c is lipschitz.
"""

from __future__ import annotations

import math

import numpy as np

from lastiterate.algorithms.per_step import each, is_constant
from lastiterate.algorithms.process import Process
from lastiterate.numerics.rounding import up
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.theorems.assumptions import BOUNDED, CONTRACTING, LONG_ENOUGH, NONEXPANSIVE
from lastiterate.theorems.evidence import About, Evidence
from lastiterate.theorems.features import (
    ANY_CHECKPOINTS,
    ANY_MAP,
    ANY_NEIGHBOURS,
    ANY_PASSES,
    ANY_UPDATE,
    CHANGING_STEPS,
    FIXED_ORDER,
    FULL_BATCHES,
    IN_ORDER,
    RANDOM_SIZES,
    UNEVEN_BATCHES,
)
from lastiterate.theorems.theorem import Theorem


def _full_composition(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), full batches.
    Bound: √Σ (sensitivity/noise)², also if every iterate is released.
    Assumes: full batches, nothing else.
    Attained by: linear losses.
    Reference: Bok et al. 2024, Theorem 4.1.
    """
    ratios = each(np.divide, process.sensitivity, process.noise)
    if is_constant(ratios):
        return Evidence(GaussianDP(up(float(ratios[0]) * math.sqrt(len(process)))))
    return Evidence(GaussianDP(up(math.sqrt(float(np.square(ratios).sum())))))


def _passes_composition(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), passes over the data.
    Bound: √Σ (sensitivity/noise)² over the steps that see the record: the worst batch, or the worst step of each epoch.
    Assumes: passes, in any order, nothing else.
    Attained by: linear losses in one batch, and a single step.
    Reference: Bok et al. 2024, Theorem 4.4.
    """
    per_epoch = process.batches.per_epoch
    if process.constant:
        turns = -(-len(process) // per_epoch)
        return Evidence(GaussianDP(up(process.step_mu * math.sqrt(turns))))
    squares = np.square(np.append(process.sensitivity / process.noise, np.zeros(-len(process) % per_epoch)))
    table = squares.reshape(-1, per_epoch)
    worst = table.max(axis=1).sum() if process.batches.reshuffled else table.sum(axis=0).max()
    return Evidence(GaussianDP(up(math.sqrt(float(worst)))))


def _contracting_full(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), full batches.
    Bound: √((1 − c^T)/(1 + c^T)·(1 + c)/(1 − c))·sensitivity/noise.
    Assumes: L < 1, identical steps; only the last iterate is released.
    Attained by: quadratic losses: it is exact.
    Reference: Bok et al. 2024, Theorem 4.2.
    """
    c, lost = process.contraction, _lost(process.contraction, len(process))
    return Evidence(GaussianDP(up(math.sqrt(lost / (2 - lost) * (1 + c) / (1 - c)) * process.step_mu)))


def _bounded_full(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), full batches.
    Bound: √(3·s·D + s²·⌈D/s⌉)/ν for T ≥ D/s.
    Assumes: L ≤ 1, a bounded domain, identical steps, T ≥ D/s; only the last iterate is released.
    Attained by: from end to end of an interval, to 10 %.
    Reference: Bok et al. 2024, Theorem 4.3.
    """
    s, d, noise = float(process.sensitivity[0]), process.diameter, float(process.noise[0])
    return Evidence(GaussianDP(up(math.sqrt(3 * s * d + s**2 * math.ceil(d / s)) / noise)))


def _contracting_cyclic(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), whole epochs in a fixed order.
    Bound: √(1 + c^{2l−2}·(1 − c²)/(1 − c^l)²·(1 − c^{l(E−1)})/(1 + c^{l(E−1)}))·s/ν.
    Assumes: L < 1, identical steps; only the last iterate is released.
    Attained by: quadratic losses, three epochs of four batches, to 3 %.
    Reference: Bok et al. 2024, Theorem 4.5.
    """
    c, per_epoch = process.contraction, process.batches.per_epoch
    lost = _lost(c, len(process) - per_epoch)
    repeated = c ** (2 * per_epoch - 2) * (1 - c) * (1 + c) / _lost(c, per_epoch) ** 2 * lost / (2 - lost)
    return Evidence(GaussianDP(up(math.sqrt(1 + repeated) * process.step_mu)))


def _lost(factor: float, steps: int) -> float:
    """1 − factor^steps, for a factor below 1 but perhaps by very little: 1 − factor itself is exact near 1."""
    return -math.expm1(steps * math.log1p(-(1 - factor))) if factor > 0 else float(steps > 0)


def _bounded_cyclic(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), whole epochs in a fixed order.
    Bound: √(3·s·D/l + s² + (s²/l)·⌈D/s⌉)/ν for E ≥ D/s.
    Assumes: L ≤ 1, a bounded domain, identical steps, E ≥ D/s; only the last iterate is released.
    Attained by: from end to end of an interval, one batch, to 10 %.
    Reference: Bok et al. 2024, Theorem 4.6.
    """
    s, d, noise = float(process.sensitivity[0]), process.diameter, float(process.noise[0])
    per_epoch = process.batches.per_epoch
    square = 3 * s * d / per_epoch + s**2 + s**2 / per_epoch * math.ceil(d / s)
    return Evidence(GaussianDP(up(math.sqrt(square) / noise)))


FULL_COMPOSITION = Theorem(
    "bok2024/full-batch/composition",
    "Bok et al. 2024, Theorem 4.1",
    "every iterate released",
    {FULL_BATCHES, CHANGING_STEPS} | ANY_CHECKPOINTS | ANY_MAP | ANY_UPDATE | ANY_NEIGHBOURS,
    (),
    _full_composition,
    about=About.EVERY_ITERATE,
)
PASSES_COMPOSITION = Theorem(
    "bok2024/cyclic/composition",
    "Bok et al. 2024, Theorem 4.4",
    "every iterate released",
    {RANDOM_SIZES, CHANGING_STEPS} | ANY_PASSES | IN_ORDER | ANY_CHECKPOINTS | ANY_MAP | ANY_UPDATE | ANY_NEIGHBOURS,
    (),
    _passes_composition,
    about=About.EVERY_ITERATE,
)
CONTRACTING_FULL = Theorem(
    "bok2024/full-batch/strongly-convex",
    "Bok et al. 2024, Theorem 4.2",
    "strongly convex, full batches",
    {FULL_BATCHES} | ANY_MAP | ANY_NEIGHBOURS,
    (CONTRACTING,),
    _contracting_full,
    "E4.6: the formula is false for lipschitz > 1, where it is not used",
)
BOUNDED_FULL = Theorem(
    "bok2024/full-batch/constrained",
    "Bok et al. 2024, Theorem 4.3",
    "convex, bounded domain, full batches",
    {FULL_BATCHES} | ANY_MAP | ANY_NEIGHBOURS,
    (NONEXPANSIVE, BOUNDED, LONG_ENOUGH),
    _bounded_full,
)
CONTRACTING_CYCLIC = Theorem(
    "bok2024/cyclic/strongly-convex",
    "Bok et al. 2024, Theorem 4.5",
    "strongly convex, cyclic batches, worst record",
    {FIXED_ORDER, UNEVEN_BATCHES} | ANY_MAP | ANY_NEIGHBOURS,
    (CONTRACTING,),
    _contracting_cyclic,
    "E4.1: the paper's MNIST example clips a softmax, which is not convex",
)
BOUNDED_CYCLIC = Theorem(
    "bok2024/cyclic/constrained",
    "Bok et al. 2024, Theorem 4.6",
    "convex, bounded domain, cyclic batches, worst record",
    {FIXED_ORDER, UNEVEN_BATCHES} | ANY_MAP | ANY_NEIGHBOURS,
    (NONEXPANSIVE, BOUNDED, LONG_ENOUGH),
    _bounded_cyclic,
    "E4.2, E4.4, E4.9: an index in the proof, a root in the statement, and every E* of Tables 10 to 12",
)
