"""The assumptions that theorems share. Each answers with the number that failed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lastiterate.algorithms.batches import Turns
from lastiterate.algorithms.process import Process
from lastiterate.theorems.lacking import Lacks
from lastiterate.theorems.theorem import Assumption


@dataclass(frozen=True, repr=False)
class KindOfBatches(Assumption):
    """How batches use a record; with other batches the theorem covers something else."""


def batches(statement: str, *turns: Turns) -> KindOfBatches:
    """Batches that use a record in one of these ways."""

    def failure(process: Process) -> str | None:
        if process.batches.turns in turns:
            return None
        return f"covers {statement}; this run has {process.batches.called}"

    return KindOfBatches(statement, failure)


def _contracting(process: Process) -> str | None:
    if process.contraction < 1:
        return None
    return f"needs steps that contract (Lipschitz constant < 1); {process.reason}"


def _nonexpansive(process: Process) -> str | None:
    if process.contraction <= 1:
        return None
    return f"needs steps that never move iterates apart (Lipschitz constant <= 1); {process.reason}"


def _finite(process: Process) -> str | None:
    if math.isfinite(process.contraction):
        return None
    return f"needs a finite Lipschitz constant of every step; {process.reason}"


def _alike(process: Process) -> str | None:
    if process.constant:
        return None
    values = {"sensitivity": process.sensitivity, "noise": process.noise, "Lipschitz constant": process.lipschitz}
    name, array = next((name, array) for name, array in values.items() if np.ptp(array) > 0 or array.strides != (0,))
    return f"needs identical steps; the {name} runs from {np.min(array):.6g} to {np.max(array):.6g}"


def _bounded(process: Process) -> str | None:
    return None if math.isfinite(process.diameter) else Lacks("a bounded domain", "Use domain=li.Ball(radius=...)")


def _only_the_last(process: Process) -> str | None:
    count = len(process.releases)
    if not count:
        return None
    also = f"{count} checkpoint{'s' if count > 1 else ''}"
    return f"covers the release of the last iterate alone; this run also releases {also}"


def _whole_epochs(process: Process) -> str | None:
    left = len(process) % process.batches.per_epoch
    if not left:
        return None
    ends = f"this run's {len(process)} steps end {left} step{'s' if left > 1 else ''} into an epoch"
    return f"needs whole epochs of {process.batches.per_epoch} steps; {ends}"


def _one_pass(process: Process) -> str | None:
    if len(process) <= process.batches.per_epoch:
        return None
    return f"covers one pass of {process.batches.per_epoch} steps; this run has {len(process)}"


def _long_enough(process: Process) -> str | None:
    """The closed forms spread the diameter over D/s uses of the record."""
    turns, needed = len(process) // process.batches.per_epoch, process.diameter / float(process.sensitivity[0])
    if turns >= needed or math.isinf(needed):
        return None
    return f"needs each record to be used at least diameter/sensitivity = {needed:.6g} times; this run uses it {turns} times"


FIXED_ORDER = batches("batches in a fixed order", Turns.FIXED_ORDER)
CONTRACTING = Assumption("every step contracts (Lipschitz constant < 1)", _contracting)
NONEXPANSIVE = Assumption("no step moves iterates apart (Lipschitz constant <= 1)", _nonexpansive)
FINITE_LIPSCHITZ = Assumption("the Lipschitz constant of each step is known", _finite)
ALIKE = Assumption("all steps are identical", _alike)
BOUNDED = Assumption("iterates are projected on a bounded set", _bounded)
ONLY_THE_LAST = Assumption("only the last iterate is released", _only_the_last)
WHOLE_EPOCHS = Assumption("the run consists of whole epochs", _whole_epochs)
ONE_PASS = Assumption("no record is used twice", _one_pass)
LONG_ENOUGH = Assumption("the run is long enough to cross the domain", _long_enough)
