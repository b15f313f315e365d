"""`li.testing.check_theorem`: a sound theorem passes, and each way to be wrong is found out by the law that it breaks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any

import pytest

import lastiterate as li
from lastiterate.runs.process import Process
from lastiterate.testing.laws import LAWS
from lastiterate.theorems.features import (
    ANY_BATCHES,
    ANY_CHECKPOINTS,
    ANY_MAP,
    CHANGING_STEPS,
    CONTRACTING,
    FULL_BATCHES,
    IN_ORDER,
    RANDOM_SIZES,
    REPLACED,
    Assumption,
    Feature,
)
from lastiterate.theorems.papers.bok2024 import CONTRACTING_FULL

FULL = {FULL_BATCHES, REPLACED} | ANY_MAP


def mu_of(process: Process) -> float:
    return float((2 / (1 - process.contraction)) ** 0.5 * process.step_mu * (1 + 1e-12))


def theorem(
    mu: Callable[[Process], float], features: Set[Feature] = FULL, *assumptions: Assumption
) -> li.theorems.Theorem:
    needs = (CONTRACTING, *assumptions)
    return li.theorems.Theorem(
        "mine/full-batch", "my notes", "full batches", features, needs, lambda process: evidence(mu(process))
    )


def evidence(mu: float) -> li.theorems.Evidence:
    return li.theorems.Evidence(li.notions.GaussianDP(mu))


MINE = theorem(mu_of)


def test_a_sound_theorem_passes_in_less_than_a_minute() -> None:
    start = time.thread_time()
    found = li.testing.check_theorem(MINE)
    assert time.thread_time() - start < 30
    assert found.laws == tuple(law.name for law in LAWS)
    assert found.untried == ()
    assert str(found).startswith("mine/full-batch: 16 laws hold wherever they were tried. This is no proof.")


def test_a_theorem_of_the_library_passes() -> None:
    assert li.testing.check_theorem(CONTRACTING_FULL).untried == ()


def first_step(process: Process) -> float:
    """As if all steps were like the first."""
    ratio = float(process.sensitivity[0] / process.noise[0])
    return math.sqrt(2 / (1 - process.contraction)) * ratio * (1 + 1e-12)


WRONG: dict[str, tuple[li.theorems.Theorem, str]] = {
    "half of mu": (theorem(lambda process: mu_of(process) / 2), "it lies above quadratic losses"),
    "one step too few": (
        theorem(lambda process: math.sqrt(len(process) - 1) * process.step_mu + 1e-9),
        "one full-batch step is at least the Gaussian mechanism",
    ),
    "checkpoints forgotten": (theorem(mu_of, FULL | ANY_CHECKPOINTS), "it lies above quadratic losses"),
    "schedules forgotten": (theorem(first_step, FULL | {CHANGING_STEPS}), "it lies above quadratic losses"),
    "sampling as if it were secret": (
        theorem(
            lambda process: process.step_mu * math.sqrt(len(process)) / process.batches.per_epoch,
            {RANDOM_SIZES, REPLACED} | ANY_BATCHES | IN_ORDER | ANY_CHECKPOINTS | ANY_MAP,
        ),
        "it lies above quadratic losses",
    ),
    "in some unit": (theorem(lambda process: mu_of(process) * (2 + float(process.noise[0]))), "units do not matter"),
    "more noise, more loss": (
        theorem(lambda process: mu_of(process) * (1 + float(process.noise[0] / process.sensitivity[0]) ** 2)),
        "more noise never hurts",
    ),
    "better in the long run": (
        theorem(lambda process: mu_of(process) * (1 + 10 / len(process))),
        "more steps never help",
    ),
    "no citation": (replace(MINE, citation=""), "it is cited and says what it needs"),
    "a bound that raises": (theorem(lambda process: 1 / 0), "one full-batch step is at least the Gaussian mechanism"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_theorem_is_found_out_by_the_law_that_it_breaks(name: str) -> None:
    wrong, law = WRONG[name]
    with pytest.raises(li.testing.LawBroken, match=f"“{law}”"):
        li.testing.check_theorem(wrong)


def test_the_error_names_the_run_and_the_numbers() -> None:
    with pytest.raises(AssertionError) as caught:
        li.testing.check_theorem(WRONG["half of mu"][0])
    said = str(caught.value)
    assert said.startswith("mine/full-batch breaks the law “it lies above quadratic losses”: delta = ")
    assert "Process(" in said
    assert "quadratic losses have " in said
    assert isinstance(caught.value, li.errors.LastIterateError)


def test_a_narrow_theorem_is_tried_on_runs_of_ones_own() -> None:
    """Few runs that are drawn have so many steps."""

    def failure(process: Process) -> str | None:
        return None if len(process) >= 500 else f"needs 500 steps; this run has {len(process)}"

    long = Assumption.own("at least 500 steps", failure)
    narrow = theorem(mu_of, FULL, long)
    with pytest.raises(
        li.testing.LawBroken, match=r"applies to none of the runs that it was tried on. Give some runs="
    ):
        li.testing.check_theorem(narrow)
    loss = li.losses.general(smoothness=1.0, strong_convexity=0.1, gradient_sensitivity=1.0)
    run = li.Run(loss, li.FullBatch(100), 0.5, li.OnIterate(std=0.1), 600)
    found = li.testing.check_theorem(narrow, runs=[run])
    assert "units do not matter" in found.laws
    assert "it lies above quadratic losses" in found.untried
    assert "not tried: it lies above quadratic losses" in str(found)


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ("mine", {}, "theorem must be a li.theorems.Theorem. Got 'mine'"),
        (MINE, {"tolerance": -1}, "tolerance must be a float"),
        (MINE, {"runs": ["run.toml"]}, "run must be a"),
    ],
)
def test_wrong_arguments_are_one_sentence(given: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(li.errors.InvalidInput, match=said):
        li.testing.check_theorem(given, **options)
