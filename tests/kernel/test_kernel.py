"""The kernel stands alone, is small, and answers for numbers that were changed."""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import lastiterate
from lastiterate.certificate import codec as reading
from lastiterate.certificate.codec import read_payments as payments
from lastiterate.certificate.codec import read_proof
from lastiterate.kernel import check as kernel
from lastiterate.kernel.check import MOST_STEPS, ClaimedNumbers, Prepayment, Proof, Proved
from lastiterate.kernel.gaussian import log_average, log_delta
from lastiterate.kernel.places import Places
from lastiterate.kernel.prepaid import Kept, Smooth
from lastiterate.kernel.steps import Refused, Steps, greatest
from lastiterate.shift.optimise import best_schedule
from lastiterate.shift.schedule import Schedule, blocks
from lastiterate.shift.schedule import payments as meant
from processes import random_steps, steps_of, stored_once
from replayed import check, proved

KERNEL = Path(lastiterate.__file__).parent / "kernel"
MOST_LINES = 1100


def test_the_kernel_can_be_read_in_an_hour() -> None:
    assert sum(len(path.read_text().splitlines()) for path in KERNEL.glob("*.py")) < MOST_LINES


def test_the_kernel_loads_numpy_and_scipy_special_and_nothing_else_of_the_package() -> None:
    """Copied out of the package, it still works."""
    code = (
        f"import sys; sys.path.append({str(KERNEL.parent)!r}); import numpy, scipy.special; before = set(sys.modules); "
        "import kernel.check; print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    ours = {name for name in loaded if name.split(".")[0] == "kernel"}
    assert ours == {"kernel", *(f"kernel.{path.stem}" for path in KERNEL.glob("*.py") if path.stem != "__init__")}
    assert {name.split(".")[0] for name in loaded} - {"kernel"} <= set(sys.stdlib_module_names)


# From μ to δ


def exact_log_delta(epsilon: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        t, r = mpmath.mpf(epsilon), mpmath.mpf(mu)
        tails = [mpmath.erfc((t / r + sign * r / 2) / mpmath.sqrt(2)) / 2 for sign in (-1, 1)]
        return mpmath.log(tails[0] - mpmath.exp(t) * tails[1])


def test_delta_is_rounded_up_and_by_little() -> None:
    source = np.random.default_rng(31)
    for _ in range(1500):
        mu = 10 ** source.uniform(-7, 2.5)
        epsilon = max(mu * (source.uniform(-6, 30) + mu / 2), 0.0) if source.random() < 0.9 else 0.0
        found, exact = float(log_delta(epsilon, np.array([mu]))[0]), exact_log_delta(epsilon, mu)
        assert exact <= found <= exact + 3e-12 * (1 + abs(exact)) / min(mu, 1.0)


def test_delta_is_rounded_up_where_epsilon_is_near_half_the_square_of_a_huge_mu() -> None:
    """There ε/μ − μ/2 is near 0, and known to as many ulps as μ is large."""
    source = np.random.default_rng(32)
    for _ in range(300):
        mu = 10 ** source.uniform(2, 9)
        epsilon = mu * (mu / 2 + source.normal() * 10 ** source.uniform(-9, 0.7))
        assert float(log_delta(epsilon, np.array([mu]))[0]) >= exact_log_delta(epsilon, mu)


@pytest.mark.parametrize(
    ("epsilon", "mu", "most"),
    [(0.0, 1e-150, -346.0), (1.0, 1e-150, -1e290), (0.0, 1e150, 0.0), (5.0, 1e3, 0.0), (1.0, math.inf, 0.0)],
)
def test_delta_at_the_end_of_the_range(epsilon: float, mu: float, most: float) -> None:
    found = float(log_delta(epsilon, np.array([mu]))[0])
    assert found <= most
    assert found == 0 or mu < 1


def test_an_average_is_an_average() -> None:
    mus, weights = np.array([0.5, 1.0, 3.0]), np.array([0.5, 0.25, 0.125])
    exact = mpmath.log(sum(w * mpmath.exp(exact_log_delta(1.5, m)) for w, m in zip(weights, mus, strict=True)))
    assert exact <= log_average(1.5, mus, weights) <= exact + 1e-11
    assert Proved((0.0, 0.0), (0.5, 0.5), True).log_delta(0.0) == -math.inf
    assert Proved((0.0,), (0.0,), False).log_delta(0.0) == -math.inf
    assert Proved((0.5, 3.0), (0.0, 0.0), False).log_delta(1.5) == float(log_delta(1.5, np.array([3.0]))[0])
    assert Proved((1.0, 0.0), (0.25, 0.75), True).implies(1.0, 0.25 * math.exp(exact_log_delta(1.0, 1.0)) * (1 + 1e-9))
    assert not Proved((1.0, 0.0), (0.25, 0.75), True).implies(1.0, 0.25 * math.exp(exact_log_delta(1.0, 1.0)))


@pytest.mark.parametrize("epsilon", [1.5, 6.0, 20.0])
def test_an_average_is_rounded_up_by_what_its_sum_can_lose(epsilon: float) -> None:
    """A thousand equal parts: an ulp for each, two for the logarithm, and eight more."""
    alone = float(log_delta(epsilon, np.ones(1))[0])
    top = alone - math.log(1000)
    slack = log_average(epsilon, np.ones(1000), np.full(1000, 1e-3)) - alone
    assert 0.9 <= slack / (2.0**-52 * (1008 + 2 * abs(top))) <= 1.1


# Payments


def test_blocks_are_the_payments_that_were_meant() -> None:
    source = np.random.default_rng(32)
    for _ in range(200):
        steps = random_steps(source, int(source.integers(1, 40)), bounded=True)
        _, schedule = best_schedule(steps)
        expected = meant(steps, schedule)
        found = payments(steps.part(schedule.start, len(steps)), blocks(steps, schedule))
        assert found == pytest.approx(
            expected, rel=1e-12, abs=1e-20 * float(expected[np.isfinite(expected)].max(initial=0))
        )


def test_long_blocks_that_underflow_wait_and_short_ones_are_counted() -> None:
    shrinking = steps_of(np.append(1.0, np.zeros(3999)), 1.0, 0.5)
    schedule = Schedule(0, np.array([4000]), np.array([0.3]))
    ((length, wait, first, times),) = blocks(shrinking, schedule)
    assert (length, times) == (4000, 1)
    assert 3800 < wait < 3999
    assert 0 < first < 1e-20
    alike = steps_of(np.ones(1000), 1.0, 1.5)
    assert blocks(alike, Schedule(0, np.ones(1000, int), np.ones(1000))) == [[1, 0, 0.0, 1000]]
    growing = steps_of(np.append(1.0, np.zeros(3999)), 1.0, 2.0)
    assert payments(growing, blocks(growing, schedule))[:3] == pytest.approx([0.3, 0.15, 0.075])


@pytest.mark.parametrize(
    "given",
    [
        [],
        [[3, 0, 1.0, 1]],
        [[5, 0, 1.0, 1]],
        [[2, 0, 1.0, 3]],
        [[4, 4, 1.0, 1]],
        [[4, -1, 1.0, 1]],
        [[0, 0, 1.0, 1]],
        [[4, 0, "1", 1]],
        [[4, 0, True, 1]],
        [[4.0, 0, 1.0, 1]],
        [[4, 0, 1.0, 1], [1, 0, 1.0, 1]],
    ],
)
def test_blocks_have_to_fit(given: list[list[Any]]) -> None:
    with pytest.raises(Refused):
        payments(steps_of(np.ones(4), 1.0, 1.0), given)


# The whole


PROOF: dict[str, Any] = {
    "steps": {"count": 6, "sensitivity": [[1.0, 6]], "noise": [[2.0, 6]], "lipschitz": [[1.0, 6]], "diameter": None},
    "turns": {"order": "fixed", "every": 3, "averaged": False, "releases": []},
    "displacement": 0.0,
    # The place of the last step: its own step, the two after it merged into one, and its own again.
    "schedules": [{"place": 2, "parts": [{"start": 0, "blocks": [[2, 0, 1 / 3, 1], [1, 0, 0.0, 1]]}]}],
}
MU = math.sqrt((1 / 3) ** 2 / 4 + (2 / 3) ** 2 / 8 + 1 / 4)


def claim(epsilon: float = 3.0, delta: float = 0.1, mu: float | None = MU * (1 + 1e-12)) -> dict[str, Any]:
    return {"epsilon": epsilon, "delta": delta, "mu": mu}


def test_a_proof_by_hand() -> None:
    assert proved(PROOF).mus == (pytest.approx(MU, rel=1e-13),)
    check(PROOF, claim())
    check(PROOF, claim(mu=None))
    least = math.exp(exact_log_delta(0.5, MU))
    check(PROOF, claim(0.5, least * (1 + 1e-11)))
    for wrong in (claim(0.5, least), claim(mu=MU), claim(delta=0.0), claim(delta=math.nan), claim(epsilon=-1.0)):
        with pytest.raises(Refused):
            check(PROOF, wrong)


def test_what_is_computed_strays_on_both_data_sets() -> None:
    strayed = {**PROOF, "displacement": 0.25}
    assert proved(strayed).mus == (pytest.approx(MU + 0.5, rel=1e-13),)
    for wrong in (-0.25, None, math.nan, math.inf, "0"):
        with pytest.raises(Refused):
            proved({**PROOF, "displacement": wrong})


def test_what_was_released_before_is_part_of_what_is_released() -> None:
    before = {**PROOF, "prior_mu": 0.75}
    assert proved(before).mus == (pytest.approx(math.hypot(MU, 0.75), rel=1e-13),)
    assert proved({**before, "displacement": 0.25}).mus == (pytest.approx(math.hypot(MU + 0.5, 0.75), rel=1e-13),)
    for wrong in (-0.25, None, math.nan, math.inf, "0"):
        with pytest.raises(Refused):
            proved({**PROOF, "prior_mu": wrong})


CHANGED = [
    (("steps", "count"), 7),
    (("steps", "count"), 6.0),
    (("steps", "noise"), [[0.0, 6]]),
    (("steps", "noise"), [[-2.0, 6]]),
    (("steps", "noise"), [[None, 6]]),
    (("steps", "noise"), [[math.nan, 6]]),
    (("steps", "noise"), [[2.0, 5], [math.nan, 1]]),
    (("steps", "noise"), [[2.0, 5]]),
    (("steps", "noise"), [[2.0, 10**12]]),
    (("steps", "noise"), {"pattern": [[2.0, 7]]}),
    (("steps", "sensitivity"), [[-1.0, 6]]),
    (("steps", "lipschitz"), [[-1.0, 6]]),
    (("steps", "diameter"), 0.0),
    (("steps", "diameter"), math.nan),
    (("turns", "every"), 0),
    (("turns", "every"), True),
    (("turns", "every"), 2),
    (("turns", "averaged"), 0),
    (("turns", "averaged"), True),
    (("turns", "releases"), [3]),
    (("turns", "releases"), [6]),
    (("turns", "releases"), [4, 2]),
    (("schedules",), []),
    (("schedules", 0, "place"), 1),
    (("schedules", 0, "parts"), []),
    (("schedules", 0, "parts", 0, "start"), 3),
    (("schedules", 0, "parts", 0, "start"), -1),
]


@pytest.mark.parametrize(("path", "value"), CHANGED, ids=lambda value: json.dumps(value))
def test_what_was_changed_is_refused(path: tuple[Any, ...], value: Any) -> None:
    twin = copy.deepcopy(PROOF)
    place: Any = twin
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(Refused):
        check(twin, claim())


SIX = (np.ones(6), np.full(6, 2.0), np.ones(6))
IMPOSSIBLE: list[dict[str, Any]] = [
    {"steps": Steps(np.ones(0), np.ones(0), np.ones(0))},
    {"steps": Steps(np.ones(5), *SIX[1:])},
    {"steps": Steps(*SIX[:2], np.ones(7))},
    {"steps": Steps(*(np.broadcast_to(1.0, MOST_STEPS + 1) for _ in range(3)))},
    {"steps": Steps(-SIX[0], *SIX[1:])},
    {"steps": Steps(SIX[0], 0 * SIX[1], SIX[2])},
    {"steps": Steps(SIX[0], math.inf * SIX[1], SIX[2])},
    {"steps": Steps(*SIX[:2], math.nan * SIX[2])},
    {"steps": Steps(*SIX, 0.0)},
    {"releases": (0,)},
    {"releases": (6,)},
    {"releases": (3, 3)},
    {"releases": (4, 2)},
    {"every": 0},
    {"sizes": (1, 2)},
    {"sizes": (1, 0)},
    {"exchange": 0.5},
    {"exchange": math.inf},
    {"exchange": math.nan},
]


@pytest.mark.parametrize("change", IMPOSSIBLE)
def test_what_no_run_has_is_refused_whoever_has_read_it(change: dict[str, Any]) -> None:
    """The kernel looks at the values, and not only whoever reads them from a file."""
    proof = read_proof(PROOF)
    kernel.check(proof, ClaimedNumbers(3.0, 0.1, math.inf))
    with pytest.raises(Refused):
        kernel.check(replace(proof, places=replace(proof.places, **change)), ClaimedNumbers(3.0, 0.1, math.inf))


@pytest.mark.parametrize(
    ("start", "payments"),
    [(0, np.zeros((3, 1))), (0, np.zeros(2)), (-1, np.zeros(4)), (0, -np.ones(3)), (3, np.zeros(0))],
)
def test_whatever_a_schedule_answers_is_checked(start: int, payments: np.ndarray) -> None:
    proof = read_proof(PROOF)
    assert kernel.proved(replace(proof, schedules={2: [lambda steps: (0, np.zeros(3))]})).mus[0] >= MU
    with pytest.raises(Refused, match="payments must be"):
        kernel.proved(replace(proof, schedules={2: [lambda steps: (start, payments)]}))


def test_a_schedule_may_not_change_the_steps_that_it_is_checked_against() -> None:
    def louder(steps: Steps) -> tuple[int, np.ndarray]:
        steps.noise[:] = 100.0
        return 0, np.zeros(3)

    with pytest.raises(ValueError, match="read-only"):
        kernel.proved(replace(read_proof(PROOF), schedules={2: [louder]}))


def test_a_schedule_answers_payments_and_no_more() -> None:
    """Which of the record's steps count is not for a schedule to say."""
    schedules: Any = {2: [lambda steps: (0, np.zeros(3), lambda values: ())]}
    with pytest.raises(ValueError, match="too many values"):
        kernel.proved(replace(read_proof(PROOF), schedules=schedules))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.int64])
