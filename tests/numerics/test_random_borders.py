"""Random numbers from bits that chance would hardly give: all 0, all 1, and equal keys."""

from __future__ import annotations

import numpy as np
import pytest

from lastiterate.errors import InvalidInput
from lastiterate.numerics.randomness import Source, coins, permutation, subset
from raising import raises


def given_bits(monkeypatch: pytest.MonkeyPatch, *rows: list[int]) -> Source:
    """A source that gives these, row after row."""
    left = [np.array(row, np.uint64) for row in rows]
    monkeypatch.setattr(Source, "bits", lambda *_: left.pop(0))
    return Source()


def test_uniform_numbers_are_never_at_the_ends_whatever_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    source = given_bits(monkeypatch, [0, 2**64 - 1, 1 << 63])
    assert source.uniform(3).tolist() == [2.0**-53, 1 - 2.0**-53, 0.5 + 2.0**-53]


def test_orders_are_drawn_again_where_two_keys_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    for tied in ([3, 5, 5], [5, 5, 3], [5, 3, 5]):
        source = given_bits(monkeypatch, tied, [7, 9, 8])
        assert permutation(source, 3).tolist() == [0, 2, 1]


def test_subsets_are_drawn_again_where_it_is_not_clear_which(monkeypatch: pytest.MonkeyPatch) -> None:
    source = given_bits(monkeypatch, [5, 5, 9], [9, 8, 7])
    assert subset(source, 3, 1).tolist() == [2]
    source = given_bits(monkeypatch, [5, 5, 9])
    assert sorted(subset(source, 3, 2).tolist()) == [0, 1]


def test_coins_of_a_half_are_the_first_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    source = given_bits(monkeypatch, [0, 2**63 - 1, 2**63, 2**64 - 1])
    assert coins(source, 4, 0.5).tolist() == [True, True, False, False]
    assert coins(Source(), 3, 1.0).all()


def test_only_a_seeded_source_can_be_continued() -> None:
    assert Source().state() is None
    seeded = Source(3)
    state = seeded.state()
    first = seeded.bits(4).tolist()
    seeded.go_on(state)
    assert seeded.bits(4).tolist() == first


def test_a_source_shows_its_seed_alone_and_refuses_a_negative_one() -> None:
    assert repr(Source(3)) == "Source(seed=3)"
    assert Source(0).bits(1).tolist() == Source(0).bits(1).tolist()
    with raises("must_be", "seed", kind=InvalidInput):
        Source(-1)
