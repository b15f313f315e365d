"""Deny by default: a theorem refuses every feature of a run that it does not name, also one that nobody has heard of."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.runs.noise import Arithmetic
from lastiterate.runs.process import Process
from lastiterate.testing.examples import found_examples
from lastiterate.theorems.features import (
    ANY_BATCHES,
    ANY_NEIGHBOURS,
    BY_THE_FRAME,
    FEATURES,
    ONLY_WITH,
    UNKNOWN,
    Feature,
    features_of,
)

LOSS = li.losses.logistic(feature_norm=1.0)
PLAIN = li.Run(LOSS, li.FullBatch(12), 0.1, li.OnIterate(std=0.5), 6)
CYCLIC, SHUFFLED = li.Cyclic(12, 4), li.Shuffled(12, 4)
# For each feature a run that has it, as a change of a plain one.
WITH: dict[str, dict[str, Any]] = {
    "full batches": {},
    "batches in a fixed order": {"batches": CYCLIC},
    "shuffled batches with one order for all epochs": {"batches": li.Shuffled(12, 4, each_epoch=False)},
    "shuffled batches with a new order each epoch": {"batches": SHUFFLED},
    "balls and bins": {"batches": li.BallsAndBins(12, 3)},
    "random batches, drawn independently at each step": {"batches": li.FixedSize(12, 4)},
    "a smaller last batch": {"batches": li.Cyclic(11, 4, last="smaller")},
    "batches of random size": {"batches": li.Poisson(12, 0.25)},
    "steps that change": {"step_size": [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]},
    "an unfinished epoch": {"batches": CYCLIC, "steps": 5},
    "a bounded domain": {"domain": li.Ball(radius=1.0)},
    "a proximal map": {"prox": li.parts.L1(weight=0.1)},
    "weight decay or an l2 term": {"weight_decay": 0.1},
    "momentum": {"optimizer": li.SGD(momentum=0.5)},
    "Nesterov momentum": {"optimizer": li.SGD(momentum=0.5, nesterov=True)},
    "dampening": {"optimizer": li.SGD(momentum=0.5, dampening=0.1)},
    "Adam or another optimiser": {"optimizer": li.Adam()},
    "an average of iterates": {"released": li.EMA(0.5)},
    "an average that begins after the start": {"released": li.AVERAGE(last=2)},
    "replace one record": {},
    "zero out one record": {"adjacency": li.ZERO_OUT},
    "add or remove one record": {"batches": li.Poisson(12, 0.25), "adjacency": li.ADD_OR_REMOVE_ONE},
    "several records of a user": {"batches": CYCLIC, "user_records": 2},
    "what was released beforehand": {"prior_mu": 0.3},
    "rounding of iterates": {"arithmetic": Arithmetic(factor=1.0, displacement=1e-9)},
}
RELEASED = {"checkpoints": (3,), "checkpoints inside an epoch": (2,)}


@dataclass(frozen=True, eq=False)
class Later(Process):
    """A process with a field that no theorem has been told of."""

    tempered: float = 1.0


def with_feature(feature: Feature) -> Process:
    if feature is UNKNOWN:
        given = PLAIN.process
        return Later(**{one.name: getattr(given, one.name) for one in fields(given)}, tempered=2.0)
    if feature.name in RELEASED:
        return replace(replace(PLAIN, batches=CYCLIC).process, releases=RELEASED[feature.name])
    return replace(PLAIN, **WITH[feature.name]).process


def without(given: Process) -> set[Feature]:
    return {one for one, _ in features_of(given)}


@pytest.mark.parametrize("feature", FEATURES, ids=lambda one: one.name)
def test_a_feature_is_seen_where_it_is_and_nowhere_else(feature: Feature) -> None:
    given = with_feature(feature)
    assert feature.present(given)
    assert feature in without(given)
    others = (one for one in FEATURES if one is not feature)
    assert any(not feature.present(with_feature(one)) for one in others)
    if feature in ONLY_WITH:
        assert ONLY_WITH[feature] & without(given)


def test_every_run_has_one_kind_of_batches_and_of_neighbours() -> None:
    for feature in FEATURES:
        found = without(with_feature(feature))
        assert len(found & ANY_BATCHES) == 1
        assert len(found & ANY_NEIGHBOURS) == 1


@pytest.mark.parametrize("theorem", li.theorems.ALL, ids=lambda one: one.name)
def test_a_theorem_refuses_every_feature_that_it_does_not_name(theorem: li.theorems.Theorem) -> None:
    assert UNKNOWN not in theorem.features
    for feature in FEATURES:
        answer = theorem.apply(with_feature(feature))
        if feature in theorem.features | BY_THE_FRAME:
            assert isinstance(answer, li.theorems.Guarantee) or feature not in answer.failed
        else:
            assert isinstance(answer, li.theorems.Inapplicable)
            assert feature in answer.failed


@pytest.mark.parametrize("theorem", li.theorems.ALL, ids=lambda one: one.name)
def test_a_new_field_of_processes_is_refused_until_it_is_looked_at(theorem: li.theorems.Theorem) -> None:
    (given,) = found_examples(theorem, 1)
    values = {one.name: getattr(given, one.name) for one in fields(given)}
    assert isinstance(theorem.apply(Later(**values)), li.theorems.Guarantee)
    answer = theorem.apply(Later(**values, tempered=0.5))
    assert isinstance(answer, li.theorems.Inapplicable)
    assert answer.failed == (UNKNOWN,)


# For each field of a run, another value; all of them have to reach the process.
CHANGED: dict[str, dict[str, Any]] = {
    "loss": {"loss": li.losses.logistic(feature_norm=2.0)},
    "batches": {"batches": CYCLIC},
    "step_size": {"step_size": 0.2},
    "noise": {"noise": li.OnIterate(std=0.6)},
    "length": {"steps": 7},
    "domain": {"domain": li.Ball(radius=1.0)},
    "prox": {"prox": li.parts.L1(weight=0.1)},
    "weight_decay": {"weight_decay": 0.1},
    "arithmetic": {"arithmetic": Arithmetic(factor=1.0, displacement=1e-9)},
    "start_norm": {"start_norm": 2.0},
    "adjacency": {"adjacency": li.ZERO_OUT},
    "optimizer": {"optimizer": li.SGD(momentum=0.5)},
    "released": {"released": li.EMA(0.5)},
    "prior_mu": {"prior_mu": 0.3},
    "user_records": {"user_records": 2},
}


@pytest.mark.parametrize("name", [one.name for one in fields(PLAIN)])
def test_every_field_of_a_run_reaches_its_process(name: str) -> None:
    base = replace(PLAIN, weight_decay=0.05) if name == "start_norm" else PLAIN  # it matters with decay alone
    one, two = base.process, replace(base, **CHANGED[name]).process
    assert any(_differ(getattr(one, field.name), getattr(two, field.name)) for field in fields(one))


def _differ(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray):
        return not np.array_equal(one, two)
    if type(one) is type(two) and hasattr(one, "__dataclass_fields__"):
        return any(_differ(getattr(one, field.name), getattr(two, field.name)) for field in fields(one))
    return bool(one != two)
