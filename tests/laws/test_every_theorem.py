"""Laws that every theorem of the catalogue obeys: to be listed is to be tested."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lastiterate as li
from drawn import OF_SAMPLING, subject
from lastiterate.testing import exact_laws, laws
from lastiterate.testing.draws import draws
from lastiterate.testing.examples import NothingToTry, epsilon
from lastiterate.theorems.evidence import About
from lastiterate.theorems.features import BOUNDED, CHANGING_STEPS
from processes import process

each_theorem = pytest.mark.parametrize("theorem", li.theorems.ALL, ids=lambda theorem: theorem.name)


def test_every_law_is_tried_here() -> None:
    """Or, where one assumption fails, in test_refusals.py."""
    text = Path(__file__).read_text()
    names = {law.broken.__name__ for law in laws.LAWS} - {"it_refuses_where_an_assumption_fails"}
    assert [name for name in names if f"laws.{name}(" not in text] == []


def test_accounts_need_none_of_the_other_theorems_of_papers() -> None:
    """So `account` does not try them: some theorem of the catalogue is always as sharp, for every process that is drawn."""
    for seed in range(30):
        given = next(draws(seed))
        theirs, ours = (
            {one.name: epsilon(one, given) for one in listed if not one.failures(given)}
            for listed in (li.theorems.PAPERS, li.theorems.CATALOGUE)
        )
        least = min(ours.values(), default=math.inf)
        assert {name: value for name, value in theirs.items() if value < least * (1 - 1e-12)} == {}


@each_theorem
def test_it_is_cited_and_says_what_it_needs(theorem: li.theorems.Theorem) -> None:
    assert laws.is_cited(subject(theorem)) is None


@each_theorem
def test_its_profile_falls_and_its_epsilon_belongs_to_it(theorem: li.theorems.Theorem) -> None:
    assert laws.its_profile_falls_and_its_epsilon_belongs_to_it(subject(theorem)) is None


@each_theorem
def test_units_do_not_matter(theorem: li.theorems.Theorem) -> None:
    assert laws.units_do_not_matter(subject(theorem)) is None


@each_theorem
def test_more_noise_never_hurts(theorem: li.theorems.Theorem) -> None:
    assert laws.more_noise_never_hurts(subject(theorem)) is None


@each_theorem
def test_a_wider_domain_never_helps(theorem: li.theorems.Theorem) -> None:
    assert laws.a_wider_domain_never_helps(subject(theorem)) is None


@each_theorem
def test_a_record_that_is_seen_more_often_is_not_better_hidden(theorem: li.theorems.Theorem) -> None:
    assert laws.a_record_seen_more_often_is_not_better_hidden(subject(theorem)) is None


@each_theorem
def test_what_was_released_before_is_counted_whole_and_once(theorem: li.theorems.Theorem) -> None:
    assert laws.earlier_release_counts_whole_and_once(subject(theorem)) is None


@each_theorem
def test_it_lies_above_exact_instances(theorem: li.theorems.Theorem) -> None:
    assert exact_laws.lies_above_exact_instances(subject(theorem)) is None


# Steps that are alike, or bounded sets, alone.
OF_EQUAL_STEPS = {"prepayment/epoch-by-epoch", "hidden-participation/prepaid", "ye2022/random", "ye2022/shuffled"}


@each_theorem
def test_it_lies_above_exact_instances_of_every_kind(theorem: li.theorems.Theorem) -> None:
    """Two of them: those that have the most features together."""
    try:
        assert exact_laws.lies_above_exact_instances_of_every_kind(replace(subject(theorem), instances=2)) is None
    except NothingToTry:
        equal_or_bounded = CHANGING_STEPS not in theorem.features or BOUNDED in theorem.assumptions
        assert equal_or_bounded or theorem.name.startswith((*OF_EQUAL_STEPS, *ELSEWHERE, "asoodeh2023"))


# Loose for a few steps alone: one sampled step of reflection is as if the batch were known.
LOOSE_ALONE = {"bok2024/random/constrained", "reflection"}


@each_theorem
def test_a_run_costs_at_least_its_last_epoch(theorem: li.theorems.Theorem) -> None:
    """Its steps as a run of their own, with pushes four times as far as before them: no other steps stand for the last."""
    tried = subject(theorem)
    longer = [given for given in tried.examples if len(given) > given.batches.per_epoch]
    if (
        theorem.name in LOOSE_ALONE or theorem.about is About.EVERY_ITERATE or not longer
    ):  # of these, any order costs alike
        return
    given = min(longer, key=len)
    first = (len(given) - 1) // given.batches.per_epoch * given.batches.per_epoch
    times = np.where(np.arange(len(given)) < first, 1.0, 4.0)
    risen = replace(given, sensitivity=given.sensitivity * times, sampled=given.sampled * times)
    run = given if theorem.failures(risen) else risen
    last = run.part(first, len(run))
    if not theorem.failures(last):
        whole, alone = (float(theorem.notion(one).delta(1.0)) for one in (run, last))
        assert whole >= alone * (1 - tried.tolerance), (run, last)


@each_theorem
def test_all_iterates_cost_the_same_in_any_order_of_epochs(theorem: li.theorems.Theorem) -> None:
    assert laws.all_iterates_cost_the_same_in_any_order_of_epochs(subject(theorem)) is None


@each_theorem
def test_more_records_of_a_user_never_help(theorem: li.theorems.Theorem) -> None:
    assert laws.more_records_of_a_user_never_help(subject(theorem)) is None


@each_theorem
def test_with_what_was_released_before_it_lies_above_exact_instances(theorem: li.theorems.Theorem) -> None:
    assert exact_laws.lies_above_exact_instances_after_a_release(subject(theorem)) is None


# Spreads the diameter over the steps there are, so it gets better with the first of them.
NEEDS_TIME = {"bok2024/random/constrained"}


@each_theorem
def test_more_steps_never_help(theorem: li.theorems.Theorem) -> None:
    if theorem.name not in NEEDS_TIME:
        assert laws.more_steps_never_help(subject(theorem)) is None


# About other batches, other steps, or bounded sets alone.
ELSEWHERE = (
    *OF_SAMPLING,
    "prepayment",
    "linear-",
    "bok2024/random",
    "bok2024/full-batch/constrained",
    "bok2024/cyclic/constrained",
    "kong2025/bounded-domain",
    "balle2019",
    "feldman2018",
)


@each_theorem
def test_it_lies_above_quadratic_losses(theorem: li.theorems.Theorem) -> None:
    try:
        assert exact_laws.lies_above_quadratics(subject(theorem)) is None
    except NothingToTry:
        assert theorem.name.startswith(ELSEWHERE)


ATTAINED_BY_ONE_STEP = {
    "shift-engine",
    "bok2024/full-batch/strongly-convex",
    "bok2024/cyclic/strongly-convex",
    "kong2025/cyclic",
    "bok2024/full-batch/composition",
    "bok2024/cyclic/composition",
}


@each_theorem
def test_one_full_batch_is_the_gaussian_mechanism(theorem: li.theorems.Theorem) -> None:
    """None is below it, and those that say exactly this are known."""
    given = exact_laws.single_step(theorem)
    if given is None:
        assert theorem.name.startswith(
            (*OF_SAMPLING, "ye2022/shuffled", "bok2024/cyclic/constrained", "prepayment", "linear-")
        )
        return
    assert exact_laws.one_step_is_above_the_gaussian_mechanism(subject(theorem)) is None
    found = epsilon(theorem, given)
    assert found >= exact_laws.GAUSSIAN * (1 - 1e-9)
    assert (found <= exact_laws.GAUSSIAN * (1 + 1e-6)) == (theorem.name in ATTAINED_BY_ONE_STEP)


def test_one_sampled_step_is_the_sampled_gaussian_mechanism() -> None:
    """Bok2024 4.8, and nothing that knows of the sampling is below it."""
    given = process(li.FixedSize(records=120, batch_size=30), 1, 0.7, 1.4, 0.9)
    step = li.notions.subsampled_gaussian(
        mu=0.5, inclusion=0.25, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    )
    exact = step.epsilon(1e-5)
    found = {theorem.name: epsilon(theorem, given) for theorem in li.theorems.ALL if not theorem.failures(given)}
    assert found["bok2024/random/composition"] == pytest.approx(exact, rel=1e-9)
    assert min(found.values()) >= exact * (1 - 1e-9)
