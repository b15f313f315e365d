"""Every step by itself, composed: it holds also if every iterate is released (Bok et al. 2024, Theorems 4.1, 4.4, 4.8)."""

from __future__ import annotations

import math
from operator import attrgetter

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.numerics.rounding import up
from lastiterate.runs.per_step import each, is_constant
from lastiterate.runs.process import Process
from lastiterate.theorems import features
from lastiterate.theorems.evidence import About, Evidence
from lastiterate.theorems.theorem import Theorem
from lastiterate.theorems.typical_batches import BOUNDED_RECORDS, released_window


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


def _random_composition(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), random batches.
    Bound: C_p(G(sensitivity/noise)) at each step, composed; Poisson batches by their own dominating pair.
    Assumes: random batches; for Poisson a bound on each gradient.
    Attained by: one step on a random batch, and two Poisson steps that are both released, to 1 %.
    Reference: Bok et al. 2024, Theorem 4.8.
    """
    return Evidence(released_window(process, len(process)))


_STEPS = {features.CHANGING_STEPS} | features.ANY_CHECKPOINTS
_COVERED = _STEPS | features.ANY_MAP | features.ANY_UPDATE | features.ANY_NEIGHBOURS

FULL_COMPOSITION = Theorem(
    "bok2024/full-batch/composition",
    "Bok et al. 2024, Theorem 4.1",
    "every iterate released",
    _COVERED | {features.FULL_BATCHES},
    (),
    _full_composition,
    about=About.EVERY_ITERATE,
)
PASSES_COMPOSITION = Theorem(
    "bok2024/cyclic/composition",
    "Bok et al. 2024, Theorem 4.4",
    "every iterate released",
    _COVERED | {features.RANDOM_SIZES} | features.ANY_PASSES | features.IN_ORDER,
    (),
    _passes_composition,
    about=About.EVERY_ITERATE,
)
RANDOM_COMPOSITION = Theorem(
    "bok2024/random/composition",
    "Bok et al. 2024, Theorem 4.8",
    "every iterate released",
    _COVERED | {features.RANDOM_BATCHES, features.RANDOM_SIZES},
    (BOUNDED_RECORDS,),
    _random_composition,
    about=About.EVERY_ITERATE,
    sees=attrgetter("sampled", "noise"),
)
