"""The assumptions that theorems share. Each answers with a fact, which has the number that failed."""

from __future__ import annotations

import math

from lastiterate.facts import Fact, fact
from lastiterate.runs.process import Process
from lastiterate.theorems.features import Assumption


def _contracting(process: Process) -> Fact | None:
    return None if process.contraction < 1 else fact("not_contracting", because=process.reason)


def _nonexpansive(process: Process) -> Fact | None:
    return None if process.contraction <= 1 else fact("not_nonexpansive", because=process.reason)


def _finite(process: Process) -> Fact | None:
    return None if math.isfinite(process.contraction) else fact("lipschitz_infinite", because=process.reason)


def _bounded(process: Process) -> Fact | None:
    return None if math.isfinite(process.diameter) else fact("lacks", what="bounded_domain")


def _one_pass(process: Process) -> Fact | None:
    every = process.batches.per_epoch
    return None if len(process) <= every else fact("used_again", every=every, steps=len(process))


def _long_enough(process: Process) -> Fact | None:
    """The closed forms spread the diameter over D/s uses of the record."""
    turns, needed = len(process) // process.batches.per_epoch, process.diameter / float(process.sensitivity[0])
    if turns >= needed or math.isinf(needed):
        return None
    return fact("used_too_rarely", needed=needed, turns=turns)


CONTRACTING = Assumption("contracting", _contracting)
NONEXPANSIVE = Assumption("nonexpansive", _nonexpansive)
FINITE_LIPSCHITZ = Assumption("finite_lipschitz", _finite)
BOUNDED = Assumption("bounded_domain", _bounded)
ONE_PASS = Assumption("one_pass", _one_pass)
LONG_ENOUGH = Assumption("long_enough", _long_enough)
