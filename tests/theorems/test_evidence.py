"""What a theorem returns: its kind, its grade, and a rule for equal bounds that does not ask how theorems are listed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lastiterate as li
from lastiterate.facts import fact
from lastiterate.testing.examples import examples
from lastiterate.theorems.evidence import About, Grade, NoFiniteBound
from lastiterate.theorems.shift_engine import SHIFT_ENGINE, own_evidence, own_mus
from processes import process, reasons

DELTA = 1e-5
each_theorem = pytest.mark.parametrize("theorem", li.theorems.ALL, ids=lambda theorem: theorem.name)


@each_theorem
def test_a_theorem_says_what_its_evidence_is(theorem: li.theorems.Theorem) -> None:
    for given in examples(theorem, 2):
        answer = theorem.apply(given)
        assert isinstance(answer, li.theorems.Guarantee)
        assert answer.evidence.about is theorem.about
        assert answer.evidence.grade is theorem.grade
        assert bool(answer.evidence.for_delta(1e-5).schedules) == (theorem.places is not None)
        assert theorem.rung is None or answer.evidence.ladder is not None


@each_theorem
def test_what_is_about_every_iterate_holds_when_all_are_released(theorem: li.theorems.Theorem) -> None:
    """And what is about the last says nothing then, or no less."""
    for given in examples(theorem, 3):
        everything = replace(given, releases=tuple(range(1, len(given))))
        alone, released = theorem.apply(given), theorem.apply(everything)
        assert isinstance(alone, li.theorems.Guarantee)
        if theorem.about is About.EVERY_ITERATE:
            assert isinstance(released, li.theorems.Guarantee)
            assert released.epsilon(DELTA) == alone.epsilon(DELTA)
        elif isinstance(released, li.theorems.Guarantee):
            assert released.notion.delta(1.0) >= alone.notion.delta(1.0) * (1 - 1e-9)


def test_which_theorems_are_compositions() -> None:
    named = {theorem.name for theorem in li.theorems.ALL if theorem.about is About.EVERY_ITERATE}
    assert named == {"balls-and-bins", *(f"bok2024/{one}/composition" for one in ("full-batch", "cyclic", "random"))}
    assert {theorem.name for theorem in li.theorems.ALL if theorem.grade is Grade.REPLAYED} == {
        "shift-engine",
        "random-order",
        "prepayment",
        "prepayment/random-order",
        "hidden-place",
        "hidden-place/prepaid",
    }


RUNS = {
    "full": li.FullBatch(records=100),
    "cyclic": li.Cyclic(records=60, batch_size=10),
    "shuffled": li.Shuffled(records=60, batch_size=10),
    "random": li.FixedSize(records=60, batch_size=10),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("loss", [li.losses.logistic(feature_norm=1.0, l2=0.01), li.losses.network(clip=1.0)])
def test_the_order_of_the_catalogue_does_not_matter(name: str, loss: object) -> None:
    run = li.Run(loss, RUNS[name], 0.5, li.OnMeanGradient(std=0.5), 24)  # type: ignore[arg-type]
    found = [one.theorem.name for one in li.account(run, DELTA).guarantees]
    for catalogue in (li.theorems.CATALOGUE[::-1], sorted(li.theorems.CATALOGUE, key=lambda one: one.citation)):
        assert [one.theorem.name for one in li.account(run, DELTA, theorems=catalogue).guarantees] == found


def test_of_equal_bounds_the_one_comes_first_that_can_be_replayed() -> None:
    run = li.Run(li.losses.network(clip=1.0), RUNS["full"], 0.5, li.OnMeanGradient(std=0.5), 24)
    first, second, *_ = li.account(run, DELTA).guarantees
    assert (first.theorem.name, second.theorem.name) == ("shift-engine", "bok2024/full-batch/composition")
    assert first.epsilon(DELTA) == pytest.approx(second.epsilon(DELTA), rel=1e-10)


def test_each_records_own_evidence() -> None:
    given = process(li.Cyclic(records=40, batch_size=10), 10, lipschitz=np.linspace(0.8, 0.9, 10))
    evidence = own_evidence(given)
    assert evidence.about is About.EACH_RECORD
    assert evidence.grade is Grade.REPLAYED
    assert [one.place for one in evidence.schedules] == [0, 1, 2, 3]
    assert own_mus(given).max() == evidence.notion.mu == SHIFT_ENGINE.notion(given).mu  # type: ignore[attr-defined]


def test_what_is_not_finite_is_no_evidence() -> None:
    given = process(li.Cyclic(records=40, batch_size=10), 10, sensitivity=np.inf)
    assert reasons(SHIFT_ENGINE, given) == (fact("no_finite_bound", because=given.reason),)
    with pytest.raises(NoFiniteBound):
        own_evidence(given)
