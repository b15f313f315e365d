"""By which theorem a forgetting is proved: schedules for the worst batches; or, of random ones, the average over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from lastiterate.accounting.account import account
from lastiterate.accounting.forgetting import Requests, check_covered, continued_process
from lastiterate.accounting.forgetting_adaptive import requested_process
from lastiterate.accounting.releases import released
from lastiterate.errors import InvalidInput, Unavailable
from lastiterate.runs.batches import Sizes
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.forgotten_by_chance import FORGOTTEN_BY_CHANCE
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem


def chance_process(run: Run, requests: Requests) -> Process:
    """For one record, there until the last request, of as many as are removed: a group."""
    check_covered(run, requests)
    if requests.adaptive:
        raise InvalidInput("adaptive_otherwise_proved", field="adaptive", theorem=SHIFT_ENGINE.name)
    worst = _with_sizes(run, requests, run.batches.sizes_under(run.noise.on_sum))
    if run.batches.constant_size:
        return worst
    usual = lru_cache(maxsize=8)(lambda rare: _with_sizes(run, requests, run.batches.usual_sizes(rare)))
    return replace(worst, usual=usual)


def _with_sizes(run: Run, requests: Requests, sizes: Sizes) -> Process:
    process = continued_process(run, requests, sizes)
    present = np.arange(len(process)) < requests.ends(run.steps)[-1] - requests.steps[-1]
    return replace(
        process,
        sensitivity=process.sensitivity * present,
        sampled=process.sampled * present,
        releases=requests.released_before_the_end(run.steps),
        group=requests.records,
    )


def trained_process(run: Run, requests: Requests) -> Process:
    """Without further steps, what is claimed is the privacy of the training: its removed records are a group."""
    check_covered(run, requests)
    return released(_for_group(run, requests).process, requests.released_before_the_end(run.steps))


def _for_group(run: Run, requests: Requests) -> Run:
    return replace(run, user_records=requests.records)


_PROCESSES: dict[Theorem, Callable[[Run, Requests], Process]] = {
    SHIFT_ENGINE: requested_process,
    FORGOTTEN_BY_CHANCE: chance_process,
}


def theorems_for(requests: Requests) -> dict[str, Theorem]:
    """By which it may be proved, by their names: without further steps, by every theorem."""
    return {theorem.name: theorem for theorem in (CATALOGUE if requests.only_trained else _PROCESSES)}


def process_for(theorem: Theorem, run: Run, requests: Requests) -> Process:
    """What is claimed after the last request, as this theorem sees it."""
    return trained_process(run, requests) if requests.only_trained else _PROCESSES[theorem](run, requests)


def forgotten(run: Run, requests: Requests, delta: float) -> Guarantee:
    """The best that is proved at this δ; an error if that is nothing."""
    if requests.only_trained:
        check_covered(run, requests)
        return account(_for_group(run, requests), delta, requests.released_before_the_end(run.steps)).best
    found = [theorem.apply(process_for(theorem, run, requests)) for theorem in _tried(run, requests)]
    proved = [one for one in found if isinstance(one, Guarantee)]
    if not proved:
        reasons = tuple(reason for one in found if isinstance(one, Inapplicable) for reason in one.sentences)
        raise Unavailable("forgetting_unproved", field="run", reasons=reasons)
    return min(proved, key=lambda one: one.epsilon(delta))


def _tried(run: Run, requests: Requests) -> Iterator[Theorem]:
    yield SHIFT_ENGINE
    if run.batches.random and not requests.adaptive:
        yield FORGOTTEN_BY_CHANCE
