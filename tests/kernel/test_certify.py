"""What has to be believed of the engine, in exact arithmetic: both ways of paying, merged steps, carried turns."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from lastiterate.kernel import certify as checker
from lastiterate.kernel.certify import _cost, _pay, _pay_widely, certify
from lastiterate.kernel.merged_steps import RecordSteps, latest_turns, whole, windows
from lastiterate.kernel.steps import Refused, Steps
from processes import random_steps, steps_of, stored_once


def exact_cost(steps: Steps, start: int, due: np.ndarray, distance: float) -> Fraction:
    """What `certify` should say of these payments, in exact arithmetic."""
    left, cost = Fraction(distance), Fraction(0)
    for place in range(start, len(steps)):
        left = Fraction(steps.lipschitz[place]) * left + Fraction(steps.sensitivity[place])
        asked = left if place == len(steps) - 1 or math.isinf(due[place - start]) else Fraction(due[place - start])
        paid = min(asked, left)
        left -= paid
        cost += (paid / Fraction(steps.noise[place])) ** 2
    return cost


ways = pytest.mark.parametrize("pay", [_pay, _pay_widely])


def holds(mu: float, exact: Fraction, near: float = 1e-11) -> bool:
    """Not below the exact μ, and above it by rounding alone."""
    return Fraction(mu) ** 2 >= exact and mu <= math.sqrt(exact) * (1 + near) + 1e-140


def distance_at(steps: Steps, start: int) -> float:
    return 0.0 if start == 0 or steps.lipschitz[start] == 0 else steps.diameter


@ways
@pytest.mark.parametrize("chunk", [1, 3, 1 << 14])
def test_each_way_of_paying_is_exact_however_the_steps_are_cut(
    pay: object, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "_CHUNK", chunk)
    source = np.random.default_rng(21)
    for _ in range(60):
        count = int(source.integers(1, 16))
        steps = random_steps(source, count, bounded=True)
        start = int(source.integers(0, count))
        due = np.where(source.random(count - start) < 0.2, np.inf, 10 ** source.uniform(-3, 1, count - start))
        due[source.random(len(due)) < 0.2] = 0.0
        exact = exact_cost(steps, start, due, distance_at(steps, start))
        assert holds(_cost(steps, start, due.copy(), pay), exact)  # type: ignore[arg-type]
        assert holds(certify(steps, start, due), exact)


def test_distances_beyond_the_range_of_floats_come_back() -> None:
    """Factors of up to 10^±100 a step: the distance leaves the range of floats, in both directions, and returns."""
    source, beyond = np.random.default_rng(22), 0
    for _ in range(200):
        count = int(source.integers(12, 30))
        rising = source.permutation(np.where(np.arange(count) % 2, 1.0, -1.0)) if source.random() < 0.2 else None
        up = np.where(np.arange(count) < count // 2, 1.0, -1.0) if rising is None else rising
        up = np.roll(up * source.uniform(40, 90, count), int(source.integers(count)))
        up -= up.mean()  # in all, back to where it was
        due = np.where(source.random(count) < 0.3, 10 ** source.uniform(-3, 1, count), 0.0)
        pushes = np.where(source.random(count) < 0.5, 10 ** source.uniform(-2, 1, count), 0.0)
        pushes[0] = 1.0
        steps = steps_of(pushes, source.uniform(0.5, 2, count), 10**up, 3.0)
        for start in (0, 1):
            exact = exact_cost(steps, start, due[start:], distance_at(steps, start))
            if not Fraction(10) ** -200 < exact < Fraction(10) ** 200:
                continue
            beyond += not math.isfinite(_cost(steps, start, due[start:].copy(), _pay))
            assert holds(_cost(steps, start, due[start:].copy(), _pay_widely), exact, 1e-3)
            assert holds(certify(steps, start, due[start:]), exact, 1e-3)
    assert beyond > 20


def test_the_distance_is_carried_over_a_cut_while_it_is_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "_CHUNK", 2)
    factors = [1.0, *[1e90] * 5, 1.0, *[1e-90] * 5, 1.0]
    pushes = [1.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.5, 0.0]
    steps = steps_of(pushes, 1.0, factors)
    due = np.array([0.25, *[0.0] * 5, 0.5, *[0.0] * 4, 0.5, 0.0])
    assert holds(certify(steps, 0, due), exact_cost(steps, 0, due, 0.0))
    assert math.isinf(_cost(steps, 0, due, _pay))


def test_what_is_paid_while_it_is_out_of_range_is_not_cheap() -> None:
    """All of a distance of 10^450, at a step in the middle: no float is as large as that."""
    steps = steps_of([1.0, *[0.0] * 10], 1.0, [1.0, *[1e90] * 5, *[1e-90] * 5])
    for place in (4, 5, 6):
        due = np.zeros(11)
        due[place] = np.inf
        assert certify(steps, 0, due) >= 1e250
    assert certify(steps, 0, np.zeros(11)) == pytest.approx(1.0, rel=1e-9)


@ways
def test_what_rounding_would_lose_is_counted(pay: object) -> None:
    """Pushes that are below half an ulp of what is there, and factors whose products are rounded down."""
    count = 1200
    tiny = steps_of(np.append(1.0, np.full(count - 1, 1e-16)), 1.0, 1.0)
    rounded = 1 + 0.1 * np.random.default_rng(23).random(count)
    there_and_back = np.where(np.arange(count) % 2, 1 / rounded, np.roll(rounded, 1))
    back = steps_of(np.append(1.0, np.zeros(count - 1)), 1.0, there_and_back)
    for steps in (tiny, back):
        due = np.zeros(count)
        exact = exact_cost(steps, 0, due, 0.0)
        assert Fraction(_cost(steps, 0, due.copy(), pay)) ** 2 >= exact  # type: ignore[arg-type]
        assert certify(steps, 0, due) <= math.sqrt(exact) * (1 + 1e-11)


def test_nothing_is_paid_twice_and_nothing_below_zero() -> None:
    steps = steps_of([1.0, 0.0, 2.0], 1.0, 1.0)
    assert certify(steps, 0, np.array([5.0, 5.0, 5.0])) == pytest.approx(math.sqrt(5.0), rel=1e-12)
    assert certify(steps, 0, np.zeros(3)) == pytest.approx(3.0, rel=1e-12)
    assert certify(steps_of([0.0], 1.0, 1.0), 0, np.zeros(1)) == 0
    assert certify(steps_of([1.0, 1.0], 1.0, [1.0, math.inf]), 0, np.array([0.5, 0.0])) == math.inf
    assert certify(steps_of([0.0, 1.0], 1.0, [math.inf, math.inf]), 0, np.zeros(2)) == pytest.approx(1.0, rel=1e-12)


def test_certify_is_never_below_exact_arithmetic() -> None:
    source = np.random.default_rng(3)
    for _ in range(300):
        count = int(source.integers(1, 40))
        steps = random_steps(source, count, bounded=True)
        start = int(source.integers(0, count))
        due = np.where(source.random(count - start) < 0.2, np.inf, 10 ** source.uniform(-3, 1, count - start))
        distance = 0.0 if start == 0 or steps.lipschitz[start] == 0 else steps.diameter
        exact = exact_cost(steps, start, due, distance)
        mu = certify(steps, start, due)
        assert Fraction(mu) ** 2 >= exact
        assert mu <= math.sqrt(exact) * (1 + 1e-11) + 1e-140


@pytest.mark.parametrize(
    ("start", "due"),
    [(0, [1.0]), (0, [1.0, -1.0, 0.0]), (0, [1.0, math.nan, 1.0]), (3, []), (-1, [1.0] * 4), (1, [1.0] * 3)],
)
def test_certify_says_why_not(start: int, due: list[float]) -> None:
    with pytest.raises(Refused, match="payments must be"):
        certify(steps_of(np.ones(3), 1.0, 1.0), start, np.array(due))


# Merged steps


def exact_merge(lipschitz: np.ndarray, noise: np.ndarray) -> tuple[Fraction, Fraction]:
    """The product of the factors, and the square of the noise, of these steps together."""
    factor, square = Fraction(1), Fraction(0)
    for step_factor, step_noise in zip(lipschitz[::-1].tolist(), noise[::-1].tolist(), strict=True):
        square += (Fraction(step_noise) * factor) ** 2
        factor *= Fraction(step_factor)
    return factor, square


def safe(factor: float, noise: float, exact: tuple[Fraction, Fraction]) -> bool:
    """The factor is not below, the noise not above, and both nearly equal."""
    return (
        exact[0] <= Fraction(factor) <= exact[0] * (1 + Fraction(1, 10**12))
        and exact[1] * (1 - Fraction(1, 10**12)) <= Fraction(noise) ** 2 <= exact[1]
    )


def test_merged_steps_are_rounded_to_the_safe_side() -> None:
    source = np.random.default_rng(24)
    for count in (1, 2, 3, 7, 12, 30):
        for _ in range(6):
            lipschitz, noise = source.uniform(0.5, 1.5, count), source.uniform(0.5, 2, count)
            for length in {1, count, (count + 1) // 2}:
                factors, noises = windows(lipschitz, noise, length)
                assert len(factors) == len(noises) == count - length + 1
                for first in range(len(factors)):
                    cut = slice(first, first + length)
                    assert safe(factors[first], noises[first], exact_merge(lipschitz[cut], noise[cut]))
            for first in range(count):
                assert safe(*whole(lipschitz[first:], noise[first:]), exact_merge(lipschitz[first:], noise[first:]))
            assert safe(*whole(lipschitz, noise), exact_merge(lipschitz, noise))


def test_what_overflows_when_merged_is_infinite() -> None:
    """A factor beyond 1e150, or a noise beyond what can be squared: neither is used."""
    for lipschitz, noise in (([1e80, 1e80], [1.0, 1.0]), ([1.0, 1.0], [1e200, 1.0]), ([1e200], [1.0])):
        for factor, hidden in (whole(np.array(lipschitz), np.array(noise)),):
            assert math.isinf(factor)
            assert math.isnan(hidden)
    factor, hidden = whole(np.array([1e74, 1e75]), np.array([1.0, 1.0]))
    assert factor == pytest.approx(1e149, rel=1e-12)
    assert hidden == pytest.approx(1e75, rel=1e-12)
    assert whole(np.array([0.0, 0.5]), np.ones(2))[0] > 0


def test_a_records_steps_and_those_between_them_take_turns() -> None:
    steps = steps_of(np.arange(1.0, 7.0), [4.0, 7.0, 5.0, 6.0, 8.0, 0.0], [0.7, 0.1, 0.8, 0.9, 0.3, 0.5], 2.0).part(
        0, 5
    )
    found = RecordSteps(steps, 2).at(np.array([0, 2, 3]))
    assert found.sensitivity.tolist() == [1.0, 0.0, 3.0, 4.0, 0.0]
    assert found.noise == pytest.approx([4.0, 7.0, 5.0, 6.0, 8.0], rel=1e-14)
    assert found.lipschitz == pytest.approx([0.7, 0.1, 0.8, 0.9, 0.3], rel=1e-14)
    assert found.diameter == 2.0


# A record's turns


def exact_turns(steps: Steps, turns: list[int]) -> list[tuple[str, float, Fraction, Fraction]]:
    """The record's own steps, and what lies between two of them or after the last."""
    found = []
    for place, turn in enumerate(turns):
        end = turns[place + 1] if place + 1 < len(turns) else len(steps)
        factor, square = Fraction(steps.lipschitz[turn]), Fraction(steps.noise[turn]) ** 2
        found.append(("own", float(steps.sensitivity[turn]), factor, square))
        if end > turn + 1:
            found.append(("rest", 0.0, *exact_merge(steps.lipschitz[turn + 1 : end], steps.noise[turn + 1 : end])))
    return found


