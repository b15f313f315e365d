"""Outside its assumptions a theorem says nothing, and says why."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import lastiterate as li
from lastiterate.facts import Fact, fact, own
from lastiterate.kernel.prepaid import Smooth
from lastiterate.runs.process import Process
from lastiterate.testing.draws import draws, there_or_not, with_updates
from lastiterate.testing.examples import found_examples, of_filters
from lastiterate.testing.laws import first_two_failures, refused_as_it_should_be
from lastiterate.theorems.epochs import PREPAID_EPOCHS
from lastiterate.theorems.participation import ALIKE_SMOOTH, PREPAID_PARTICIPATION
from lastiterate.theorems.prepayment import ALIKE_IF_NEW
from processes import process, reasons

PAIRS = [(theorem, assumption) for theorem in li.theorems.ALL for assumption in theorem.assumptions]
# Only for runs that are too long to draw, or have more batches or larger pushes than are drawn.
NOT_ALONE = {
    "comparable_places",
    "few_batches",
    "hideable_sensitivity",
    "short_enough",
}
GIVEN = own("the test")  # of its Lipschitz constant, in a process that is made of numbers
# Steps that are drawn differ in what all theorems see, and not in this alone.
BENT = [(PREPAID_PARTICIPATION, ALIKE_SMOOTH), (PREPAID_EPOCHS, ALIKE_IF_NEW)]


@cache
def failing_alone() -> dict[tuple[str, str], Process]:
    """For each theorem and assumption, a process in which nothing else is wrong."""
    found: dict[tuple[str, str], Process] = {}
    sought = {theorem.name: {one.code for one in theorem.assumptions} - NOT_ALONE for theorem in li.theorems.ALL}
    for replaced, updated, removed in zip(draws(12), with_updates(12), there_or_not(12), strict=True):
        for theorem in li.theorems.ALL:
            plain = replaced if li.REPLACE_ONE in theorem.adjacencies else removed
            for given in (updated, plain) if of_filters(theorem) else (plain,):
                failed = first_two_failures(theorem, given) if sought[theorem.name] else []
                if len(failed) == 1 and failed[0].code in sought[theorem.name]:
                    found[theorem.name, failed[0].code] = given
                    sought[theorem.name].discard(failed[0].code)
    return found


@pytest.mark.parametrize(("theorem", "assumption"), PAIRS, ids=lambda one: getattr(one, "name", None) or one.code)
def test_it_refuses_where_one_assumption_fails(theorem: li.theorems.Theorem, assumption: object) -> None:
    code = assumption.code  # type: ignore[attr-defined]
    given = failing_alone().get((theorem.name, code))
    if given is None:
        assert code in NOT_ALONE or (theorem, assumption) in BENT
        return
    assert refused_as_it_should_be(theorem, given) is None


@pytest.mark.parametrize(("theorem", "assumption"), BENT)
def test_steps_that_differ_in_how_far_they_bend_alone(
    theorem: li.theorems.Theorem, assumption: li.theorems.Assumption
) -> None:
    (given,) = found_examples(theorem, 1)
    assert isinstance(given.smooth, Smooth)
    bending = replace(given.smooth, radius=given.smooth.radius * np.linspace(1.0, 1.0 - 1e-9, len(given)))
    answer = theorem.apply(replace(given, smooth=bending))
    assert isinstance(answer, li.theorems.Inapplicable)
    assert answer.failed == (assumption,)


@pytest.mark.parametrize(
    ("theorem", "change", "reason"),
    [
        ("bok2024/full-batch/strongly-convex", {"lipschitz": 1.0}, fact("not_contracting", because=GIVEN)),
        ("bok2024/full-batch/constrained", {"lipschitz": 1.0 + 1e-12}, fact("not_nonexpansive", because=GIVEN)),
        ("bok2024/full-batch/constrained", {"diameter": math.inf}, fact("lacks", what="bounded_domain")),
        ("bok2024/full-batch/constrained", {"diameter": 5.1}, fact("used_too_rarely", needed=5.1 / 0.1, turns=50)),
        (
            "bok2024/full-batch/constrained",
            {"noise": np.linspace(1, 2, 50)},
            fact("steps_change", quantity="noise", least=1.0, most=2.0),
        ),
        ("bok2024/full-batch/constrained", {"releases": (3,)}, fact("releases_more", checkpoints=1)),
        ("kong2025/bounded-domain", {"lipschitz": math.inf}, fact("neither_clipped_nor_smooth")),
    ],
)
def test_refusals_just_outside_the_assumptions(theorem: str, change: dict[str, object], reason: Fact) -> None:
    chosen = next(one for one in li.theorems.ALL if one.name == theorem)
    inside = {"sensitivity": 0.1, "lipschitz": 0.99, "diameter": 5.0}
    assert isinstance(chosen.apply(process(li.FullBatch(records=10), 50, **inside)), li.theorems.Guarantee)
    assert reasons(chosen, process(li.FullBatch(records=10), 50, **{**inside, **change})) == (reason,)
