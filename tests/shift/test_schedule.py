"""Products within blocks, beside exact ones; where they are cut, and that long parts are not copied."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from lastiterate.kernel.certify import certify
from lastiterate.kernel.steps import Refused
from lastiterate.shift import schedule
from lastiterate.shift.schedule import Schedule, chunk_starts, levelled, payments, relative_products
from processes import steps_of


def exact_products(lipschitz: np.ndarray, lengths: np.ndarray) -> list[float]:
    """Of the factors after a step up to the end of its block, divided by the largest in the block."""
    found: list[float] = []
    for end, length in zip(np.cumsum(lengths).tolist(), lengths.tolist(), strict=True):
        factors = [Fraction(one) for one in lipschitz[end - length + 1 : end].tolist()]
        products = [math.prod(factors[place:]) for place in range(length)]
        found += [float(Fraction(one) / max(products)) for one in products]
    return found


@pytest.mark.parametrize("lengths", [[12], [1, 11], [4, 1, 7], [5, 5, 2], [1] * 12])
@pytest.mark.parametrize("spread", [0.1, 20.0, 120.0])
def test_products_within_blocks_are_exact_whatever_they_grow_to(lengths: list[int], spread: float) -> None:
    """Up to 10^1320 in one block: cut where they leave the range of floats."""
    source = np.random.default_rng(31)
    for _ in range(5):
        lipschitz = 10 ** source.uniform(-spread, spread, 12)
        found = relative_products(lipschitz, np.array(lengths))
        assert found == pytest.approx(exact_products(lipschitz, np.array(lengths)), rel=1e-11, abs=1e-300)


def test_a_factor_of_nothing_may_stand_where_a_block_begins() -> None:
    assert relative_products(np.array([0.0, 0.5, 0.5]), np.array([3])).tolist() == [0.25, 0.5, 1.0]
    assert relative_products(np.array([0.5, 0.0, 0.0]), np.ones(3, int)).tolist() == [1.0, 1.0, 1.0]


def test_a_schedule_with_a_factor_of_nothing_inside_a_block_is_refused() -> None:
    steps = steps_of(np.ones(5), 1.0, [1.0, 0.5, 0.0, 0.5, 1.0])
    with pytest.raises(Refused, match="payments must be"):
        certify(steps, 0, payments(steps, Schedule(0, np.array([5]), np.ones(1))))


@pytest.mark.parametrize(
    ("logs", "starts"),
    [
        ([0.0, 100.0, -199.0, 0.5], [0]),
        ([0.0, 100.0, -199.0, 1.0], [0, 3]),
        ([0.0, 200.0, 200.0, 200.0, 200.0], [0, 2, 3]),
        ([0.0, 1000.0, 0.0, 0.0], [0, 1]),
        ([0.0], [0]),
    ],
)
def test_chunks_end_before_factors_have_moved_by_more_than_their_reach(logs: list[float], starts: list[int]) -> None:
    assert chunk_starts(np.array(logs), 300.0).tolist() == starts


@pytest.mark.parametrize(("size", "copied"), [(1998, True), (2000, False), (3000, False)])
def test_long_pieces_are_not_copied(size: int, copied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two parts, of 999 steps on average or of 1000 and more: the same numbers, with a second array or without."""
    asked: list[int] = []
    repeat = np.repeat

    def counted(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        asked.append(len(values))
        return repeat(values, lengths)

    monkeypatch.setattr(schedule.np, "repeat", counted)
    entries = np.arange(1.0, size + 1)
    schedule._for_each_part(np.multiply, np.array([2.0, 3.0]), entries, np.array([0, 5]))
    assert (entries == np.arange(1.0, size + 1) * np.where(np.arange(size) < 5, 2, 3)).all()
    assert bool(asked) == copied


def test_a_schedule_in_which_blocks_pay_what_they_owe() -> None:
    """level·Σ(noise·product)² = Σ push·product, and the payments are those of the schedule."""
    source = np.random.default_rng(32)
    steps = steps_of(*(10 ** source.uniform(-1, 1, (3, 12))), 1.0)
    lengths = np.array([4, 1, 5])
    found, paid = levelled(steps, 2, lengths, 0.7)
    assert found.start == 2
    products = np.array(exact_products(steps.lipschitz[2:], lengths))
    pushes, noise = steps.sensitivity[2:].copy(), steps.noise[2:]
    pushes[0] += steps.lipschitz[2] * 0.7
    for level, end, length in zip(found.levels, np.cumsum(lengths), lengths, strict=True):
        block = slice(end - length, end)
        owed = float((pushes[block] * products[block]).sum())
        assert level * float(((noise[block] * products[block]) ** 2).sum()) == pytest.approx(owed, rel=1e-12)
        assert paid[end - 1] == math.inf
        inside = slice(end - length, end - 1)
        assert paid[inside] == pytest.approx(level * noise[inside] ** 2 * products[inside], rel=1e-11)
    assert paid.tolist() == payments(steps, found).tolist()