@pytest.mark.parametrize("every", [1, 2, 3, 5, 9, 20, 40])
@pytest.mark.parametrize("constant", [True, False])
def test_turns_meet_their_own_steps_and_the_rest_merged(every: int, constant: bool) -> None:
    source = np.random.default_rng(25)
    for count in (1, 4, 9, 10, 17):
        size = 1 if constant else count
        values = (source.uniform(0.1, 1, size), source.uniform(0.5, 2, size), source.uniform(0.6, 1.0, size))
        steps = Steps(*(np.broadcast_to(one, count) if constant else one for one in values), 1.5)
        turns = RecordSteps(steps, every)
        anywhere = np.flatnonzero(source.random(count) < 0.4)
        chosen = [list(range(first, count, every)) for first in range(min(every, count))]
        for places in [*chosen, *([anywhere.tolist()] if anywhere.size else [])]:
            found = turns.at(np.array(places)) if places not in chosen else turns.regular(places[0])
            if every == 1:
                assert turns.dense
                assert len(found) == count - places[0]
                assert np.flatnonzero(found.sensitivity).tolist() == [place - places[0] for place in places]
                assert (found.noise == steps.noise[places[0] :]).all()
                continue
            assert not turns.dense
            expected = exact_turns(steps, places)
            assert len(found) == len(expected)
            assert found.diameter == 1.5
            for at, (_, push, factor, square) in enumerate(expected):
                assert found.sensitivity[at] == push
                assert factor <= Fraction(found.lipschitz[at]) <= factor * (1 + Fraction(1, 10**12))
                assert square * (1 - Fraction(1, 10**12)) <= Fraction(found.noise[at]) ** 2
                assert Fraction(found.noise[at]) ** 2 <= square * (1 + Fraction(1, 10**15))


