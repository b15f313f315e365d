"""Hidden participation with prepayment: against enumeration, the kernel, exact chains; and what it is worth."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from benchmarks.tightness.participation_chains import FAILURE, random_participation
from scipy.stats import binom

import lastiterate as li
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.hidden_participation import hidden_participation
from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import Kept, price
from lastiterate.numerics import payment_law as payment_laws
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.payment_law import LARGEST, Steady, payment_law
from lastiterate.theorems.participation import (
    PREPAID_PARTICIPATION,
    kept_at_least,
    prepaid_window,
    prepaid_windows_of,
)
from processes import process, reasons, steps_of

EPSILONS = np.append(0.0, np.geomspace(0.003, 8.0, 24))


def logistic(steps: int, step_size: float, batches: li.Batches | None = None, **more: object) -> li.Run:
    """Sensitivity half the noise."""
    chosen = batches or li.FixedSize(records=1000, batch_size=50)
    return li.Run(
        li.losses.logistic(feature_norm=1.0), chosen, step_size, li.OnIterate(4 * step_size / 50), steps, **more
    )  # type: ignore[arg-type]


def per_step(given: Steady) -> Floats:
    """Payments of every step (columns) at every level (rows)."""
    widths = np.array([given.first] + [given.width] * (given.blocks - 1))
    return np.repeat(given.payments / given.points / widths, widths, axis=1)


def path(turns: Floats, payments: Floats, least: float) -> Floats:
    """What is left to pay after each step, or prepaid."""
    debt, found = 0.0, []
    for turn, paid in zip(turns, payments, strict=True):
        debt = (debt if debt > 0 else least * debt) + turn - paid
        found.append(debt)
    return np.array(found)


def least_cost(turns: Floats, given: Steady, levels: Floats) -> float:
    """Of the first level that leaves no debt."""
    ends = [path(turns, payments, given.least)[-1] for payments in levels]
    return float(given.costs[int(np.argmax(np.array(ends) <= 1e-12))]) if min(ends) <= 1e-12 else math.inf


@pytest.mark.parametrize(
    ("steps", "rate", "least"),
    [(1, 0.3, 0.9), (6, 0.5, 0.999), (9, 0.2, 0.95), (10, 0.3, 0.8), (7, 0.9, 0.9), (5, 1.0, 0.97)],
)
def test_the_law_lies_above_the_enumerated_one(steps: int, rate: float, least: float) -> None:
    given = Steady(steps, rate, least)
    levels, law = per_step(given), payment_law(given)
    sets = [np.array(one, float) for one in product((0, 1), repeat=steps)]
    costs = np.array([least_cost(turns, given, levels) for turns in sets])
    weights = np.array([rate ** turns.sum() * (1 - rate) ** (steps - turns.sum()) for turns in sets])
    for at in (-1.0, *law.costs.tolist()):
        exact = weights[costs > at + 1e-9].sum()
        assert law.weights[law.costs > at + 1e-9].sum() + law.lost >= exact * (1 - 1e-12)
    assert law.costs @ law.weights <= 1.15 * costs @ weights


@pytest.mark.parametrize("seed", range(8))
def test_the_kernel_accepts_the_payments_of_every_level(seed: int) -> None:
    """Scaled down until nothing is left in the end: payments do not fall, so that nothing prepaid is given back."""
    source = np.random.default_rng(seed)
    steps, least, center = (
        int(source.integers(3, 200)),
        1 - 10 ** source.uniform(-4, -1.5),
        1 - 10 ** source.uniform(-5, -2),
    )
    given = Steady(steps, 0.2, float(least))
    if not given.payable:
        return
    turns = (source.random(steps) < 0.2).astype(float)
    turns[int(source.integers(steps))] = 1.0
    levels = per_step(given)
    rounding = -1e-15  # of quotients of whole numbers that are equal
    assert (np.diff(levels, axis=1) >= rounding).all()
    assert (np.diff(levels, axis=0) >= 0).all()
    assert levels.max() <= LARGEST
    enough = next(one for one in levels if path(turns, one, given.least)[-1] <= 0)
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if path(turns, middle * enough, given.least)[-1] <= 0 else (middle, high)
    found = path(turns, high * enough, given.least)
    assert found[-1] == pytest.approx(0.0, abs=1e-12)
    found[-1] = 0.0
    kept = Kept(np.full(steps, max(center, least)), np.full(steps, max(center, least) - least))
    mu, _, _ = price(steps_of(turns, np.ones(steps), np.ones(steps)), kept, found)
    assert mu <= np.sqrt(np.square(enough).sum()) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_it_lies_above_exact_chains(seed: int) -> None:
    """Non-linear maps, pushes that turn, somebody else in the record's place; `make chain` compares thousands more."""
    chain, given = random_participation(np.random.default_rng(seed), most_steps=8)
    exact, error = chain.exact(EPSILONS)
    bound = np.asarray(prepaid_window(given, len(given), FAILURE).delta(EPSILONS)) + FAILURE
    assert (bound >= exact - error - 1e-13).all()