def test_payments_and_paths_are_checked_in_double_precision(kind: type) -> None:
    """In small numbers of a machine what is left of a push would vanish, and minus the least of them would be itself."""
    count = 4
    level, nothing = np.ones(count), np.zeros(count)
    quiet = Steps(np.full(count, 1e-9), np.array([1.0, 1.0, 1.0, 1e-9]), level)

    def paid(payments: np.ndarray) -> tuple[float, ...]:
        places = Places(quiet, 1, (), averaged=False)
        return kernel.proved(Proof(places, {0: [lambda steps: (0, payments)]})).mus

    assert paid(nothing.astype(kind)) == paid(nothing)
    assert paid(nothing)[0] > 3.9

    def along(number: type) -> tuple[float, ...]:
        def path(steps: Steps, kept: Kept) -> np.ndarray:
            return np.array([*np.where(steps.sensitivity[1:] > 0, -128, 0), 0], dtype=number)

        smooth = Smooth(level, nothing, nothing, nothing, nothing, turning=0.0, rank=1, start=0.0)
        places = Places(Steps(np.full(count, 200.0), level, level), 2, (), averaged=False)
        schedules = {place: [path] for place in range(2)}
        return kernel.proved(Proof(places, schedules, prepayment=Prepayment(smooth, 1e9, 1e-6, 2))).mus

    if kind != np.float16:
        assert along(kind) == along(float)


