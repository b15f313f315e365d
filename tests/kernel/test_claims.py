"""Claims of exactly what is proved, and of a hair less; proofs that are odd, but proofs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from lastiterate.certificate import codec as reading
from lastiterate.certificate.codec import read_payments as payments
from lastiterate.kernel.certify import certify
from lastiterate.kernel.check import Proved
from lastiterate.kernel.gaussian import log_delta
from lastiterate.kernel.steps import Refused
from processes import steps_of
from replayed import check, proved

ULP = Fraction(1, 2**52)
AT_THE_END: dict[str, Any] = {"start": 0, "blocks": [[1, 0, 0.0, 1]]}


def full_batches(pushes: list[float], releases: list[int], displacement: float = 0.0) -> dict[str, Any]:
    """Noise 1 and Lipschitz constant 1, the record in every batch, everything paid at each release."""
    edges = [0, *releases, len(pushes)]
    lengths = [last - first for first, last in pairwise(edges)]
    parts = [{"start": 0, "blocks": [[1, 0, 0.0, length]]} for length in lengths]
    level = [[1.0, len(pushes)]]
    steps = {"sensitivity": [[push, 1] for push in pushes], "noise": level, "lipschitz": level, "diameter": None}
    return {
        "steps": {"count": len(pushes), **steps},
        "turns": {"order": "fixed", "every": 1, "averaged": False, "releases": releases},
        "displacement": displacement,
        "schedules": [{"place": 0, "parts": parts}],
    }


def claimed(mu: float | None, epsilon: float = 50.0, delta: float = 0.5) -> dict[str, Any]:
    return {"mu": mu, "epsilon": epsilon, "delta": delta}


def alone(push: float) -> Fraction:
    """μ of one step, as the checker rounds it up."""
    return Fraction(certify(steps_of([push], 1.0, 1.0), 0, np.zeros(1)))


@pytest.mark.parametrize("displacement", [0.0, 0.4])
def test_what_is_released_together_is_rounded_up_and_by_little(displacement: float) -> None:
    source = np.random.default_rng(41)
    for _ in range(300):
        pushes = source.uniform(0.1, 3.0, 3).tolist()
        found = Fraction(proved(full_batches(pushes, [1, 2], displacement)).mus[0])
        without = found - 2 * Fraction(displacement)
        squares = sum(alone(push) ** 2 for push in pushes)
        assert squares * (1 + 5 * ULP) <= without**2
        least = Fraction(math.sqrt(squares)) + 2 * Fraction(displacement)
        assert found <= least * (1 + 13 * ULP)


def test_a_displacement_is_rounded_up_on_its_own() -> None:
    """Where nothing is pushed, twice the displacement remains, and 1e-15 of it more."""
    found = proved(full_batches([0.0], [], 0.4)).mus[0]
    assert Fraction(0.8) * (1 + 4 * ULP) <= Fraction(found) <= Fraction(0.8) * (1 + 6 * ULP)


def test_exactly_the_mu_that_is_proved_may_be_claimed_and_a_hair_less_is_refused() -> None:
    for proof in (full_batches([1.0], []), full_batches([0.3, 0.7], [1], 0.1)):
        mu = proved(proof).mus[0]
        check(proof, claimed(mu))
        check(proof, claimed(None))
        with pytest.raises(Refused, match="claims mu"):
            check(proof, claimed(math.nextafter(mu, 0.0)))


@dataclass(frozen=True)
class Known(Proved):
    """δ is known without rounding."""

    known: float = 0.0

    def log_delta(self, epsilon: float) -> float:
        return self.known


@pytest.mark.parametrize("delta", [0.5, 0.1, 1e-5, 1e-300])
def test_exactly_the_delta_that_is_proved_may_be_claimed_and_a_hair_less_is_refused(delta: float) -> None:
    """Four ulps of log δ are kept back, because it is rounded itself."""
    least = math.log(delta) * (1 + 4 * 2.0**-52)
    assert Fraction(4) <= (Fraction(least) / Fraction(math.log(delta)) - 1) / ULP + 1 <= 6
    assert Known((1.0,), (0.0,), False, known=least).implies(1.0, delta)
    assert Known((1.0,), (0.0,), False, known=math.nextafter(least, -math.inf)).implies(1.0, delta)
    for more in (math.nextafter(least, 0.0), math.log(delta)):
        assert not Known((1.0,), (0.0,), False, known=more).implies(1.0, delta)
        assert Known((1.0,), (0.0,), False, known=more).implies(math.inf, delta)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_a_claim_is_refused_below_the_delta_that_is_proved(epsilon: float) -> None:
    proof = full_batches([0.6, 0.8], [1])
    log = proved(proof).log_delta(epsilon)
    assert log == float(log_delta(epsilon, np.array(proved(proof).mus))[0])
    check(proof, claimed(None, epsilon, math.exp(log) * (1 + 1e-14 * (1 + abs(log)))))
    with pytest.raises(Refused, match="claims delta"):
        check(proof, claimed(None, epsilon, math.exp(log) * (1 - 1e-14 * (1 + abs(log)))))


@pytest.mark.parametrize(("epsilon", "delta"), [(-1e-300, 0.5), (math.nan, 0.5), (1.0, 0.0), (1.0, 1.0), (1.0, 1.5)])
def test_what_is_no_claim_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(Refused, match="must be >= 0, and delta inside"):
        check(full_batches([1e-9], []), claimed(None, epsilon, delta))


def test_claims_at_the_ends_are_claims() -> None:
    check(full_batches([1e-9], []), claimed(None, 0.0, 1e-9))
    check(full_batches([1e9], []), claimed(None, math.inf, 1e-300))
    check(full_batches([0.0], []), claimed(0.0, 0.0, 1e-300))


def test_an_averaged_proof_proves_no_mu() -> None:
    """Two places with μ = 0 and about 0.7: the average is small at ε = 1, and no μ is."""
    proof = full_batches([0.0, 0.7], [])
    proof["turns"] |= {"every": 2, "averaged": True}
    proof["schedules"] = [
        {"place": 0, "parts": [{"start": 0, "blocks": [[2, 0, 0.0, 1]]}]},
        {"place": 1, "parts": [AT_THE_END]},
    ]
    found = proved(proof)
    assert found.averaged
    assert found.weights == (0.5, 0.5)
    assert found.mus == (0.0, pytest.approx(0.7))
    half = 0.5 * math.exp(float(log_delta(1.0, np.array(found.mus[1:]))[0]))
    check(proof, claimed(None, 1.0, half * (1 + 1e-13)))
    for wrong in (claimed(None, 1.0, half * (1 - 1e-13)), claimed(1e9)):
        with pytest.raises(Refused):
            check(proof, wrong)


def test_blocks_by_hand() -> None:
    """Noise² doubles at each step, all factors are ½: a payment is four times the one before it."""
    count = 16
    steps = steps_of(np.ones(count), np.sqrt(2.0) ** np.arange(count), 0.5)
    due = payments(steps, [[4, 0, 0.25, 2], [1, 0, 9.0, 2], [3, 1, 0.5, 2]])
    inf = math.inf
    expected = [0.25, 1.0, 4.0, inf, 0.25, 1.0, 4.0, inf, inf, inf, 0.0, 0.5, inf, 0.0, 0.5, inf]
    assert due.tolist() == pytest.approx(expected, rel=1e-13)
    waiting = payments(steps, [[8, 3, 0.25, 2]])
    assert waiting.tolist() == pytest.approx(2 * [0.0, 0.0, 0.0, 0.25, 1.0, 4.0, 16.0, inf], rel=1e-13)
    assert payments(steps, [[8, 7, 0.25, 2]]).tolist() == 2 * ([0.0] * 7 + [inf])
    often = payments(steps, [[2, 0, 0.25, 8]])
    assert often.tolist() == 8 * [0.25, inf]


def test_a_block_forgets_the_noise_and_the_factor_of_its_first_step() -> None:
    steps = steps_of(np.ones(4), [5.0, 1.0, 3.0, 1.0], [7.0, 0.5, 2.0, 1.0])
    assert payments(steps, [[4, 0, 1.0, 1]]).tolist() == pytest.approx([1.0, 0.04 / 0.5, 0.04 / 0.5 * 9 / 2, math.inf])


def test_blocks_that_pay_at_their_end_alone_are_not_gone_through_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short file with millions of steps is read at once."""
    looked: list[Any] = []
    monkeypatch.setattr(reading, "read_number", lambda value: looked.append(value) or 1.0)
    for given in ([[1, 0, 0.0, 600]], [[3, 2, 0.0, 200]]):
        payments(steps_of(np.ones(600), 1.0, 1.0), given)
        assert looked == []
    payments(steps_of(np.ones(600), 1.0, 1.0), [[3, 1, 0.0, 200]])
    assert len(looked) == 200


