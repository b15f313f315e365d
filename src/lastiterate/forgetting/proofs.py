"""By which theorem a forgetting is proved: schedules for the worst batches; or, of random ones, the average over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


# What a forgetting claims, and what it assumes, as facts.


def forgotten_unit(run: Run, requests: Requests) -> Fact:
    """In place of a privacy unit, which it is not: nobody may take it for a guarantee of privacy."""
    return fact("forgotten", records=requests.records, replaced=run.adjacency.replaces, adaptive=requests.adaptive)


def compared(run: Run, requests: Requests) -> Fact:
    """Which two models cannot be told apart."""
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
    """Which of the models that a run and its requests release the claim is about."""
    released = bool(requests.released_before_the_end(run.steps))
    earlier = "public" if requests.adaptive else "covered" if released else "not covered"
    return fact("models_covered", earlier=earlier)


def forgetting_promises(run: Run, requests: Requests) -> tuple[Fact, ...]:
    """What a claim about forgetting rests on. The first two say what is compared."""
    whole, about = run.continued(sum(requests.steps)), (compared(run, requests), covered_models(run, requests))
    if requests.adaptive:  # what else is released is not limited, but for the further steps
        others = tuple(one for one in promises(whole, ()) if one.code != "only_released")
        return (*about, *others, fact("removed_unused"), fact("nothing_released_meanwhile"))
    others = promises(whole, requests.released_before_the_end(run.steps))
    return (*about, *others, fact("removed_unused"), fact("requests_independent"))