def test_nothing_is_made_of_a_long_list_of_schedules() -> None:
    content = copy.deepcopy(PROOF)
    content["schedules"][0]["parts"] = [None] * 1000
    read = read_proof(content)
    assert len(read.schedules[2]) == 2
    with pytest.raises(Refused, match="stretches"):
        kernel.proved(read)


GIVEN_BACK = np.array([0.0, -3.0, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("path", [np.zeros(5), np.zeros((6, 1)), np.full(6, math.nan), np.ones(6), GIVEN_BACK])
def test_whatever_path_a_schedule_answers_is_checked(path: np.ndarray) -> None:
    level, nothing = np.ones(6), np.zeros(6)
    smooth = Smooth(level, nothing, level, nothing, nothing, turning=0.0, rank=1, start=0.0)

    def along(path: np.ndarray, smooth: Smooth = smooth) -> Proof:
        schedules = {place: [lambda steps, kept: path] for place in range(3)}
        return replace(read_proof(PROOF), schedules=schedules, prepayment=Prepayment(smooth, 4.0, 1e-9, 1))

    def keeping_more(steps: Steps, kept: Kept) -> np.ndarray:
        kept.center[:] = 100.0
        return nothing

    schedules = {place: [keeping_more] for place in range(3)}
    with pytest.raises(ValueError, match="read-only"):
        kernel.proved(replace(along(nothing), schedules=schedules))
    assert kernel.proved(along(nothing)).mus == pytest.approx([math.sqrt(0.5)] * 3)
    with pytest.raises(Refused, match=r"path must have|must be kept"):
        kernel.proved(along(path))
    for wrong in (smooth.part(0, 5), replace(smooth, movement=-level)):
        with pytest.raises(Refused, match="known of the gradients"):
            kernel.proved(along(nothing, wrong))


def test_a_small_file_does_not_ask_for_hours() -> None:
    many = copy.deepcopy(PROOF)
    many["steps"] = {name: [[1.0, 10**9]] for name in ("sensitivity", "noise", "lipschitz")} | {"diameter": None}
    many["steps"]["count"] = 10**9
    assert reading.MOST_STEPS < 10**9
    with pytest.raises(Refused):
        proved(many)


def test_patterns_repeat_and_equal_numbers_are_stored_once() -> None:
    assert reading.read_values({"pattern": [[1.0, 1], [2.0, 2]]}, 7).tolist() == [1.0, 2.0, 2.0, 1.0, 2.0, 2.0, 1.0]
    assert reading.read_values([[None, 3]], 3).tolist() == [math.inf] * 3
    assert reading.read_values([[0.5, 1000]], 1000).strides == (0,)
    assert stored_once(steps_of(np.ones(3), 1.0, 1.0)).alike
    assert not steps_of([1.0, 2.0], 1.0, 1.0).alike
    assert steps_of([2.0], 1.0, 1.0).alike
    assert greatest(np.broadcast_to(3.0, 5)) == greatest(np.array([1.0, 3.0, 2.0])) == 3.0


def test_only_what_is_stored_once_is_alike() -> None:
    """Not numbers that are stored backwards, whose stride is below zero."""
    backwards = np.array([3.0, 2.0, 1.0])[::-1]
    assert not Steps(backwards, np.ones(3), np.ones(3)).alike
    level = np.broadcast_to(1.0, 3)
    assert Steps(level, level, level).alike
    for place in range(3):
        one_backwards = [level, level, level]
        one_backwards[place] = backwards
        assert not Steps(*one_backwards).alike
    assert greatest(backwards) == 3.0


def test_equal_numbers_stored_once_are_looked_at_once() -> None:
    """To look at a trillion would take an hour."""
    assert greatest(np.broadcast_to(3.0, 10**12)) == 3.0
    assert greatest(np.broadcast_to(3.0, 1)) == 3.0
