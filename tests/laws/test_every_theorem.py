"""Laws that every theorem of the catalogue obeys: to be listed is to be tested."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.tightness.against_chain import ROUNDING, beside
from scipy.special import ndtr

import lastiterate as li
from drawn import OF_SAMPLING, answer_about, changed, epsilon, examples, in_other_units, instances, slack
from lastiterate.algorithms.process import Process
from lastiterate.auditing.chain import Chain
from processes import process

each_theorem = pytest.mark.parametrize("theorem", li.CATALOGUE, ids=lambda theorem: theorem.name)
GAUSSIAN = li.GaussianDP(0.5).epsilon(1e-5)
BEFORE, EPSILONS = 0.4, np.array([0.2, 1.5])


@each_theorem
def test_it_lies_above_exact_instances(theorem: li.theorems.Theorem) -> None:
    for seed, instance in instances(theorem, 4):
        answer = theorem.apply(instance.process)
        if isinstance(answer, li.theorems.Guarantee):
            assert beside(answer, instance, f"seed {seed}")[2] == ""


def exact_delta(chain: Chain, mu: float, epsilons: np.ndarray) -> np.ndarray:
    """δ of the last iterate of a chain, and of N(0, 1) or N(mu, 1) before it, from their laws: in the worse order."""
    found = []
    for first, second in (chain.laws, chain.laws[::-1]):
        first, second = (
            first[(first > 0) & (second > 0)],
            second[(first > 0) & (second > 0)],
        )  # the rest only adds to it
        beyond = (epsilons[:, None] - np.log(first / second)) / mu
        found.append(
            (first * ndtr(mu / 2 - beyond) - np.exp(epsilons[:, None]) * second * ndtr(-mu / 2 - beyond)).sum(axis=1)
        )
    return np.max(found, axis=0)


@each_theorem
def test_with_what_was_released_before_it_lies_above_exact_instances(theorem: li.theorems.Theorem) -> None:
    seed, instance = min(instances(theorem, 4), key=lambda pair: len(pair[1].process))
    answer = theorem.apply(replace(instance.process, beforehand_mu=BEFORE))
    if not isinstance(answer, li.theorems.Guarantee):
        return
    least = np.asarray(li.GaussianDP(BEFORE).delta(EPSILONS)) * (1 - 1e-12)
    if isinstance(instance.chain, Chain):
        exact, coarse = (exact_delta(one, BEFORE, EPSILONS) for one in (instance.chain.finer, instance.chain))
        least = np.maximum(least, exact - np.abs(exact - coarse))
    assert (np.asarray(answer.notion.delta(EPSILONS)) >= least - ROUNDING).all(), seed


@each_theorem
def test_what_was_released_before_is_counted_whole_and_once(theorem: li.theorems.Theorem) -> None:
    """More than either alone, not more than both added up, and more for more."""
    given, before = min(examples(theorem, 3), key=len), li.GaussianDP(BEFORE)
    alone = answer_about(theorem, given).evidence  # type: ignore[union-attr]
    found, slightly = (float(alone.after(mu).notion.epsilon(1e-5)) for mu in (BEFORE, BEFORE / 2))
    assert found >= max(epsilon(theorem, given), float(before.epsilon(1e-5))) * (1 - slack(theorem))
    added_up = float(before.epsilon(5e-6)) + epsilon(theorem, given, 5e-6)
    assert slightly <= found * (1 + slack(theorem)) <= added_up * (1 + 2 * slack(theorem))
    if isinstance(alone.notion, li.GaussianDP):
        exact = math.hypot(alone.notion.mu, BEFORE)
        assert exact <= alone.after(BEFORE).notion.mu <= exact * (1 + 1e-14)  # type: ignore[attr-defined]
        assert found == pytest.approx(li.GaussianDP(exact).epsilon(1e-5), rel=1e-12)


@each_theorem
def test_units_do_not_matter(theorem: li.theorems.Theorem) -> None:
    for given in examples(theorem, 3):
        assert epsilon(theorem, in_other_units(given, 1e5)) == pytest.approx(epsilon(theorem, given), rel=1e-6)


@each_theorem
def test_more_noise_never_hurts(theorem: li.theorems.Theorem) -> None:
    for given in examples(theorem, 3):
        quieter = changed(given, lambda values: values * 1.1, "noise")
        assert epsilon(theorem, quieter) <= epsilon(theorem, given) * (1 + slack(theorem))


@each_theorem
def test_a_wider_domain_never_helps(theorem: li.theorems.Theorem) -> None:
    for given in examples(theorem, 3):
        wider = replace(given, diameter=given.diameter * 1.1) if math.isfinite(given.diameter) else given
        assert epsilon(theorem, wider) >= epsilon(theorem, given) * (1 - slack(theorem))


# Spreads the diameter over the steps there are, so it gets better with the first of them.
NEEDS_TIME = {"bok2024/random/constrained"}


def more_steps(given: Process) -> int:
    """Whole epochs, where there are epochs: a run that ends within one hides its last records less."""
    every = given.batches.per_epoch if isinstance(given.batches, li.Cyclic | li.Shuffled) else 1
    return -(-len(given) // every) * every


@each_theorem
def test_more_steps_never_help(theorem: li.theorems.Theorem) -> None:
    """About twice as many, each like the first; where the longer run is outside the assumptions nothing is claimed.

    Noise before the first turn helps, too, where it counts: there whole epochs are compared.
    """
    for given in examples(theorem, 3):
        count = more_steps(given) if theorem.functions else len(given)
        short = replace(given, releases=()).like_the_first(count)
        longer = short.like_the_first(len(short) + more_steps(short))
        if not theorem.failures(short) and theorem.name not in NEEDS_TIME:
            assert epsilon(theorem, longer) >= epsilon(theorem, short) * (1 - slack(theorem))


@each_theorem
def test_a_record_that_is_seen_more_often_is_not_better_hidden(theorem: li.theorems.Theorem) -> None:
    for given in examples(theorem, 3):
        if isinstance(given.batches, li.FixedSize | li.Poisson):
            more = (
                li.FixedSize(records=120, batch_size=45)
                if isinstance(given.batches, li.FixedSize)
                else li.Poisson(120, 0.375)
            )
            oftener = replace(given, batches=more)
            assert epsilon(theorem, oftener) >= epsilon(theorem, given) * (1 - slack(theorem))


def single_step(theorem: li.theorems.Theorem) -> Process | None:
    """One full batch, or one batch of one, to which the theorem applies: sensitivity/noise is 1/2."""
    for batches in (li.FullBatch(records=120), li.Cyclic(records=30, batch_size=30)):
        for diameter in (math.inf, 0.5):
            for retain in (1.0, 0.6):
                given = process(batches, 1, 0.7, 1.4, 0.9, diameter, drift=5.0, retain=retain, dimension=2)
                if not theorem.failures(given):
                    return given
    return None


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
    given = single_step(theorem)
    if given is None:
        assert theorem.name.startswith(
            (*OF_SAMPLING, "ye2022/shuffled", "bok2024/cyclic/constrained", "prepayment", "linear-")
        )
        return
    found = epsilon(theorem, given)
    assert found >= GAUSSIAN * (1 - 1e-9)
    assert (found <= GAUSSIAN * (1 + 1e-6)) == (theorem.name in ATTAINED_BY_ONE_STEP)


def test_one_sampled_step_is_the_sampled_gaussian_mechanism() -> None:
    """Bok2024 4.8, and nothing that knows of the sampling is below it."""
    given = process(li.FixedSize(records=120, batch_size=30), 1, 0.7, 1.4, 0.9)
    step = li.notions.subsampled_gaussian(
        mu=0.5, inclusion=0.25, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    )
    exact = step.epsilon(1e-5)
    found = {theorem.name: epsilon(theorem, given) for theorem in li.CATALOGUE if not theorem.failures(given)}
    assert found["bok2024/random/composition"] == pytest.approx(exact, rel=1e-9)
    assert min(found.values()) >= exact * (1 - 1e-9)


@each_theorem
def test_its_profile_falls_and_its_epsilon_belongs_to_it(theorem: li.theorems.Theorem) -> None:
    for given in examples(theorem, 2):
        notion = answer_about(theorem, given).notion  # type: ignore[union-attr]
        deltas = np.asarray(notion.delta(np.array([0.0, 0.5, 1.0, 2.0, 4.0])))
        assert (np.diff(deltas)[deltas[:-1] < 0.99] <= 1e-12).all()  # above, it says nothing
        assert ((deltas >= 0) & (deltas <= 1)).all()
        bound = float(notion.epsilon(1e-5))
        if math.isfinite(bound) and bound > 0:
            assert float(notion.delta(bound)) <= 1e-5 * (1 + 1e-6)


@each_theorem
def test_it_is_cited_and_says_what_it_needs(theorem: li.theorems.Theorem) -> None:
    assert theorem.citation
    assert theorem.covers
    assert theorem.assumptions
    assert len({assumption.statement for assumption in theorem.assumptions}) == len(theorem.assumptions)
