"""Every sampler has the law that is accounted for: refuted at level 1e-9, with the power that each test states."""

from __future__ import annotations

import itertools
from collections import Counter
from math import comb, factorial

import numpy as np
import pytest

import lastiterate as li
from chances import LEVEL, POWER, as_likely, of_these_cells, of_this_spread, power_of_cells, power_of_counts
from lastiterate.numerics.randomness import Source
from lastiterate.training.steps import Sampler

POISSON = (li.Poisson, li.parts.PoissonMean)


def included(batches: object, steps: int) -> np.ndarray:
    """Whether each step (the rows) has each record."""
    sampler = Sampler(batches, Source())  # type: ignore[arg-type]
    found = np.zeros((steps, batches.records), bool)  # type: ignore[attr-defined]
    for step in range(steps):
        found[step, sampler.batch(step)] = True
    return found


@pytest.mark.parametrize("kind", POISSON)
@pytest.mark.parametrize(("rate", "records", "steps"), [(0.1, 1000, 400), (0.5, 200, 250), (0.02, 5000, 400)])
def test_poisson_batches_are_drawn_at_their_rate(kind: type[li.Poisson], rate: float, records: int, steps: int) -> None:
    """A rate that is 0.95 of the stated one is refused with a power above 0.999."""
    trials = records * steps
    assert power_of_counts(trials, rate, 0.95 * rate) > POWER
    assert power_of_counts(trials, rate, 1.05 * rate) > POWER
    assert as_likely(int(included(kind(records=records, rate=rate), steps).sum()), trials, rate)


