"""Grids and tables by themselves: where they begin and end, and what lies between their points."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import lastiterate as li
from lastiterate.mixing import recursion as grids
from lastiterate.mixing.recursion import Block, _reach, chords, even, for_ever, mixed_profile, narrowed
from lastiterate.mixing.table import Quick, Tabled
from lastiterate.mixing.window import Ends
from lastiterate.numerics.normal_gap import log_gap_above


def test_an_even_grid_has_one_point_more_than_cells() -> None:
    assert even(3.0, 4).tolist() == [0.0, 0.75, 1.5, 2.25, 3.0]


def test_between_points_of_a_grid_lies_the_chord_and_beyond_the_last_its_value() -> None:
    known = np.array([0.0, math.log(3.0)])
    found = chords(np.array([0.0, math.log(2.0), math.log(3.0), 9.0]), known, np.array([0.5, 0.1]))
    assert found == pytest.approx([0.5, 0.3, 0.1, 0.1], rel=1e-11, abs=0)
    assert found[[0, 2, 3]] == pytest.approx(np.array([0.5, 0.1, 0.1]) * (1 + 1e-12), rel=1e-15, abs=0)


def test_a_grid_reaches_to_where_the_bound_is_negligible() -> None:
    """The first of 0.001·1.5ᵏ at which it is below 1e-21; never beyond 600."""
    for rate in (1.0, 30.0):
        reach = _reach(lambda e, rate=rate: np.exp(-rate * e))
        assert math.exp(-rate * reach) <= 1e-21 < math.exp(-rate * reach / 1.5)
        assert math.log(reach / 1e-3, 1.5) == pytest.approx(round(math.log(reach / 1e-3, 1.5)), abs=1e-9)
    assert _reach(lambda e: np.zeros_like(e)) == 1e-3
    assert _reach(lambda e: np.full_like(e, 1e-17 * 1e-4)) == 1e-3
    assert _reach(lambda e: np.ones_like(e)) == 600.0


def flat_block(level: float, ends_at: float) -> object:
    """Each block reveals `level` up to some ε and nothing beyond."""

    def block(grid: np.ndarray) -> Block:
        return Block(grid, np.where(grid < ends_at, level, 0.0), np.array([0.0, 50.0]), np.zeros(2))

    return block


def narrowed_for(block: Callable[[np.ndarray], Block], reach: float) -> tuple[np.ndarray, np.ndarray]:
    return narrowed(reach, 26, lambda grid, known: for_ever(block(grid), known, 400))


@pytest.mark.parametrize(("ends_at", "last"), [(32.5, 33.15), (25.0, 25.5), (7.0, 7.65), (1.0, 1.275)])
def test_a_grid_is_narrowed_until_the_profile_fills_it(ends_at: float, last: float) -> None:
    """To 1.02 times the first point, of 40, at which nothing is left; once is enough here."""
    grid, known = narrowed_for(flat_block(1e-3, ends_at), 50.0)  # type: ignore[arg-type]
    small = np.flatnonzero(known <= 1e-17)
    assert len(grid) == 41
    assert small[0] > 26
    assert ends_at <= grid[small[0]] <= ends_at * 1.1
    assert grid[-1] == pytest.approx(last, rel=1e-12, abs=0)


@pytest.mark.parametrize(("first", "last"), [(0.99e-9, 0.99e-9), (1e-9, 2.55e-11), (1.01e-9, 2.5755e-11)])
def test_a_grid_of_nothing_is_narrowed_down_to_a_billionth(first: float, last: float) -> None:
    grid, _ = narrowed_for(flat_block(0.0, 1.0), first)  # type: ignore[arg-type]
    assert grid[-1] == pytest.approx(last, rel=1e-12, abs=0)


def test_a_grid_of_nothing_stops_to_be_narrowed() -> None:
    grid, known = narrowed_for(flat_block(0.0, 1.0), 50.0)  # type: ignore[arg-type]
    assert 1e-11 < grid[-1] < 1e-9
    assert (known <= 1e-17).all()


@pytest.mark.parametrize("count", [1, 40, 41])
def test_a_profile_has_the_points_of_its_fine_grid_and_of_the_bound(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty blocks are gone through one by one, more are bounded for ever."""
    rounds: list[int] = []

    def one_by_one(block: Block, blocks: int) -> np.ndarray:
        rounds.append(blocks)
        return np.full(len(block.epsilons), 1e-3)

    monkeypatch.setattr(grids, "from_common_start", one_by_one)
    monkeypatch.setattr(grids, "Profile", lambda epsilons, deltas: (epsilons, deltas))
    apart = lambda e: np.exp(-2 * e)  # noqa: E731
    common = lambda e: np.exp(-3 * e - 5.0)  # noqa: E731
    points, deltas = mixed_profile(common, apart, count)  # type: ignore[misc]
    fine, coarse = points[:129], points[129:]
    narrow, _ = narrowed_for(lambda e: Block(e, common(e), coarse, apart(coarse)), _reach(apart))
    assert fine[-1] == narrow[-1]
    assert len(points) == len(deltas) == 129 + 400
    assert rounds == ([count] if count <= 40 else [])
    assert fine == pytest.approx(fine[-1] * np.arange(129) / 128, rel=1e-12, abs=0)
    assert coarse == pytest.approx(_reach(apart) * (np.arange(400) / 399) ** 2, rel=1e-12, abs=0)
    assert deltas[129:] == pytest.approx(apart(coarse), rel=1e-12, abs=0)


