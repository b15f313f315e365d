"""Forgetting in a model that was trained earlier: it is known, so its plan is for adaptive requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from lastiterate.accounting.forgotten import Forgetting, Removed
from lastiterate.errors import InvalidInput, must_be, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Source
from lastiterate.runs.arithmetic import EXACT
from lastiterate.runs.run import Run
from lastiterate.training.forget import as_forgotten
from lastiterate.training.state import State
from lastiterate.training.trained import SEEDED, Trained


def checked_earlier(trained: Any, forget: Removed | None, start: Any, releases: Iterable[int]) -> Trained | None:
    """The model to go on from, if one is given: that of the planned run, before one of its requests."""
    if trained is None:
        return None
    if not isinstance(trained, Trained):
        raise must_be("trained", "a model that li.train returned", f"{shown(trained):.60}")
    if forget is None or not forget.plan.adaptive:
        raise InvalidInput("trained_not_adaptive", field="trained")
    if start is not None:
        raise InvalidInput("start_with_trained", field="start")
    _check_run(trained, forget.plan)
    _check_records(trained, forget)
    if any(place <= trained.run.steps for place in releases):
        steps, got = trained.run.steps, f"{shown(list(releases)):.60}"
        raise InvalidInput("releases_before_trained", field="releases", got=got, steps=steps)
    return trained


def _check_run(trained: Trained, plan: Forgetting) -> None:
    more = trained.run.steps - plan.run.steps
    if trained.run.steps not in _begins(plan) or _settings(trained.run) != _settings(plan.run.continued(more)):
        raise InvalidInput("trained_of_another_run", field="trained")


def _check_records(trained: Trained, forget: Removed) -> None:
    gone = forget.until(_begins(forget.plan).index(trained.run.steps))
    if set(trained.removed) != set(gone):
        raise InvalidInput("forgotten_not_named", field="forget", got=f"{list(gone)}", forgotten=list(trained.removed))


def _begins(plan: Forgetting) -> tuple[int, ...]:
    """After so many steps each request comes."""
    return (plan.run.steps, *plan.requests.ends(plan.run.steps)[:-1])


def _settings(run: Run) -> Run:
    """A run but for what its execution added."""
    return replace(run, arithmetic=EXACT, start_norm=0.0)


def first_state(earlier: Trained | None, run: Run, start: Floats, source: Source) -> State:
    """Where a training begins, or goes on; what was rounded for its release is projected again."""
    if earlier is None:
        return State(0, start, randomness=source.state())
    if earlier.weights.shape != start.shape:
        raise InvalidInput("trained_shape", field="trained", got=f"{earlier.weights.shape}", shape=start.shape)
    weights = run.domain.projected(np.asarray(earlier.weights, np.float64))
    return State(earlier.run.steps, weights, randomness=source.state())


def without_removed(done: Trained, forget: Removed, earlier: Trained | None) -> Trained:
    """With what is proved of the removed records. A model that was trained earlier was released, too, and was rounded."""
    run, released, private = done.run, done.released, done.private
    if earlier is not None:
        arithmetic = run.arithmetic.then(earlier.run.arithmetic)
        run = replace(run, arithmetic=arithmetic, start_norm=max(run.start_norm, earlier.run.start_norm))
        released = {**earlier.released, earlier.run.steps: earlier.weights, **released}
        private = private and earlier.private
    forgotten = as_forgotten(forget.plan, run, () if private else (SEEDED,))
    return replace(done, run=run, released=released, private=private, forgotten=forgotten, removed=forget.every)
