"""Training that goes on without records that it was asked to forget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lastiterate.accounting.forget import forgetting_of
from lastiterate.accounting.forgotten import Forgetting, Removed
from lastiterate.errors import InvalidInput, Unavailable, must_be, shown
from lastiterate.facts import Fact
from lastiterate.runs.run import Run
from lastiterate.training.data import pair_of
from lastiterate.training.sources import RecordSource, on_disk


def run_to_forget(run: Run, forget: Any, loss: Any, checkpoint: Any, releases: Iterable[int]) -> Run:
    """Training and further steps as one run; or why that is not what can be executed."""
    if not isinstance(forget, Removed):
        raise InvalidInput("not_removed_records", field="forget", got=f"{shown(forget):.60}")
    if forget.plan.run != run:
        raise must_be("forget", "planned for this very run", "a plan for another one")
    if run.adjacency.replaces:
        raise InvalidInput("forget_not_zero_out", field="adjacency", got="li.REPLACE_ONE")
    if loss is not None or checkpoint is not None:
        raise Unavailable("forget_not_with", field="forget", argument="checkpoint" if loss is None else "loss")
    if not _allowed(forget.plan, set(releases)):
        planned = list(forget.plan.releases)
        raise InvalidInput(
            "releases_not_planned", field="releases", got=f"{shown(list(releases)):.60}", planned=planned
        )
    return forget.plan.whole


def _allowed(plan: Forgetting, releases: set[int]) -> bool:
    """After adaptive requests all is taken as known but what is computed while a request is served."""
    if not plan.adaptive:
        return releases <= set(plan.releases)
    ends = plan.requests.ends(plan.run.steps)
    return all(place <= plan.run.steps or place in ends for place in releases)


def phases(forget: Removed | None, data: Any, begun: int) -> Iterator[tuple[int, Any]]:
    """After how many steps training goes on with which data, from this step on: nothing changes if nothing is forgotten."""
    if forget is None:
        return
    done = forget.plan.run.steps
    for request, steps in enumerate(forget.plan.further, 1):
        if done >= begun:
            yield done, _without(data, forget.until(request))
        done += steps


def _without(data: Any, records: tuple[int, ...]) -> tuple[Any, Any]:
    """These rows are 0: a linear model's gradient is 0 there, and every other record keeps its place in all sums."""
    if isinstance(data, RecordSource) or on_disk(pair_of(data)[0]):
        raise Unavailable("forget_on_disk", field="data")
    features, targets = pair_of(data)
    kept = np.array(features)
    kept[list(records)] = 0
    return kept, targets


def as_forgotten(plan: Forgetting, executed: Run, caveats: tuple[Fact, ...]) -> Forgetting:
    """What is proved of the steps as they were executed, their rounding included."""
    run = replace(plan.run, arithmetic=executed.arithmetic, start_norm=executed.start_norm)
    return forgetting_of(run, plan.target, plan.delta, plan.requests, caveats)
