"""Which places are looked at, how many, and what that costs: counted one by one."""

from __future__ import annotations

import itertools
import math

import pytest

import lastiterate as li
from lastiterate.kernel.places import NewOrders, Places, groups
from lastiterate.theorems.places import most_places, places_of, work
from processes import process


@pytest.mark.parametrize(("first", "last"), [(0, 1), (3, 90), (0, 128), (0, 129), (7, 700), (0, 100_000)])
def test_groups_hold_every_place_once_and_count_it_as_a_later_one(first: int, last: int) -> None:
    found = {end - 1: (end - begin) / 200_000 for begin, end in groups(first, last)}
    places = sorted(found)
    assert places[-1] == last - 1
    assert places[0] >= first
    assert math.fsum(found.values()) == pytest.approx((last - first) / 200_000, rel=1e-12)
    before = first - 1
    for place in places:  # those after the one before, up to this
        assert found[place] == pytest.approx((place - before) / 200_000, rel=1e-12)
        before = place
    near = min(128, last - first)
    assert places[-near:] == list(range(last - near, last))
    assert len(places) <= 512
    if last - first > 10_000:
        assert len(places) > 400
        assert max(b - a for a, b in itertools.pairwise(places)) < 0.04 * (last - first)


def test_no_places_are_no_group() -> None:
    assert groups(5, 5) == []


def shuffled(records: int, steps: int, each_epoch: bool, averaged: bool = True, **numbers: object) -> Places:
    return places_of(process(li.Shuffled(records, 1, each_epoch=each_epoch), steps, **numbers), averaged)  # type: ignore[arg-type]


@pytest.mark.parametrize(("records", "steps"), [(4, 3), (4, 8), (4, 10), (512, 600), (513, 600), (2000, 4100)])
def test_places_of_a_fixed_order(records: int, steps: int) -> None:
    given = shuffled(records, steps, each_epoch=False)
    assert not isinstance(given, NewOrders)
    assert math.fsum(given.wanted.values()) == pytest.approx(1.0, rel=1e-12)
    assert most_places(given) == min(records, 1024)
    assert len(given.wanted) <= most_places(given)
    if records <= 512:
        assert given.wanted == dict.fromkeys(range(records), 1 / records)
    else:
        assert {records - 1, steps % records - 1} <= set(given.wanted)
        assert len(given.wanted) < records
    assert work(given) == most_places(given) * (2 * steps / records + 500)


def test_places_of_a_cycle() -> None:
    alike = places_of(process(li.Cyclic(40, 10), 10), averaged=False)
    assert (alike.wanted, most_places(alike)) == ({1: 0.0}, 1)
    assert work(alike) == 2 * 10 / 4 + 500
    released = places_of(process(li.Cyclic(40, 10), 10, releases=(4,)), averaged=False)
    assert (released.wanted, most_places(released)) == (dict.fromkeys(range(4), 0.0), 4)
    assert work(released) == 4 * (2 * 10 / 4 + 2 * 500)
    short = places_of(process(li.Cyclic(40, 10), 3, releases=(1,)), averaged=False)
    assert (short.wanted, most_places(short)) == (dict.fromkeys(range(3), 0.0), 3)
    growing = places_of(process(li.Cyclic(40, 10), 10, lipschitz=1.5, diameter=1.0), averaged=False)
    assert work(growing) == 10  # every step, for one place


@pytest.mark.parametrize(
    ("steps", "releases", "piece"), [(8, (), 4), (9, (), 1), (11, (), 3), (8, (6,), 2), (9, (2,), 1), (3, (), 3)]
)
def test_places_of_new_orders(steps: int, releases: tuple[int, ...], piece: int) -> None:
    given = shuffled(4, steps, each_epoch=True, releases=releases)
    assert isinstance(given, NewOrders)
    expected = dict.fromkeys(range(piece), 0.25)
    if piece < 4:
        expected[-1] = 1 - piece / 4
    assert given.wanted == expected
    assert most_places(given) == piece
    stretches = len(releases) + 1
    assert work(given) == steps + 4 * piece + piece * (2 * steps / 4 + 500 * stretches)
    worst = shuffled(4, steps, each_epoch=True, averaged=False, releases=releases)
    assert worst.wanted == {piece - 1: 0.0}


@pytest.mark.parametrize(("lipschitz", "grouped"), [(1.0, True), (0.9, True), (1.0001, False)])
def test_new_orders_are_grouped_unless_distances_grow(lipschitz: float, grouped: bool) -> None:
    given = shuffled(600, 1200, each_epoch=True, lipschitz=lipschitz)
    assert most_places(given) == (512 if grouped else 600)
    assert (len(given.wanted) < 600) == grouped
    assert math.fsum(given.wanted.values()) == pytest.approx(1.0, rel=1e-12)
    just = shuffled(512, 1024, each_epoch=True, lipschitz=lipschitz)
    assert len(just.wanted) == 512
    assert most_places(just) == 512


def test_a_record_in_every_batch_has_one_place() -> None:
    given = places_of(process(li.FullBatch(40), 7, releases=(2,)), averaged=False)
    assert (given.every, most_places(given), work(given), given.wanted) == (1, 1, 7, {0: 0.0})
    assert [len(part) for part in given.stretches(0) if part is not None] == [2, 5]