def test_other_pushes_may_be_given() -> None:
    steps = steps_of(np.ones(6), 1.0, 0.9)
    found = RecordSteps(stored_once(steps), 3).at(np.array([1, 4]), np.array([5.0, 7.0]))
    assert found.sensitivity.tolist() == [5.0, 0.0, 7.0, 0.0]


@pytest.mark.parametrize(
    ("largest", "diameter", "every", "dense"),
    [
        (1.0, 2.0, 4, False),
        (1.01, 2.0, 4, True),
        (1.01, math.inf, 4, False),
        (0.5, 2.0, 4, False),
        (1e60, math.inf, 4, True),
        (1e60, math.inf, 2, False),
        (0.9, math.inf, 1, True),
        (math.inf, 2.0, 4, False),
    ],
)
def test_which_records_need_every_step(largest: float, diameter: float, every: int, dense: bool) -> None:
    """Where distances may grow inside a bounded domain, and where merged steps would overflow."""
    lipschitz = np.array([0.3, largest, largest, largest, 0.3, largest, largest, largest])
    turns = RecordSteps(steps_of(np.ones(8), 1.0, lipschitz, diameter), every)
    assert turns.dense is dense or bool(turns.dense) is dense
    assert turns.unknown is math.isinf(largest)
    if turns.unknown:
        found = turns.regular(1)
        assert np.isinf(found.lipschitz).all()
        assert len(found) == 2
        assert math.isinf(found.diameter)