def test_the_ends_of_a_block_are_certain_where_nothing_is_known() -> None:
    ends = Ends(li.notions.GaussianDP(30.0), math.inf, math.inf, 30.0)
    assert ends.apart_delta(np.zeros(1))[0] == 1
    assert Ends(li.notions.GaussianDP(0.5), 0.5, math.inf, math.inf).apart_delta(np.array([0.0, 50.0])).tolist() == [
        1.0,
        1.0,
    ]


def test_the_ends_of_a_block_are_split_where_windows_are_known() -> None:
    ends = Ends(li.notions.GaussianDP(0.4), 0.4, math.inf, 1.2)
    epsilons, logs = ends._windows
    assert epsilons == pytest.approx(ends._table.reach * (np.arange(24) / 23) ** 1.5, rel=1e-12, abs=0)
    assert np.exp(logs) == pytest.approx(ends.common_delta(epsilons), rel=1e-12, abs=0)
    # At the ε of a window all may be left to it: then the tail has ε = 0.
    found = ends.apart_delta(epsilons[:3])
    assert (found <= np.exp(logs[:3]) + float(li.notions.GaussianDP(1.2).delta(0.0)) * (1 + 1e-9)).all()


def test_the_ends_of_a_block_are_rounded_up() -> None:
    """By 1e-12, where the record in every batch is better than the table."""
    epsilons = np.array([0.0, 0.5, 2.0])
    found = Ends(li.notions.GaussianDP(0.9), 0.4, 2.0, math.inf)
    for deltas, mu in ((found.common_delta(epsilons), 0.4), (found.apart_delta(epsilons), 2.0)):
        assert deltas / np.exp(log_gap_above(epsilons, mu)) - 1 == pytest.approx(1e-12, rel=0.01, abs=0)


def composed(times: int) -> li.Notion:
    return li.notions.subsampled_gaussian(
        mu=0.6, inclusion=0.1, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    ).compose(times)


def test_a_table_has_its_points_and_is_their_chord() -> None:
    tabled = Tabled(composed(400))
    assert tabled._table is not None
    points, deltas = tabled._table
    assert points == pytest.approx(tabled.reach * (np.arange(96) / 95) ** 1.5, rel=1e-12, abs=0)
    assert (np.diff(deltas) <= 0).all()
    found = tabled.delta(points)
    assert (found >= deltas).all()
    assert found == pytest.approx(deltas, rel=1e-9, abs=0)
    middle = np.log((np.exp(points[3]) + np.exp(points[4])) / 2)
    assert tabled.delta(np.array([middle]))[0] == pytest.approx((deltas[3] + deltas[4]) / 2, rel=1e-9, abs=0)
    assert tabled.delta(np.array([points[-1] * 2, 1e5])) == pytest.approx([deltas[-1]] * 2, rel=1e-9, abs=0)
    slack = tabled.log_delta(points[:5]) - np.log(found[:5])
    assert (slack >= 0).all()
    assert (slack <= 2e-15).all()
    estimate = tabled.notion.epsilon_estimate(math.log(1e-19))
    assert tabled.reach == pytest.approx(1.05 * estimate, rel=1e-9, abs=0)
    quick = Quick(tabled.notion)
    assert quick.epsilon_estimate(-9.0) == tabled.notion.epsilon_estimate(-9.0)
    assert quick.log_delta(points[:4]) == pytest.approx(tabled.log_delta(points[:4]), rel=1e-15, abs=0)


def test_one_question_is_not_answered_by_a_table_which_is_looser() -> None:
    notion = composed(3)
    tabled = Tabled(notion)
    assert tabled._table is not None
    points, deltas = tabled._table
    for delta in (1e-3, 1e-8, float(deltas[40])):
        chord = math.log(np.interp(math.exp(math.log(delta)) * (1 - 1e-12), deltas[::-1], np.exp(points[::-1])))
        assert (
            tabled.epsilon(math.log(delta)).value
            == float(notion.epsilon_at_log(np.array([math.log(delta)]))[0])
            <= chord
        )


@pytest.mark.parametrize("delta", [1e-28, 1e-39])
def test_below_its_last_point_a_table_is_not_believed(delta: float) -> None:
    notion = composed(3)
    tabled = Tabled(notion)
    assert tabled._table is not None
    assert tabled._table[1][-1] > delta
    found = tabled.epsilon(math.log(delta)).value
    assert found == float(notion.epsilon_at_log(np.array([math.log(delta)]))[0])
    assert found > tabled.reach


def test_a_table_is_not_asked_where_a_formula_or_the_guarantee_itself_is_quick() -> None:
    assert Tabled(li.notions.GaussianDP(1.0))._table is None
    assert Tabled(li.notions.GaussianDP(1e4)).reach == 600.0


def test_a_table_of_next_to_no_protection_is_quick_and_valid() -> None:
    """A record whose every turn is seen, now and then: a lattice of such steps took a quarter of a minute."""
    step = li.notions.subsampled_gaussian(
        mu=40.0, inclusion=0.05, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    )
    table = Tabled(step.compose(50))
    assert table.delta(np.array([0.0, 10.0, 600.0])).tolist() == pytest.approx([1.0, 1.0, 1.0])
