"""The shift engine as a theorem: any schedule, any Lipschitz constants, checkpoints, every record's own place.

Generalises Bok et al. 2024, Theorem C.3, to steps that differ; the best schedule by isotonic regression. Proofs in docs/proofs.md.
"""

from __future__ import annotations

import math

from lastiterate.algorithms.batches import Shuffled
from lastiterate.algorithms.process import Process
from lastiterate.shift.optimise import best_schedule
from lastiterate.theorems.assumptions import FINITE_LIPSCHITZ, batches
from lastiterate.theorems.places import places_of
from lastiterate.theorems.proof import Part, Proof, RecordProof
from lastiterate.theorems.theorem import Assumption, Theorem

_MOST_STEPS = 20_000_000
_MOST_WORK = 100_000_000


def shift_proof(process: Process, averaged: bool) -> Proof:
    """The best schedules for a record at each place that matters, over all stretches between releases."""
    places = places_of(process, averaged)
    proofs = []
    for place, weight in places.wanted.items():
        parts = [Part(0.0, None) if steps is None else Part(*best_schedule(steps)) for steps in places.stretches(place)]
        proofs.append(RecordProof(place, weight, tuple(parts)))
    return Proof(tuple(proofs), averaged)


def _worst(process: Process) -> Proof:
    return shift_proof(process, averaged=False)


def _averaged(process: Process) -> Proof:
    return shift_proof(process, averaged=True)


def _short_enough(process: Process) -> str | None:
    if len(process) > _MOST_STEPS:
        return f"it goes through every step, and {len(process)} are more than {_MOST_STEPS}"
    return None


def _little_enough(averaged: bool) -> Assumption:
    def failure(process: Process) -> str | None:
        if _short_enough(process) or not math.isfinite(process.contraction):
            return None
        work = places_of(process, averaged).work
        if work <= _MOST_WORK:
            return None
        return f"it would have to look at {work:.3g} steps of single records, more than {_MOST_WORK:.3g}"

    return Assumption("the run is short enough to go through", failure)


def _whole_when_released(process: Process) -> str | None:
    if not (isinstance(process.batches, Shuffled) and process.batches.each_epoch):
        return None
    every = process.batches.per_epoch
    cut = [release for release in process.releases if release % every]
    return f"with new orders, it needs releases after whole epochs of {every} steps, but one is at {cut[0]}" if cut else None


_SHORT = Assumption("at most twenty million steps", _short_enough)
_RELEASES_FIT = Assumption("releases at the end of epochs, where each epoch has a new order", _whole_when_released)

SHIFT_ENGINE = Theorem(
    "shift-engine",
    "lastiterate, after Bok et al. 2024, Theorem C.3",
    "any schedule and any Lipschitz constants, worst record",
    (FINITE_LIPSCHITZ, _SHORT, _RELEASES_FIT, _little_enough(averaged=False)),
    _worst,
)
RANDOM_ORDER = Theorem(
    "random-order",
    "lastiterate, the shift engine averaged over the order",
    "the order is random and secret: the average over the record's place",
    (batches("shuffled batches", Shuffled), FINITE_LIPSCHITZ, _SHORT, _RELEASES_FIT, _little_enough(averaged=True)),
    _averaged,
)