@pytest.mark.parametrize(
    ("steps", "step_size", "lower", "upper"),
    [(60, 1e-4, 0.9234, 0.960), (60, 0.01, 0.9234, 0.985), (2000, 1e-5, 5.702, 5.82), (2000, 0.001, 5.702, 5.95)],
)
def test_what_it_is_worth(steps: int, step_size: float, lower: float, upper: float) -> None:
    """The lower value is that of quadratic losses with infinitely small steps: Σ p_n N(n·s/(ν√T), 1) against N(0, 1)."""
    found = PREPAID_PARTICIPATION.notion(logistic(steps, step_size).process).epsilon(1e-6)
    turns = np.arange(min(steps, 300) + 1.0)  # more have a probability of 1e-50
    ideal = hidden_participation(0.5 * turns / math.sqrt(steps), binom.pmf(turns, steps, 0.05), 0.0).epsilon(1e-6)
    assert ideal == pytest.approx(lower, rel=3e-3)
    assert ideal <= found < upper


def test_windows_of_two_lengths_are_counted_as_they_are() -> None:
    """A shorter window may be worse than a longer one: there is less noise in it."""
    given = logistic(21, 1e-4).process
    short, long = (prepaid_window(given, steps, 1e-9) for steps in (10, 11))
    found = prepaid_windows_of(given, 11).epsilon(1e-6)
    assert found == pytest.approx(compose_counted([(short, 1), (long, 1)]).epsilon(1e-6 - 1e-9), rel=1e-4)
    turned, once = (prepaid_window(given, steps, 1e-9).delta(0.4) for steps in (2, 1))
    assert once > 0.6 * turned


def test_the_run_is_accounted_by_it_and_verified() -> None:
    report = li.account(logistic(60, 1e-3), delta=1e-6)
    assert report.best.theorem is PREPAID_PARTICIPATION
    assert report.epsilon < 0.97
    assert li.verify(report.certificate)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            logistic(60, 1e-3, li.Poisson(records=1000, rate=0.05)),
            fact("batches_not_for", adjacency="replace_one", batches="poisson"),
        ),
        (logistic(60, 1e-3, domain=li.Ball(1.0)), fact("not_covered", feature="projection")),
    ],
)
def test_it_refuses(given: li.Run, reason: Fact) -> None:
    assert reasons(PREPAID_PARTICIPATION, given.process) == (reason,)


def test_it_refuses_steps_that_keep_little() -> None:
    (reason,) = reasons(PREPAID_PARTICIPATION, logistic(60, 2.0).process)
    assert reason.code == "difference_lost"
    assert 0 <= dict(reason.values)["kept"] < 0.5  # type: ignore[operator]


@pytest.mark.parametrize(("steps", "rate", "least"), [(14, 0.2, 0.9), (15, 0.4, 0.97), (13, 0.1, 0.8)])
def test_blocks_of_several_steps_lie_above_all_sets(
    monkeypatch: pytest.MonkeyPatch, steps: int, rate: float, least: float
) -> None:
    monkeypatch.setattr(payment_laws, "_MOST_BLOCKS", 5)
    monkeypatch.setattr(payment_laws, "_FEWEST_BLOCKS", 5)
    given = Steady(steps, rate, least)
    assert given.width == 3
    levels, law = per_step(given), payment_law.__wrapped__(given)
    sets = (np.arange(2**steps)[:, None] >> np.arange(steps)) & 1
    weights = rate ** sets.sum(axis=1) * (1 - rate) ** (steps - sets.sum(axis=1))
    for index in range(1, len(levels), 9):
        debt = np.zeros(len(sets))
        for turns, paid in zip(sets.T, levels[index], strict=True):
            debt = np.where(debt > 0, debt, least * debt) + turns - paid
        exact = float(weights[debt > 1e-12].sum())
        assert exact * (1 - 1e-9) <= law.weights[index + 1 :].sum() + law.lost


def test_more_records_and_steps_keep_less() -> None:
    def kept(records: int, steps: int, slack: float) -> float:
        batches = li.FixedSize(records=records, batch_size=50)
        run = li.Run(li.losses.logistic(feature_norm=1.0), batches, 1e-3, li.OnIterate(0.01), steps)
        return kept_at_least(run.process, slack)

    assert kept(1000, 60, 1e-9) > kept(10**6, 60, 1e-9)
    assert kept(1000, 60, 1e-9) > kept(1000, 600_000, 1e-9)
    assert kept(1000, 60, 1e-6) > kept(1000, 60, 1e-30)


def test_every_other_record_may_be_in_its_place() -> None:
    """κ by hand: the push turns by R/8 times the way, and a union over steps and records; two directions."""
    step, noise, slack, steps, records = 1e-3, 0.01, 1e-9, 60, 1000
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FixedSize(records, 50), step, li.OnIterate(noise), steps)
    way = step + LARGEST * 2 * step / 50 + noise * math.sqrt(2 * math.log(steps * records / slack))
    center, radius = 1 - step / 8, step / 8
    assert kept_at_least(run.process, slack) <= center - radius - center * way / 8
    assert kept_at_least(run.process, slack) >= 1 - 1.06 * (1 - (center - radius - center * way / 8))


def test_steps_without_known_turning_are_refused() -> None:
    given = process(li.FixedSize(records=100, batch_size=5), 20)
    assert reasons(PREPAID_PARTICIPATION, given) == (fact("not_prepayable", because=fact("push_unknown")),)
