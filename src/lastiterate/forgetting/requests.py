"""Requests to remove records, and the training that goes on without them, as theorems see it: a run whose pushes stop.

It is compared with a run of as many steps from the same start that never had these records (docs/proofs.md, "Forgetting").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from lastiterate.errors import InvalidInput, Unavailable, must_be
from lastiterate.facts import fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import Batches, Cyclic, FullBatch, Shuffled, Sizes, Turns
from lastiterate.runs.process import Process
from lastiterate.runs.quantities import Quantities
from lastiterate.runs.run import Run
from lastiterate.theorems.shift_engine import MOST_WORK


@dataclass(frozen=True)
class Requests:
    """The i-th request removes `removals[i]` records, and `steps[i]` further steps follow it.

    The iterates after `releases` steps, counted from the start of training, are released as well. `adaptive`: all that was
    computed before a request may be public, and the request may depend on it. `separate`: what is claimed is about the
    records of the last request alone; else about those of all requests together.
    """

    removals: tuple[int, ...]
    steps: tuple[int, ...]
    releases: tuple[int, ...] = ()
    adaptive: bool = False
    separate: bool = False

    @property
    def records(self) -> int:
        """Number of records that the claim is about."""
        return self.removals[-1] if self.separate else sum(self.removals)

    @property
    def only_trained(self) -> bool:
        """Whether no step follows any request, so that all records were there throughout."""
        return not self.adaptive and not any(self.steps)

    def first(self, count: int) -> Requests:
        """Return the first `count` requests."""
        return replace(self, removals=self.removals[:count], steps=self.steps[:count])

    def ends(self, training: int) -> tuple[int, ...]:
        """Return the steps after which each request is served, counted from the start of training."""
        return tuple(accumulate(self.steps, initial=training))[1:]

    def released_before_the_end(self, training: int) -> tuple[int, ...]:
        """Return the releases that the claim after the last request includes."""
        return tuple(place for place in self.releases if place < training + sum(self.steps))

    def present(self, training: int) -> Floats:
        """Return, for each step, how many records of the claim are still there."""
        counts = (*(0 for _ in self.removals[1:]), self.records) if self.separate else self.removals
        left = self.records - np.cumsum((0, *counts))
        return np.repeat(left.astype(float), (training, *self.steps))


def forgetting_process(run: Run, requests: Requests) -> Process:
    """Return the steps of `run` and those after each request, with the records of the claim as long as they are there.

    A step is pushed as far as all of them together push that are still there. Where several are in a pass is not known: each
    epoch counts at its worst, as if it had an order of its own. In a random batch they may be at every step.
    """
    check_covered(run, requests)
    process, count = continued_process(run, requests), requests.records
    return replace(
        process,
        sensitivity=up(process.sensitivity, operations=1) * requests.present(run.steps),
        batches=_anywhere(run.batches) if count > 1 else run.batches,
        releases=requests.released_before_the_end(run.steps),
        prior_mu=up(process.prior_mu, operations=1) * count,
    )


def continued_process(run: Run, requests: Requests, sizes: Sizes | None = None) -> Process:
    """Return training and further steps where all removed records may be missing, for these sizes of batches or for all."""
    whole, count = run.continued(sum(requests.steps)), sum(requests.removals)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        process = Quantities(whole, sizes or whole.batches.sizes_under(whole.noise.on_sum), missing=count).process
    return replace(process, smooth=fact("records_forgotten"))


def check_covered(run: Run, requests: Requests) -> None:
    """Refuse what no claim is about, and passes that a request cuts where the claim is about several records."""
    check_requests(run, requests)
    phases = (run.steps, *requests.steps)
    if run.batches.passes and requests.records > 1 and any(one % run.batches.per_epoch for one in phases):
        called, every = run.batches.called, run.batches.per_epoch
        raise Unavailable("epochs_not_whole", field="steps", batches=called, per_epoch=every, steps=phases)


def check_requests(run: Run, requests: Requests) -> None:
    """Refuse what no claim is about: users, optimisers other than plain steps, too many removals or steps."""
    removed, total = sum(requests.removals), run.steps + sum(requests.steps)
    if run.user_records != 1:
        raise InvalidInput("single_records_forgotten", field="user_records", got=f"{run.user_records}")
    if not run.process.update.plain:
        field = "optimizer" if run.released.plain else "released"
        raise Unavailable("forgetting_not_plain", field=field, got=run.process.update.described)
    if not 1 <= removed <= run.batches.records:
        raise must_be("removals", f"from 1 to {run.batches.records} records in all", f"{removed}")
    if total > MOST_WORK:
        raise Unavailable("too_many_steps_together", field="steps", most=MOST_WORK, steps=total)


def _anywhere(batches: Batches) -> Batches:
    """Return the batches with a new order each epoch: no places of several records in one order are worse."""
    if not isinstance(batches, Cyclic | Shuffled) or batches.per_epoch == 1:
        return batches
    return Shuffled(records=batches.records, batch_size=batches.batch_size, last=batches.last)


def requested_process(run: Run, requests: Requests) -> Process:
    """Return the process of what is claimed after the last request."""
    if requests.adaptive:
        return adaptive_process(run, requests)
    return forgetting_process(run, requests)


def adaptive_process(run: Run, requests: Requests) -> Process:
    """Return the steps after the last request, from two points of the domain.

    What was computed before the request may be public, and the request may depend on it. Given all of that, further steps
    start from a point of the domain. So does, at the same step, the run that never had the records, from another. Both then
    take the same steps without the records: after the first their distance is at most its Lipschitz constant times the
    diameter, and nothing pushes any more (docs/proofs.md, "Forgetting").
    """
    check_adaptive(run, requests)
    last = requests.ends(run.steps)[-1]
    process = continued_process(run, requests).part(last - requests.steps[-1], last)
    distance = np.zeros(len(process))
    distance[0] = up(float(process.lipschitz[0]) * process.diameter)
    # What was computed before the request is given, and strays, too, besides the run that never had the records.
    strays = up(math.sqrt(2) * process.displacement)
    return replace(process, sensitivity=distance, batches=FullBatch(run.batches.records), displacement=strays)


def check_adaptive(run: Run, requests: Requests) -> None:
    """Refuse unbounded domains, and batches that depend on what was drawn before the request."""
    check_requests(run, requests)
    batches, phases = run.batches, (run.steps, *requests.steps[:-1])
    if math.isinf(run.domain.diameter):
        raise Unavailable("adaptive_unbounded", field="domain")
    if batches.turns is Turns.ONE_ORDER:
        raise Unavailable("adaptive_one_order", field="batches")
    if batches.reshuffled and any(one % batches.per_epoch for one in phases):
        raise Unavailable("adaptive_epochs_not_whole", field="steps", per_epoch=batches.per_epoch, steps=phases)
    if run.prior_mu:
        raise Unavailable("adaptive_beforehand", field="prior_mu", got=f"{run.prior_mu:g}")
    if requests.steps and not requests.steps[-1]:
        raise must_be("steps", "at least 1 after an adaptive request", "0")
