"""The assumptions that theorems share. Each answers with the number that failed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lastiterate.algorithms.batches import Turns
from lastiterate.algorithms.process import Process
from lastiterate.theorems.theorem import Assumption


@dataclass(frozen=True, repr=False)
class KindOfBatches(Assumption):
    """A record's turns come like this; otherwise the theorem is about something else."""


def batches(statement: str, *turns: Turns) -> KindOfBatches:
    """A record's turns come in one of these ways."""

    def failure(process: Process) -> str | None:
        if process.batches.turns in turns:
            return None
        return f"it is about {statement}, but the run has {process.batches.called}"

    return KindOfBatches(statement, failure)


def _contracting(process: Process) -> str | None:
    if process.contraction < 1:
        return None
    return f"it needs lipschitz < 1 at every step, but {process.reason}"


def _nonexpansive(process: Process) -> str | None:
    if process.contraction <= 1:
        return None
    return f"it needs lipschitz <= 1 at every step, but {process.reason}"


def _finite(process: Process) -> str | None:
    if math.isfinite(process.contraction):
        return None
    return f"it needs a finite lipschitz constant, but {process.reason}; give the loss its smoothness"


def _alike(process: Process) -> str | None:
    if process.constant:
        return None
    values = {"sensitivity": process.sensitivity, "noise": process.noise, "lipschitz": process.lipschitz}
    name, array = next((name, array) for name, array in values.items() if np.ptp(array) > 0 or array.strides != (0,))
    return f"it needs all steps alike, but {name} runs from {np.min(array):.6g} to {np.max(array):.6g}"


def _bounded(process: Process) -> str | None:
    return (
        None if math.isfinite(process.diameter) else "it needs a bounded domain, but diameter is inf; project on a ball"
    )


def _only_the_last(process: Process) -> str | None:
    return (
        None
        if not process.releases
        else f"it needs the last iterate alone, but others leave as well: {len(process.releases)}"
    )


def _whole_epochs(process: Process) -> str | None:
    left = len(process) % process.batches.per_epoch
    if not left:
        return None
    return f"it needs whole epochs of {process.batches.per_epoch} steps, but {len(process)} steps leave {left}"


def _one_pass(process: Process) -> str | None:
    if len(process) <= process.batches.per_epoch:
        return None
    return f"it is about one pass of {process.batches.per_epoch} steps, but there are {len(process)}"


def _long_enough(process: Process) -> str | None:
    """The closed forms spread the diameter over D/s turns of the record."""
    turns, needed = len(process) // process.batches.per_epoch, process.diameter / float(process.sensitivity[0])
    if turns >= needed or math.isinf(needed):
        return None
    return f"it needs at least diameter/sensitivity = {needed:.6g} turns of each record, but there are {turns}"


FIXED_ORDER = batches("batches in a fixed order", Turns.FIXED_ORDER)
CONTRACTING = Assumption("every step brings iterates together (lipschitz < 1)", _contracting)
NONEXPANSIVE = Assumption("no step moves iterates apart (lipschitz <= 1)", _nonexpansive)
FINITE_LIPSCHITZ = Assumption("the Lipschitz constant of each step is known", _finite)
ALIKE = Assumption("all steps are alike", _alike)
BOUNDED = Assumption("iterates are projected on a bounded set", _bounded)
ONLY_THE_LAST = Assumption("only the last iterate is released", _only_the_last)
WHOLE_EPOCHS = Assumption("the run ends with an epoch", _whole_epochs)
ONE_PASS = Assumption("no record is used twice", _one_pass)
LONG_ENOUGH = Assumption("the run is long enough to cross the domain", _long_enough)
