"""Requests by people who have seen earlier models: of the model at the request only its domain is known.

Given all that was computed before the request, the further steps start from a point of the domain. So does, at the same
step, the run that never had the records, from another. Both then take the same steps without the records: after the first
their distance is at most its Lipschitz constant times the diameter, and nothing pushes any more (docs/proofs.md,
"Forgetting").
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lastiterate.accounting.forgetting import Requests, check_requests, continued_process, forgetting_process
from lastiterate.errors import Unavailable, must_be
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import FullBatch, Turns
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run


def requested_process(run: Run, requests: Requests) -> Process:
    """What is claimed after the last request, as theorems see it."""
    if requests.adaptive:
        return adaptive_process(run, requests)
    return forgetting_process(run, requests)


def adaptive_process(run: Run, requests: Requests) -> Process:
    """The steps after the last request, from two points of the domain."""
    check_adaptive(run, requests)
    last = requests.ends(run.steps)[-1]
    process = continued_process(run, requests).part(last - requests.steps[-1], last)
    distance = np.zeros(len(process))
    distance[0] = up(float(process.lipschitz[0]) * process.diameter)
    # What was computed before the request is given, and strays, too, besides the run that never had the records.
    strays = up(math.sqrt(2) * process.displacement)
    return replace(process, sensitivity=distance, batches=FullBatch(run.batches.records), displacement=strays)


def check_adaptive(run: Run, requests: Requests) -> None:
    """A bounded domain, and batches that do not depend on what was drawn before the request."""
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