@pytest.mark.parametrize(
    "given",
    [
        [[2, 0, 1.0, 3]],
        [[2, 0, 1.0, 1], [4, 0, 1.0, 1]],
        [[2, 0, 1.0, 1], [1, 0, 1.0, 3]],
        [[2, 0, 1.0, 1], [3, 0, 1.0, 1]],
        [[1, 0, 1.0, 10**15]],
        [[2, 0, 1.0, 0], [4, 0, 1.0, 1]],
        [[1, 0, 1.0, 5], [1, 0, 1.0, -1]],
        [[2**53 + 1, 0, 1.0, 1]],
        [[2, 2, 1.0, 2]],
    ],
)
def test_blocks_that_are_too_long_are_refused(given: list[list[Any]]) -> None:
    with pytest.raises(Refused):
        payments(steps_of(np.ones(4), 1.0, 1.0), given)


@pytest.mark.parametrize("releases", [[0], [2], [3], [-1], [True], [1.0], [1, 1], [0, 2]])
def test_a_release_is_after_a_step_and_before_the_last(releases: list[Any]) -> None:
    """Even where there are as many schedules as releases ask for, and a stretch without steps costs nothing."""
    proof = full_batches([1.0, 1.0], [])
    check(proof, claimed(2.0))
    proof["turns"]["releases"] = releases
    for first, second in (([], [AT_THE_END]), ([AT_THE_END], [])):
        whole = {"start": 0, "blocks": [[1, 0, 0.0, 2]]}
        proof["schedules"][0]["parts"] = [*first, whole, *second, *[AT_THE_END] * (len(releases) - 1)]
        with pytest.raises(Refused):
            check(proof, claimed(None))
    check(full_batches([1.0, 1.0], [1]), claimed(None))