def test_steps_overflow_at_the_end_only() -> None:
    """The stretches between turns are harmless, the one after the last turn is not."""
    lipschitz = np.array([1.0, 0.5, 0.5, 1.0, 1e80, 1e80])
    assert len(RecordSteps(steps_of(np.ones(6), 1.0, lipschitz), 4).regular(3)) == 3
    assert len(RecordSteps(steps_of(np.ones(6), 1.0, np.minimum(lipschitz, 2.0)), 4).regular(3)) == 2
    between = np.array([1.0, 1e80, 1e80, 1.0, 0.5, 0.5])  # and the other way round
    assert RecordSteps(steps_of(np.ones(6), 1.0, between), 3).dense


@ways
def test_no_factor_is_too_large_to_be_counted(pay: object) -> None:
    """A finite one counts in full, however it shrinks afterwards; what an infinite one makes of anything is infinite."""
    shrinking = [1e-16] * 19
    for largest, exact in ((1e305, Fraction(1e305)), (1.7e308, Fraction(1.7e308)), (math.inf, None)):
        steps = steps_of([1.0] + [0.0] * 20, 1.0, [1.0, largest, *shrinking])
        mu = _cost(steps, 0, np.zeros(21), pay)  # type: ignore[arg-type]
        assert mu == math.inf if exact is None else holds(mu, (exact * math.prod(map(Fraction, shrinking))) ** 2)
        assert _cost(steps, 0, np.array([1.0] + [0.0] * 20), pay) >= 1.0  # type: ignore[arg-type]


