"""Steps that change on a bounded set: the last parts by themselves lie above exact chains, below the worst step for all."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.tightness.against_reflection import EPSILONS, ROUNDING, scheduled_case

import lastiterate as li
from lastiterate.theorems.bounded_steps import part_ends
from lastiterate.theorems.reflection import REFLECTION, reflected_profile
from processes import process

FULL = li.FullBatch(records=10)


@pytest.mark.parametrize("seed", [2, 3, 6, 8, 9])
def test_it_lies_above_exact_chains(seed: int) -> None:
    """`make chain` compares more."""
    given, chain = scheduled_case(np.random.default_rng(seed))
    exact, error = chain.delta_with_error(EPSILONS)
    found = np.asarray(REFLECTION.notion(given).delta(EPSILONS))
    assert (found >= exact - error - ROUNDING).all()
    if given.batches == FULL:
        assert (found <= np.asarray(reflected_profile(given.worst_alike).delta(EPSILONS)) * (1 + 1e-9)).all()


def test_small_last_steps_hide_what_large_ones_told() -> None:
    """As good as if all steps were like the last, but for a hundredth."""
    pushes = np.where(np.arange(400) < 200, 0.5, 0.15)
    changing = process(FULL, 400, sensitivity=pushes, diameter=2.0)
    by_the_last = process(FULL, 400, sensitivity=0.15, diameter=2.0)
    last, found, worst = (REFLECTION.notion(one).epsilon(1e-6) for one in (by_the_last, changing, changing.worst_alike))
    assert last * (1 - 1e-3) <= found <= 1.02 * last < 0.4 * worst


def test_large_last_steps_are_not_hidden_by_small_ones() -> None:
    pushes = np.where(np.arange(40) < 35, 0.05, 0.5)
    changing = process(FULL, 40, sensitivity=pushes, diameter=2.0)
    alone = process(FULL, 5, sensitivity=0.5, diameter=2.0)
    exact = 0.5  # mu of the last step alone
    assert REFLECTION.notion(changing).epsilon(1e-6) >= li.notions.GaussianDP(exact).epsilon(1e-6)
    assert REFLECTION.notion(changing).epsilon(1e-6) >= 0.9 * REFLECTION.notion(alone).epsilon(1e-6)


def test_parts_end_where_steps_change_or_grow_longer() -> None:
    few = process(FULL, 100, sensitivity=np.repeat([1.0, 0.5, 0.2], [50, 30, 20]), diameter=2.0)
    assert part_ends(few) == [0, 50, 80, 100]
    all_differ = process(FULL, 100, sensitivity=np.linspace(1.0, 0.1, 100), diameter=2.0)
    assert part_ends(all_differ) == [72, 88, 96, 100]
    epochs = process(li.Shuffled(records=5, batch_size=1), 40, sensitivity=np.linspace(1.0, 0.1, 40), diameter=2.0)
    assert all(end % 5 == 0 for end in part_ends(epochs))