@pytest.mark.parametrize("start", [-1, 2, 3, 10**9, True, 0.0, None])
def test_a_schedule_starts_at_one_of_the_steps(start: Any) -> None:
    proof = full_batches([1.0, 1.0], [])
    proof["steps"]["diameter"] = 0.5
    for start_or, blocks in ((start, []), (start, [[1, 0, 0.0, 1]]), (start, [[1, 0, 0.0, 2]])):
        proof["schedules"][0]["parts"] = [{"start": start_or, "blocks": blocks}]
        with pytest.raises(Refused):
            check(proof, claimed(None))
    proof["schedules"][0]["parts"] = [{"start": 1, "blocks": [[1, 0, 0.0, 1]]}]
    assert proved(proof).mus[0] == pytest.approx(1.5)


def test_every_place_that_counts_has_its_own_schedule() -> None:
    """Of three places each has another push, and the worst counts."""
    proof = full_batches([1.0, 3.0, 2.0], [])
    proof["turns"]["every"] = 3
    parts = [{"start": 0, "blocks": [[1, 0, 0.0, 1], [1, 0, 0.0, 1]]}]
    entries = [{"place": 0, "parts": parts}, {"place": 1, "parts": parts}, {"place": 2, "parts": [AT_THE_END]}]
    proof["schedules"] = entries
    assert proved(proof).mus == pytest.approx((1.0, 3.0, 2.0))
    check(proof, claimed(3.0 + 1e-12))
    with pytest.raises(Refused):
        check(proof, claimed(2.9))
    for left_out in range(3):
        proof["schedules"] = [entry for entry in entries if entry["place"] != left_out]
        with pytest.raises(Refused, match=f"no schedule for place {left_out}"):
            proved(proof)


@pytest.mark.parametrize("place", [-2, True, 0.0, None])
def test_a_place_is_a_count(place: Any) -> None:
    proof = full_batches([1.0], [])
    proof["schedules"].append({"place": place, "parts": []})
    with pytest.raises(Refused):
        proved(proof)


def test_new_orders_in_a_file() -> None:
    """Three steps, two to an epoch: the last epoch is one step long, and half of the records are not in it."""
    proof = full_batches([1.0, 1.0, 1.0], [])
    proof["turns"] |= {"order": "new each epoch", "every": 2, "averaged": True}
    both, once = {"start": 0, "blocks": [[1, 0, 0.0, 2]]}, {"start": 0, "blocks": [[1, 0, 0.0, 1], [1, 0, 0.0, 1]]}
    proof["schedules"] = [{"place": 0, "parts": [both]}, {"place": -1, "parts": [once]}]
    found = proved(proof)
    assert found.mus == pytest.approx((math.sqrt(2), 1.0))
    assert found.weights == (0.5, 0.5)


@pytest.mark.parametrize("every", [55, 1000, 2**53])
def test_a_record_may_have_a_single_turn_in_the_whole_run(every: int) -> None:
    proof = full_batches([1.0, 1.0], [])
    for name in ("sensitivity", "noise", "lipschitz"):
        proof["steps"][name] = [[1.0, 2]]
    proof["turns"]["every"] = every
    proof["schedules"] = [{"place": 1, "parts": [AT_THE_END]}]
    assert proved(proof).mus == pytest.approx((1.0,))
    proof["turns"]["every"] = 2**53 + 1
    with pytest.raises(Refused):
        proved(proof)