def test_an_infinite_factor_of_nothing_is_nothing() -> None:
    steps = steps_of([1.0, 2.0, 3.0], 1.0, [1.0, math.inf, math.inf])
    assert certify(steps, 0, np.full(3, math.inf)) == pytest.approx(math.sqrt(14))
    assert certify(steps, 0, np.array([math.inf, 1.0, math.inf])) == math.inf


@pytest.mark.parametrize("growing", [1, 20, 40])
def test_what_underflows_between_two_turns_does_not_come_back_smaller(growing: int) -> None:
    """Products that leave the range of floats below, and come back: no factor too small, no noise too large."""
    for order in (1, -1):
        lipschitz = np.array([1e16] * growing + [1e-16] * 25)[::order]
        noise = np.array([1e90] * growing + [1e-90] * 25)[::order]
        exact, square = Fraction(1), Fraction(0)
        for factor, one in zip(lipschitz.tolist(), noise.tolist(), strict=True):
            exact, square = exact * Fraction(factor), square * Fraction(factor) ** 2 + Fraction(one) ** 2
        tables = windows(lipschitz, noise, len(noise))
        for factor, together in (whole(lipschitz, noise), (float(tables[0][0]), float(tables[1][0]))):
            assert factor == math.inf or (Fraction(factor) >= exact and Fraction(together) ** 2 <= square)


def test_squares_that_underflow_do_not_add_noise() -> None:
    """(1.6e-162)² is no normal number, and by itself would be rounded to twice as much."""
    lipschitz, noise = np.array([1.0, 1.0, 1.6e-81, 1e-81]), np.array([1e100, 1e100, 1e-100, 1e-100])
    together = float(windows(lipschitz, noise, 4)[1][0])
    assert together == pytest.approx(math.sqrt(2) * 1e100 * 1.6e-81 * 1e-81, rel=1e-12)


@pytest.mark.parametrize("constant", [True, False])
def test_a_turn_is_carried_to_the_end_of_its_piece(constant: bool) -> None:
    """The largest of push·(factors after it), rounded up; pieces of different lengths."""
    source = np.random.default_rng(26)
    for ends in ([0], [4], [2, 5, 8], [1, 4, 5, 9], [3, 4, 8]):
        count, size = ends[-1] + 1, 1 if constant else ends[-1] + 1
        for largest in (1.0, 1.5):
            pushes = np.array(np.broadcast_to(source.uniform(0.1, 1, size), count))
            lipschitz = np.array(np.broadcast_to(source.uniform(0.5, largest, size), count))
            steps = steps_of(pushes, 1.0, lipschitz)
            found = latest_turns(stored_once(steps) if constant else steps, np.array(ends))
            first = 0
            for end, one in zip(ends, found.tolist(), strict=True):
                exact = max(
                    Fraction(pushes[turn]) * math.prod(map(Fraction, lipschitz[turn + 1 : end + 1].tolist()))
                    for turn in range(first, end + 1)
                )
                assert exact <= Fraction(one) <= exact * (1 + Fraction(1, 10**12))
                first = end + 1


def test_steps_are_values() -> None:
    steps = steps_of([1.0, 2.0, 3.0], 1.0, 1.0, 4.0)
    with pytest.raises(AttributeError):
        steps.diameter = 1.0  # type: ignore[misc]
    part = steps.part(1, 3)
    assert part.sensitivity.tolist() == [2.0, 3.0]
    assert part.diameter == 4.0
    assert steps == steps
    assert steps != steps_of([1.0, 2.0, 3.0], 1.0, 1.0, 4.0)