@pytest.mark.parametrize("kind", POISSON)
def test_poisson_records_join_independently(kind: type[li.Poisson]) -> None:
    """Of one another, and of what they did the step before; every one of them, and sizes that vary as they should."""
    rate, records, steps = 0.2, 500, 1000
    found = included(kind(records=records, rate=rate), steps)
    pairs = records * steps // 2
    assert power_of_counts(pairs, rate**2, 1.1 * rate**2) > POWER
    neighbours = found[:, ::2] & found[:, 1::2]
    opposite = found[:, : records // 2] & found[:, records // 2 :]
    following = found[::2] & found[1::2]
    for both in (neighbours, opposite, following):
        assert as_likely(int(both.sum()), pairs, rate**2)
    # Sums of many coins are as good as normal: their squares add up to a χ².
    for sums, count in ((found.sum(axis=0), steps), (found.sum(axis=1), records)):
        squares = np.square(sums - rate * count) / (rate * (1 - rate) * count)
        assert of_this_spread(float(squares.sum()), len(sums))


def test_the_first_and_the_last_record_join_as_often_as_the_others() -> None:
    """Each of a few records on its own: 0.8 of the rate is refused with a power above 0.999."""
    rate, steps = 0.3, 6000
    assert power_of_counts(steps, rate, 0.8 * rate) > POWER
    for count in included(li.Poisson(records=5, rate=rate), steps).sum(axis=0).tolist():
        assert as_likely(count, steps, rate)


@pytest.mark.parametrize(("records", "size"), [(6, 3), (5, 1), (5, 4)])
def test_fixed_size_batches_are_uniform_over_all_subsets(records: int, size: int) -> None:
    """All have that size. Doing without one record in every fifth draw is refused with a power above 0.999."""
    draws = 16_000
    sampler = Sampler(li.FixedSize(records=records, batch_size=size), Source())
    drawn = [tuple(sorted(sampler.batch(step).tolist())) for step in range(draws)]  # type: ignore[union-attr]
    subsets = list(itertools.combinations(range(records), size))
    assert set(drawn) <= set(subsets)
    counts = Counter(drawn)
    even = np.full(len(subsets), 1 / len(subsets))
    without = np.array([0 not in subset for subset in subsets])
    assert power_of_cells(draws, even, 0.8 * even + 0.2 * without / without.sum()) > POWER
    assert of_these_cells(np.array([counts[subset] for subset in subsets]), even)


class Known(Source):
    """Numbers that are known beforehand."""

    def bits(self, shape: object = ()) -> np.ndarray:
        return np.random.default_rng(31).permutation(np.arange(shape, dtype=np.uint64) << np.uint64(40))  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(("records", "size"), [(5000, 1700), (5000, 2), (5000, 1), (40, 40)])
def test_fixed_size_batches_are_the_records_with_the_smallest_numbers(records: int, size: int) -> None:
    """Of large batches as well, of which not every subset can be counted."""
    found = Sampler(li.FixedSize(records=records, batch_size=size), Known()).batch(0)
    smallest = np.argsort(Known().bits(records))[:size]
    assert sorted(found.tolist()) == sorted(smallest.tolist())  # type: ignore[union-attr]


def test_fixed_size_batches_are_independent_from_step_to_step() -> None:
    """A batch that is the one before in one step of ten is refused with a power above 0.999."""
    draws, subsets = 20_000, comb(4, 2)
    sampler = Sampler(li.FixedSize(records=4, batch_size=2), Source())
    names = {frozenset(pair): at for at, pair in enumerate(itertools.combinations(range(4), 2))}
    drawn = np.array([names[frozenset(sampler.batch(step).tolist())] for step in range(draws)])  # type: ignore[union-attr]
    even = np.full(subsets**2, 1 / subsets**2)
    same = np.eye(subsets).ravel() / subsets
    assert power_of_cells(draws // 2, even, 0.9 * even + 0.1 * same) > POWER
    assert of_these_cells(np.bincount(drawn[::2] * subsets + drawn[1::2], minlength=subsets**2), even)


def orders(batches: li.Shuffled, epochs: int, fresh: bool) -> list[tuple[int, ...]]:
    """The order of each epoch, by one sampler or by a fresh one for each."""
    found, sampler = [], Sampler(batches, Source())
    for epoch in range(epochs):
        sampler = Sampler(batches, Source()) if fresh else sampler
        first = 0 if fresh else epoch * batches.per_epoch
        parts = [sampler.batch(first + place) for place in range(batches.per_epoch)]
        found.append(tuple(np.concatenate(parts).tolist()))  # type: ignore[arg-type]
    return found


def uniform_over_orders(drawn: list[tuple[int, ...]], records: int) -> bool:
    counts = Counter(drawn)
    every = list(itertools.permutations(range(records)))
    assert set(counts) <= set(every)
    return of_these_cells(np.array([counts[one] for one in every]), np.full(len(every), 1 / len(every)))


@pytest.mark.parametrize(("each_epoch", "fresh"), [(True, False), (True, True), (False, True)])
def test_shuffled_batches_are_uniform_over_all_orders(each_epoch: bool, fresh: bool) -> None:
    """An order that is left as it was in one epoch of thirty is refused with a power above 0.999."""
    epochs, count = 8000, factorial(4)
    even = np.full(count, 1 / count)
    assert power_of_cells(epochs, even, 29 / 30 * even + 1 / 30 * (np.arange(count) == 0)) > POWER
    drawn = orders(li.Shuffled(records=4, batch_size=1, each_epoch=each_epoch), epochs, fresh)
    assert uniform_over_orders(drawn, 4)


def test_each_epoch_has_an_order_that_does_not_depend_on_the_one_before() -> None:
    """By the record that comes first and the one that came last: all pairs are equally likely."""
    drawn = orders(li.Shuffled(records=4, batch_size=2), 8000, fresh=False)
    pairs = np.array([4 * before[-1] + after[0] for before, after in zip(drawn[::2], drawn[1::2], strict=True)])
    even = np.full(16, 1 / 16)
    same = np.eye(4).ravel() / 4
    assert power_of_cells(len(pairs), even, 0.8 * even + 0.2 * same) > POWER
    assert of_these_cells(np.bincount(pairs, minlength=16), even)
    assert uniform_over_orders(drawn, 4)


def test_shuffled_once_keeps_its_order_and_each_epoch_is_a_partition() -> None:
    """Of a hundred records, so that two orders agree by chance less often than any level."""
    assert 1 / float(factorial(100)) < LEVEL
    once = orders(li.Shuffled(records=100, batch_size=20, each_epoch=False), 5, fresh=False)
    assert len(set(once)) == 1
    anew = orders(li.Shuffled(records=100, batch_size=20), 5, fresh=False)
    assert len(set(anew)) == 5
    assert all(sorted(order) == list(range(100)) for order in once + anew)


@pytest.mark.parametrize("start", [0, 3])
def test_a_sampler_that_goes_on_keeps_the_order_it_was_given(start: int) -> None:
    batches = li.Shuffled(records=8, batch_size=2, each_epoch=start == 0)
    order = np.array([7, 6, 5, 4, 3, 2, 1, 0])
    sampler = Sampler(batches, Source(), order)
    assert sampler.batch(start + 1 if start else 1).tolist() == ([7, 6] if start else [5, 4])  # type: ignore[union-attr]
    assert sampler.order is order


def test_cyclic_batches_come_in_order_and_full_batches_have_everything() -> None:
    records = np.arange(12)
    cyclic = Sampler(li.Cyclic(records=12, batch_size=4), Source())
    assert [records[cyclic.batch(step)].tolist() for step in range(5)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]
    full = Sampler(li.FullBatch(records=12), Source())
    assert all(records[full.batch(step)].tolist() == records.tolist() for step in range(3))
