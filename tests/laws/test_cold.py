"""No answer depends on what was asked before: a cache whose key lacks a field would answer for another run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.runs.process import Process, Update
from lastiterate.testing.draws import random_smooth
from lastiterate.theorems import bounded_steps, reflection
from processes import process
from test_caches import caches

DELTA = 1e-5
# They take long, and ask the same composition that window-tail asks about here.
SLOW = {"bok2024/random/strongly-convex", "bok2024/random/constrained", "bok2024/random/composition"}


def forget_everything() -> None:
    for cache in caches().values():
        cache.cache_clear()


def answers(given: Process) -> dict[str, float | str]:
    """ε of each theorem, or why it says nothing."""
    found: dict[str, float | str] = {}
    for theorem in (one for one in li.theorems.ALL if one.name not in SLOW):
        answer = theorem.apply(given)
        found[theorem.name] = answer.epsilon(DELTA) if isinstance(answer, li.theorems.Guarantee) else str(answer)
    return found


def assert_order_does_not_matter(ask: Callable[[Any], Any], usual: Any, others: dict[str, Any]) -> None:
    """Nothing is remembered but the other one when the usual one is asked about: its answer is the one that it has alone.

    Two questions with one key have it in both orders, so that one order shows what the other would.
    """
    forget_everything()
    expected = ask(usual)
    for name, other in others.items():
        forget_everything()
        ask(other)
        assert ask(usual) == expected, name


def changed(given: Process) -> dict[str, Process]:
    """The process with each of its fields changed alone."""
    other = process(given.batches, len(given), 0.4, 1.3, 0.8, 0.9, 0.5, retain=0.85)
    values = {
        "batches": replace(given.batches, records=2 * given.batches.records),
        "sensitivity": 0.9 * given.sensitivity,
        "noise": 1.1 * given.noise,
        "lipschitz": 0.95 * given.lipschitz,
        "drift": 0.9 * given.drift,
        "retain": 0.9 * given.retain,
        "sampled": 0.9 * given.sampled,
        "diameter": 1.2 * given.diameter if np.isfinite(given.diameter) else 2.0,
        "reason": "another reason",
        "releases": (1,),
        "dimension": 3,
        "displacement": 0.1,
        "prior_mu": 0.2,
        "smooth": random_smooth(np.random.default_rng(0), given),
        "usual": lambda rare: replace(other, batches=given.batches),
        "levels": ((1.0, 0.5), (0.5, 1.0)),
        "adjacency": li.ZERO_OUT if given.adjacency is not li.ZERO_OUT else li.ADD_OR_REMOVE_ONE,
        "update": Update(li.SGD(momentum=0.5), li.LAST),
        "group": 2,
        "members": (2,),
        "proximal": True,
        "decays": True,
        "inside": (0.5, 0.9),
    }
    assert sorted(values) == sorted(field.name for field in fields(Process))
    if len(given) == 1:
        del values["releases"]  # there is no step before the last
    return {name: replace(given, **{name: value}) for name, value in values.items()}


PROCESSES = {
    "sampled": process(li.FixedSize(120, 4), 2, 0.5, 1.0, 0.9, np.inf, 0.6, retain=0.5),
    "sampled, bounded": process(li.FixedSize(12, 4), 1, 0.5, 1.0, 0.9, 0.8, 0.6, retain=0.5),
    "shuffled": process(li.Shuffled(12, 6), 4, 0.5, 1.0, 0.9, np.inf, 0.6, retain=0.9),
    "balls and bins": replace(process(li.BallsAndBins(12, 2), 4, 0.5, 1.0, 0.9), adjacency=li.ZERO_OUT),
}


@pytest.mark.parametrize("name", PROCESSES)
def test_no_theorem_answers_for_a_process_that_was_asked_about_before(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With coarse tables: what is remembered has the same keys."""
    monkeypatch.setattr(bounded_steps, "_LEVELS", 16)
    monkeypatch.setattr(bounded_steps, "_FEWEST_ROWS", 4)
    monkeypatch.setattr(reflection, "_SAMPLED", (1,))
    assert_order_does_not_matter(answers, PROCESSES[name], changed(PROCESSES[name]))


def changed_runs(given: li.Run) -> dict[str, li.Run]:
    """The run with each of its fields changed alone."""
    values = {
        "loss": li.losses.logistic(feature_norm=1.0, l2=0.1),
        "batches": li.Cyclic(12, 3),
        "step_size": 0.4,
        "noise": li.OnMeanGradient(0.9),
        "length": given.continued(1).length,
        "domain": li.Ball(0.5),
        "prox": li.parts.L1(weight=0.1),
        "weight_decay": 0.1,
        "arithmetic": given.expected_arithmetic,
        "start_norm": 1.0,
        "adjacency": li.ZERO_OUT,
        "optimizer": li.SGD(momentum=0.5),
        "released": li.EMA(decay=0.5),
        "prior_mu": 0.2,
        "user_records": 2,
    }
    assert sorted(values) == sorted(field.name for field in fields(li.Run))
    return {name: replace(given, **{name: value}) for name, value in values.items()}


def test_no_account_is_that_of_a_run_that_was_asked_about_before() -> None:
    loss = li.losses.logistic(feature_norm=1.0, l2=0.05)
    run = li.Run(loss, li.Cyclic(12, 4), 0.5, li.OnMeanGradient(0.8), 6)

    def accounted(one: li.Run) -> tuple[float, str, float]:
        report = li.account(one, DELTA)
        return report.epsilon, report.best.theorem.name, report.epsilon_all_released

    assert_order_does_not_matter(accounted, run, changed_runs(run))
