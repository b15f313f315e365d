"""Which theorem proves that records are forgotten, what is claimed then, and which assumptions it rests on.

Schedules prove it for the worst batches; of random batches, the average over them may prove more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from lastiterate.accounting.account import account
from lastiterate.certificate.claims import promises, released
from lastiterate.errors import InvalidInput, Unavailable
from lastiterate.facts import Fact, fact
from lastiterate.forgetting.requests import Requests, check_covered, continued_process, requested_process
from lastiterate.runs.batches import Sizes
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem
from lastiterate.theorems.window_tail import FORGOTTEN_BY_CHANCE


def chance_process(run: Run, requests: Requests) -> Process:
    """Return the process of one removed record, there until the last request, of a group of as many as are removed."""
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
    """Return the training itself, of which the removed records are a group: the claim where no further steps are taken."""
    check_covered(run, requests)
    return released(_for_group(run, requests).process, requests.released_before_the_end(run.steps))


def _for_group(run: Run, requests: Requests) -> Run:
    return replace(run, user_records=requests.records)


_PROCESSES: dict[Theorem, Callable[[Run, Requests], Process]] = {
    SHIFT_ENGINE: requested_process,
    FORGOTTEN_BY_CHANCE: chance_process,
}


def theorems_for(requests: Requests) -> dict[str, Theorem]:
    """Return the theorems that may prove a claim, by their names: without further steps, the whole catalogue."""
    return {theorem.name: theorem for theorem in (CATALOGUE if requests.only_trained else _PROCESSES)}


def process_for(theorem: Theorem, run: Run, requests: Requests) -> Process:
    """Return the process of what is claimed after the last request, as this theorem sees it."""
    return trained_process(run, requests) if requests.only_trained else _PROCESSES[theorem](run, requests)


def best_guarantee(run: Run, requests: Requests, delta: float) -> Guarantee:
    """Return the guarantee with the least ε at this δ after the last request; an error if no theorem proves one."""
    if requests.only_trained:
        check_covered(run, requests)
        return account(_for_group(run, requests), delta, requests.released_before_the_end(run.steps)).best
    by_chance = run.batches.random and not requests.adaptive
    tried = (SHIFT_ENGINE, FORGOTTEN_BY_CHANCE) if by_chance else (SHIFT_ENGINE,)
    found = [theorem.apply(process_for(theorem, run, requests)) for theorem in tried]
    proved = [one for one in found if isinstance(one, Guarantee)]
    if not proved:
        reasons = tuple(reason for one in found if isinstance(one, Inapplicable) for reason in one.sentences)
        raise Unavailable("forgetting_unproved", field="run", reasons=reasons)
    return min(proved, key=lambda one: one.epsilon(delta))


def forgetting_unit(run: Run, requests: Requests) -> Fact:
    """Return what stands in place of a privacy unit, so that nobody takes forgetting for a guarantee of privacy."""
    return fact("forgotten", records=requests.records, replaced=run.adjacency.replaces, adaptive=requests.adaptive)


def compared(run: Run, requests: Requests) -> Fact:
    """Return the fact that says which two models cannot be told apart."""
    about = {
        "steps": run.steps,
        "further": sum(requests.steps),
        "records": requests.records,
        "replaced": run.adjacency.replaces,
        "earlier": sum(requests.removals) - requests.records,
    }
    if requests.adaptive:
        return fact("separate_run", **about)
    return fact("same_start_and_settings", **about, after=requests.released_before_the_end(run.steps))


def covered_models(run: Run, requests: Requests) -> Fact:
    """Return the fact that says whether the claim covers the models released earlier."""
    released = bool(requests.released_before_the_end(run.steps))
    earlier = "public" if requests.adaptive else "covered" if released else "not covered"
    return fact("models_covered", earlier=earlier)


def forgetting_promises(run: Run, requests: Requests) -> tuple[Fact, ...]:
    """Return the assumptions of a claim; the first two say what is compared and which models are covered."""
    whole, about = run.continued(sum(requests.steps)), (compared(run, requests), covered_models(run, requests))
    if requests.adaptive:  # what else is released is not limited, but for the further steps
        others = tuple(one for one in promises(whole, ()) if one.code != "only_released")
        return (*about, *others, fact("removed_unused"), fact("nothing_released_meanwhile"))
    others = promises(whole, requests.released_before_the_end(run.steps))
    return (*about, *others, fact("removed_unused"), fact("requests_independent"))
