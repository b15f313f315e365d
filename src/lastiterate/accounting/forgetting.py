"""A training that goes on without some of its records, as theorems see it: a run whose pushes stop.

It is compared with a run of as many steps from the same start that never had these records (docs/proofs.md, "Forgetting").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lastiterate.accounting.releases import checked_releases
from lastiterate.algorithms.batches import Batches, Cyclic, Shuffled, Turns
from lastiterate.algorithms.process import Process
from lastiterate.algorithms.quantities import Quantities
from lastiterate.algorithms.run import Run
from lastiterate.errors import InvalidInput, Unavailable
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.theorems.shift_engine import MOST_WORK, SHIFT_ENGINE
from lastiterate.theorems.theorem import Guarantee, Inapplicable


def forgetting_process(
    run: Run, removals: tuple[int, ...], steps: tuple[int, ...], releases: tuple[int, ...]
) -> Process:
    """The steps of `run`, then `steps[i]` more after the i-th request, which removes `removals[i]` records.

    A step is pushed as far as all records together push that are removed in the end, and still there at that step. Where
    they are in a pass is not known: each epoch counts at its worst, as if it had an order of its own.
    """
    check_covered(run, removals, steps)
    whole, count = run.continued(sum(steps)), sum(removals)
    sizes = whole.batches.sizes_under(whole.noise.on_sum)
    process = Quantities(whole, sizes, missing=count).process
    return replace(
        process,
        sensitivity=up(process.sensitivity, operations=1) * _present(run.steps, removals, steps),
        batches=_anywhere(run.batches) if count > 1 else run.batches,
        releases=tuple(place for place in releases if place < whole.steps),
        beforehand_mu=up(process.beforehand_mu, operations=1) * count,
        smooth="nothing is prepaid where records are forgotten",
    )


def forgotten_by(process: Process) -> Guarantee:
    """What is proved of it; an error if that is nothing."""
    found = SHIFT_ENGINE.apply(process)
    if isinstance(found, Inapplicable):
        raise Unavailable(f"nothing is proved of what this run forgets: {'; '.join(found.reasons)}.", field="run")
    return found


def checked_forgetting_releases(run: Run, releases: Iterable[int]) -> tuple[int, ...]:
    """Iterates of the training, its last included; what is released while it forgets is the model of a request."""
    places = checked_releases(releases)
    if places and places[-1] > run.steps:
        raise InvalidInput(
            f"releases must be iterates of the training, after at most {run.steps} steps. Got {places[-1]}.",
            field="releases",
        )
    return places


def check_covered(run: Run, removals: tuple[int, ...], steps: tuple[int, ...]) -> None:
    """Batches whose order is no secret, and in passes whole ones where there are several records."""
    batches, count, phases = run.batches, sum(removals), (run.steps, *steps)
    if run.user_records != 1:
        raise InvalidInput(
            f"forgetting counts single records, but a user of this run has up to {run.user_records}. Give removals all "
            "records that are removed, and the run user_records=1.",
            field="user_records",
        )
    if batches.turns not in (Turns.EVERY_STEP, Turns.FIXED_ORDER):
        raise Unavailable(
            f"forgetting is proved for full batches and for batches in a fixed order. Got {batches.called}. Use "
            "li.FullBatch or li.Cyclic.",
            field="batches",
        )
    if not 1 <= count <= batches.records:
        raise InvalidInput(
            f"removals must be from 1 to {batches.records} records in all. Got {count}.", field="removals"
        )
    if sum(phases) > MOST_WORK:
        raise Unavailable(
            f"training and further steps must be at most {MOST_WORK:.3g}, to be gone through one by one. Got "
            f"{sum(phases):.3g}.",
            field="steps",
        )
    if count > 1 and any(one % batches.per_epoch for one in phases):
        raise Unavailable(
            "to forget several records, cyclic batches must be trained on, before and after each request, in whole epochs "
            f"of {batches.per_epoch} steps. Got {', '.join(map(str, phases[:6]))} steps.",
            field="steps",
        )


def _present(training: int, removals: tuple[int, ...], steps: tuple[int, ...]) -> Floats:
    """For each step, how many of the records are still there that are gone in the end."""
    left = sum(removals) - np.cumsum((0, *removals))
    return np.repeat(left.astype(float), (training, *steps))


def _anywhere(batches: Batches) -> Batches:
    """The same batches with a new order each epoch: no places of several records in a fixed order are worse."""
    if not isinstance(batches, Cyclic) or batches.per_epoch == 1:
        return batches
    return Shuffled(records=batches.records, batch_size=batches.batch_size, last=batches.last)
