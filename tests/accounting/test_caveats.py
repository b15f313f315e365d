"""What is wrong with an execution is wrong with all that is derived from its guarantee, which carries it or refuses."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.accounting.report import Ranked
from lastiterate.curves.notion import Notion
from lastiterate.facts import fact, facts_from_json, facts_to_json

DELTA = 1e-5
RUN = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.1),
    batches=li.Cyclic(records=40, batch_size=10),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.1),
    steps=li.epochs(3),
    adjacency=li.ZERO_OUT,
)
HIDDEN = replace(RUN, batches=li.Shuffled(records=40, batch_size=10))
DATA = (np.eye(40, 3), np.where(np.arange(40) % 2, 1, -1))
MARKED = (li.results.Report, li.theorems.Guarantee, Notion, li.results.Forgetting)


@cache
def seeded(run: li.Run = RUN) -> li.results.Report:
    return li.train(run, DATA, seed=0).report(DELTA)


@cache
def of_one_person() -> li.results.Report:
    return li.account(RUN, DELTA, group=[1, 2])


@cache
def forgotten() -> li.results.Forgetting:
    plan = li.forget(RUN, epsilon=20.0, delta=DELTA)
    found = li.train(RUN, DATA, seed=0, forget=plan.of([3])).forgotten
    assert found is not None
    return found


@cache
def selected() -> li.results.Selection:
    parts = [li.account(RUN, DELTA), li.notions.GaussianDP(0.3, li.ZERO_OUT)]
    return replace(
        li.select(parts, trials=li.trials.Geometric(mean=3)), caveats=(fact("leaked", what=(("train_loss", (1, 2)),)),)
    )


SOURCES: dict[str, Callable[[], Any]] = {
    "report": seeded,
    "report for one person": lambda: of_one_person(),
    "forgetting": forgotten,
    "selection": selected,
    "guarantee": lambda: seeded().best,
    "notion": lambda: seeded().best.notion,
}
# With what each method is called; what is not listed here is an attribute, and is looked at.
GIVEN: dict[str, Any] = {
    "under": lambda one: one.under(li.REPLACE_ONE),
    "group": lambda one: one.group(2),
    "profile": lambda one: one.profile([1.0]),
    "tradeoff": lambda one: one.tradeoff([0.1]),
    "as_notion": lambda one: one.as_notion(),
    "label": lambda one: one.label(),
    "to_dict": lambda one: one.to_dict(),
    "to_json": lambda one: one.to_json(),
    "details": lambda one: one.details(),
    "plot": None,  # a picture, as is the next
    "plot_comparison": None,
    "save": None,  # tests/signed
    "save_certificate": None,  # the certificate, which is looked at
    "certificate_after": lambda one: one.certificate_after(1),
    "of": lambda one: one.of([3]),
    "epsilon": lambda one: (
        one.epsilon if isinstance(one, li.results.Report | li.results.Forgetting) else one.epsilon(DELTA)
    ),
    "delta": lambda one: one.delta(1.0) if isinstance(one, Notion) else one.delta,
    "rdp": lambda one: one.rdp(2.0),
    "relabelled": lambda one: one.relabelled(li.REPLACE_ONE),
    "after": lambda one: one.after(0.5),
    "compose": lambda one: one.compose(3),
    "epsilon_estimate": lambda one: one.epsilon_estimate(-9.0),
    "log_delta": lambda one: one.log_delta(np.ones(1)),
    "epsilon_at_log": lambda one: one.epsilon_at_log(np.full(1, -9.0)),
    "epsilon_bracketed": lambda one: one.epsilon_bracketed(-9.0).value,
    "log_delta_estimate": lambda one: one.log_delta_estimate(1.0),
    "with_caveats": lambda one: one.with_caveats(()),
    "for_delta": lambda one: one.for_delta(DELTA),
    "at_delta": lambda one: None if one.at_delta is None else one.at_delta(-9.0),
    "at_least": None,  # an estimate, a number
}
DESCRIBES_THE_RUN = (li.Run, li.theorems.Theorem, li.theorems.Inapplicable, li.results.Alternative)


def public(one: Any) -> list[str]:
    named = [field.name for field in fields(one)] if is_dataclass(one) else []
    return sorted({name for name in (*dir(type(one)), *named) if not name.startswith("_")})


def unmarked(value: Any) -> Iterator[str]:
    """The guarantees in a value that do not say what is wrong with them."""
    if isinstance(value, DESCRIBES_THE_RUN):
        return
    if isinstance(value, li.results.Report) and value.members:
        value = value.best
    if isinstance(value, MARKED) and not value.caveats:
        yield repr(value)
    if isinstance(value, dict):
        if "claim" in value and not value["caveats"] and not value["claim"]["unit"].get("records"):
            yield "a certificate"
        value = tuple(value.values())
    if isinstance(value, str) and value.startswith("epsilon = ") and "of one person" not in value.partition("\n")[0]:
        yield "a text that begins with its claim"
    if isinstance(value, Ranked):
        yield from unmarked(value.guarantee)
    if isinstance(value, tuple | list):
        for one in value:
            yield from unmarked(one)


def answers(source: Any) -> Iterator[tuple[str, Any]]:
    """Every public attribute, and what every public method returns or that it refuses."""
    for name in public(source):
        ask = GIVEN.get(name, lambda one, name=name: getattr(one, name))
        if ask is None:
            continue
        try:
            found = ask(source)
        except (li.errors.InvalidInput, li.errors.Unavailable) as refusal:
            found = refusal
        assert not inspect.ismethod(found), f"{name} is a new method: say in GIVEN how it is called"
        yield name, found


@pytest.mark.parametrize("source", SOURCES)
def test_no_way_out_of_a_guarantee_with_a_caveat_loses_it(source: str) -> None:
    found = dict(answers(SOURCES[source]()))
    assert [(name, list(unmarked(one))) for name, one in found.items() if list(unmarked(one))] == []
    for inner in (one for one in found.values() if isinstance(one, (*MARKED, li.theorems.Evidence))):
        assert [name for name, one in answers(inner) if list(unmarked(one))] == []


def test_evidence_of_a_guarantee_with_a_caveat_has_it() -> None:
    for report in (seeded(), seeded(HIDDEN)):
        for one in report.guarantees:
            assert [name for name, found in answers(one.evidence) if list(unmarked(found))] == []


def dp_accounting(name: str, *more: Any) -> Callable[[Any], Any]:
    room = pytest.importorskip("lastiterate.adapters.dp_accounting")
    return lambda one: getattr(room, name)(*more, one)


def accountant() -> Any:
    room = pytest.importorskip("lastiterate.adapters.dp_accounting")
    return room.LastIterateAccountant(room.relation_of(li.ZERO_OUT))


def budget() -> li.Budget:
    return li.Budget(100.0, DELTA, li.ZERO_OUT)


KERNEL = li.mechanisms.FiniteKernel([[0.5, 0.5], [0.5, 0.5]])
TAKERS: dict[str, Callable[[Any], Any]] = {
    "compose": lambda one: li.compose([li.notions.GaussianDP(1.0, li.ZERO_OUT), one]),
    "select": lambda one: li.select(one, trials=li.trials.Geometric(mean=2)),
    "best": lambda one: li.notions.best([one, li.notions.GaussianDP(9.0, li.ZERO_OUT)]),
    "Budget.spend": lambda one: budget().spend(one, "a model"),
    "Budget.would": lambda one: budget().would(one),
    "amplify": lambda one: KERNEL.amplify(one),
    "event_of": lambda one: dp_accounting("event_of")(one),
    "compose_into": lambda one: dp_accounting("compose_into", accountant())(one),
    "privacy_loss_distribution": lambda one: dp_accounting("privacy_loss_distribution")(one),
}
NAMES = {"guarantee", "guarantees", "release", "report", "notion"}


def takers_of(room: Any) -> Iterator[str]:
    for name in dir(room):
        one = getattr(room, name)
        if inspect.isfunction(one) and NAMES & set(inspect.signature(one).parameters):
            yield name
        if isinstance(one, type) and one.__module__.startswith("lastiterate"):
            for method, function in inspect.getmembers(one, inspect.isfunction):
                if not method.startswith("_") and NAMES & set(inspect.signature(function).parameters):
                    yield method if method == "amplify" else f"{name}.{method}"


def test_every_function_that_takes_a_guarantee_is_listed() -> None:
    rooms = [li, li.notions, li.mechanisms, li.results, li.training, li.testing, li.auditing, li.baselines]
    rooms.append(pytest.importorskip("lastiterate.adapters.dp_accounting"))
    assert {name for room in rooms for name in takers_of(room)} == set(TAKERS)


@pytest.mark.parametrize("source", [name for name in SOURCES if name != "forgetting"])
@pytest.mark.parametrize("taker", TAKERS)
def test_no_function_takes_a_guarantee_with_a_caveat(taker: str, source: str) -> None:
    with pytest.raises(li.errors.InvalidInput):
        TAKERS[taker](SOURCES[source]())


@pytest.mark.parametrize("taker", [name for name in TAKERS if name != "amplify"])
def test_every_function_takes_the_same_without(taker: str) -> None:
    TAKERS[taker](li.account(RUN, DELTA))


def test_numbers_are_those_of_the_run() -> None:
    one, clean = seeded(), li.account(seeded().run, DELTA)
    assert (one.epsilon, one.mu, one.epsilons) == (clean.epsilon, clean.mu, clean.epsilons)
    assert one.profile([0.5, 1.0]).tolist() == clean.profile([0.5, 1.0]).tolist()
    assert one.tradeoff([0.1]).tolist() == clean.tradeoff([0.1]).tolist()
    assert one.under(li.REPLACE_ONE).epsilon(DELTA) == clean.under(li.REPLACE_ONE).epsilon(DELTA)
    promised = facts_to_json(fact.stated for fact in facts_from_json(one.certificate["assumptions"]))
    assert {**one.certificate, "caveats": [], "assumptions": promised} == clean.certificate


def test_a_caveat_cannot_be_taken_away() -> None:
    assert replace(seeded(), caveats=()).caveats == seeded().caveats != ()
    assert replace(forgotten(), caveats=()).caveats != ()
    assert not li.verify(replace(seeded(), caveats=()).certificate).accepted


def test_what_is_saved_says_it(tmp_path: Path) -> None:
    report = seeded()
    for name in ("report.html", "report.json", "report.txt"):
        report.save(tmp_path / name, curves=False)
        text = (tmp_path / name).read_text()
        said = json.loads(text)["report"]["caveats"] if name.endswith("json") else text
        assert (facts_to_json(report.caveats) == said != []) if name.endswith("json") else "DO NOT RELEASE" in said


@pytest.mark.parametrize("source", ["report", "report for one person", "selection"])
def test_a_copy_has_the_same_caveats_and_numbers(source: str) -> None:
    one = SOURCES[source]()
    again = pickle.loads(pickle.dumps(one))
    assert again.caveats == one.caveats
    assert again.certificate == one.certificate