WRONG_LISTS = [
    [],
    [[1.0, 1]],
    [[1.0, 3]],
    [[1.0, 1], [1.0, 2]],
    [[1.0, 0], [1.0, 2]],
    [[1.0, -1], [1.0, 3]],
    {"pattern": []},
    {"pattern": [[1.0, 3]]},
    {"pattern": [[1.0, 1], [1.0, 2]]},
]


@pytest.mark.parametrize("given", WRONG_LISTS, ids=str)
@pytest.mark.parametrize("name", ["sensitivity", "noise", "lipschitz"])
def test_packed_lists_have_to_fit(name: str, given: Any) -> None:
    """Above all an empty pattern is no push of nothing, and what is too long is not cut off."""
    proof = full_batches([1.0, 1.0], [])
    proof["steps"][name] = given
    with pytest.raises(Refused):
        proved(proof)


def test_patterns_may_be_as_long_as_the_run_or_shorter() -> None:
    assert reading.read_values({"pattern": [[1.0, 1], [2.0, 1]]}, 2).tolist() == [1.0, 2.0]
    assert reading.read_values({"pattern": [[3.0, 1]]}, 2).tolist() == [3.0, 3.0]
    assert reading.read_values({"pattern": [[3.0, 1]]}, 2).strides == (0,)
    assert reading.read_values([[3.0, 1], [4.0, 2]], 3).tolist() == [3.0, 4.0, 4.0]


@pytest.mark.parametrize(
    ("name", "value"), [("sensitivity", 0.0), ("lipschitz", 0.0), ("lipschitz", None), ("noise", 1e-3)]
)
def test_numbers_at_the_ends_of_their_range(name: str, value: float | None) -> None:
    """In one step of two, which are paid one by one."""
    proof = full_batches([1.0, 1.0], [])
    proof["steps"][name] = [[1.0, 1], [value, 1]]
    exact = {"sensitivity": 1.0, "lipschitz": math.sqrt(2), "noise": math.hypot(1.0, 1e3)}[name]
    assert proved(proof).mus == pytest.approx((exact,))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sensitivity", -1e-300),
        ("sensitivity", math.nan),
        ("lipschitz", -1e-300),
        ("lipschitz", math.nan),
        ("noise", 0.0),
        ("noise", -1e-300),
        ("noise", None),
        ("noise", math.nan),
    ],
)
def test_numbers_beyond_their_range_are_refused_at_once(name: str, value: float | None) -> None:
    proof = full_batches([1.0, 1.0], [])
    proof["steps"][name] = [[1.0, 1], [value, 1]]
    with pytest.raises(Refused, match="must be >= 0, noise and diameter > 0"):
        proved(proof)


def test_an_infinite_push_proves_nothing() -> None:
    proof = full_batches([1.0, 1.0], [])
    proof["steps"]["sensitivity"] = [[1.0, 1], [None, 1]]
    assert proved(proof).mus == (math.inf,)
    with pytest.raises(Refused):
        check(proof, claimed(1e300))


@pytest.mark.parametrize("schedules", [0, 1, 3])
def test_there_is_one_schedule_for_each_stretch(schedules: int) -> None:
    proof = full_batches([1.0, 1.0], [1])
    proof["schedules"][0]["parts"] = [AT_THE_END] * schedules
    with pytest.raises(Refused, match="not one for each of 2 stretches"):
        proved(proof)


@pytest.mark.parametrize("diameter", [0.0, -1.0, math.nan])
def test_a_set_has_a_diameter(diameter: float) -> None:
    proof = full_batches([1.0, 1.0], [])
    proof["steps"]["diameter"] = diameter
    with pytest.raises(Refused):
        proved(proof)


def test_fifty_million_steps_are_read_and_one_more_is_not() -> None:
    """One number for all of them is stored once."""
    level = [[1.0, 50_000_000]]
    steps = {"count": 50_000_000, "sensitivity": level, "noise": level, "lipschitz": level, "diameter": None}
    turns = {"order": "fixed", "every": 50_000_000, "averaged": False, "releases": []}
    assert len(reading.read_places(steps, turns).steps) == 50_000_000
    more = [[1.0, 50_000_001]]
    with pytest.raises(Refused, match="from 1 to 50000000"):
        reading.read_places(
            {**steps, "count": 50_000_001, "sensitivity": more, "noise": more, "lipschitz": more}, turns
        )
    with pytest.raises(Refused, match="from 1 to"):
        reading.read_places({**steps, "count": 0}, turns)
