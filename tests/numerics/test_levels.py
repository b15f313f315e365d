"""Many numbers as a few: rounded up, nothing lost."""

from __future__ import annotations

import numpy as np
import pytest

from lastiterate.numerics.levels import few_weighted


@pytest.mark.parametrize("seed", range(20))
def test_few_weighted_values_dominate_the_many(seed: int) -> None:
    """At every threshold at least as much weight lies beyond it; all of the weight is there, and what is 0 stays 0."""
    source = np.random.default_rng(seed)
    values = np.append(10 ** source.uniform(-6, 1, 2000), np.zeros(5))
    weights = 10 ** source.uniform(-20, 0, len(values))
    few, sums = few_weighted(values, weights, 100)
    assert len(few) <= 100
    assert (np.diff(few) > 0).all()
    assert few[0] == 0
    assert sums[0] == pytest.approx(weights[-5:].sum(), rel=1e-11)
    assert few[-1] == values.max()
    assert sums.sum() == pytest.approx(weights.sum(), rel=1e-11)
    for threshold in np.append(few, values[:50]):
        assert sums[few >= threshold].sum() >= weights[values >= threshold].sum()


def test_few_values_are_left_alone() -> None:
    values, weights = np.array([3.0, 1.0]), np.array([0.5, 0.5])
    found = few_weighted(values, weights, 2)
    assert found[0] is values
    assert found[1] is weights


def test_values_that_are_all_zero_are_one() -> None:
    few, sums = few_weighted(np.zeros(10), np.full(10, 0.1), 5)
    assert few.tolist() == [0.0]
    assert sums[0] == pytest.approx(1.0, rel=1e-11)
