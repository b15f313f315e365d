"""A record that random batches used now and then, and that the last steps no longer use.

Nobody is told which batches the record was in, and in most of them it was not. Given the batches, the distance that training
left is what those with the record add up to, and the steps without it hide that. Proof: docs/proofs.md, "Forgetting".
"""

from __future__ import annotations

import numpy as np

from lastiterate.curves.averaged import AveragedGaussianDP
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.process import Process
from lastiterate.shift.growth import last_maps, remaining_mus
from lastiterate.theorems.evidence import Evidence, NoFiniteBound
from lastiterate.theorems.features import (
    ANY_MAP,
    ANY_NEIGHBOURS,
    CHANGING_STEPS,
    RANDOM_BATCHES,
    RANDOM_SIZES,
    Assumption,
)
from lastiterate.theorems.theorem import Theorem
from lastiterate.theorems.window_tail import BOUNDED_DISTANCE, distances_before


def _bound(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), random batches, of which the last steps do not use the record.
    Bound: δ(ε) = the mean of θ_ε(μ) over the distance that the batches with the record leave, μ what the steps without it
        leave of that distance. The distance is one of a few, each with a bound on how likely more is.
    Assumes: a step without the record at the end; two runs stay at a bounded distance; only the last iterate is released.
    Reference: docs/proofs.md.
    """
    used = _used(process)
    distances, exceeded = distances_before(process, used)
    mus = remaining_mus(last_maps(process, len(process) - used).without_record(), distances)
    if not np.isfinite(mus).all():
        raise NoFiniteBound("distance_not_hidden")
    return Evidence(AveragedGaussianDP(mus=mus, weights=_masses(exceeded)))


def _used(process: Process) -> int:
    """After so many steps no batch has the record any more."""
    return int(np.flatnonzero(process.sensitivity)[-1]) + 1


def _masses(exceeded: Floats) -> Floats:
    """Of the law that has as much as it can at large distances, if the one before is exceeded with at most this chance."""
    return exceeded - np.append(exceeded[1:], 0.0)


def _some_steps(process: Process) -> Fact | None:
    return None if _used(process) < len(process) else fact("record_in_every_step")


FORGOTTEN_BY_CHANCE = Theorem(
    "forgetting/random-batches",
    "lastiterate, the distance that random batches leave",
    "random batches, of which the last do not use the record",
    {RANDOM_BATCHES, RANDOM_SIZES, CHANGING_STEPS} | ANY_MAP | ANY_NEIGHBOURS,
    (Assumption("steps_without_record", _some_steps), BOUNDED_DISTANCE),
    _bound,
)
