"""The assumptions that theorems share. Each answers with the number that failed."""

from __future__ import annotations

import math

from lastiterate.algorithms.process import Process
from lastiterate.theorems.features import Assumption
from lastiterate.theorems.lacking import Lacks


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


def _bounded(process: Process) -> str | None:
    return None if math.isfinite(process.diameter) else Lacks("a bounded domain", "Use domain=li.Ball(radius=...)")


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


CONTRACTING = Assumption("every step contracts (Lipschitz constant < 1)", _contracting)
NONEXPANSIVE = Assumption("no step moves iterates apart (Lipschitz constant <= 1)", _nonexpansive)
FINITE_LIPSCHITZ = Assumption("the Lipschitz constant of each step is known", _finite)
BOUNDED = Assumption("iterates are projected on a bounded set", _bounded)
ONE_PASS = Assumption("no record is used twice", _one_pass)
LONG_ENOUGH = Assumption("the run is long enough to cross the domain", _long_enough)
