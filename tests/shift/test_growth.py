"""Two maps for one step: closed forms against the certified engine."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lastiterate as li
from lastiterate.shift.distance_bounds import Maps, _from, farthest, first_maps, last_maps, remaining_mu
from processes import process


def random_maps(source: np.random.Generator) -> tuple[Maps, float]:
    count = int(source.integers(1, 40))
    push = float(source.choice([0.0, 10 ** source.uniform(-2, 1)]))
    values = (
        push,
        float(source.choice([1.0, source.random(), 1 + 0.3 * source.random(), math.inf, 0.0])),
        float(source.choice([math.inf, push + 10 ** source.uniform(-2, 1)])),
        float(source.choice([1.0, source.random(), 0.5, 1.2])),
        float(10 ** source.uniform(-0.5, 0.5)),
    )
    maps = Maps(*(np.broadcast_to(np.float64(value), count) for value in values))
    return maps, float(source.choice([0.0, 10 ** source.uniform(-2, 1.5)]))


def test_never_below_the_best_certified_switch_and_nearly_always_equal() -> None:
    source = np.random.default_rng(1)
    equal, compared = 0, 0
    for _ in range(600):
        maps, distance = random_maps(source)
        if distance == 0 and not maps.sensitivity.any():
            assert remaining_mu(maps, distance) == 0
            continue
        switches = range(len(maps) + 1) if math.isfinite(maps.drift[0]) else [0]
        best = min(_from(maps, distance, switch) for switch in switches)
        found, compared = remaining_mu(maps, distance), compared + 1
        assert found >= best * (1 - 1e-9)
        equal += found <= best * 1.01 or math.isinf(best)
    assert equal >= 0.98 * compared > 400


def test_a_list_of_equal_steps_gives_what_equal_steps_give() -> None:
    source = np.random.default_rng(2)
    for _ in range(100):
        maps, distance = random_maps(source)
        listed = Maps(*(np.array(x) for x in (maps.sensitivity, maps.lipschitz, maps.drift, maps.retain, maps.noise)))
        one, other = remaining_mu(maps, distance), remaining_mu(listed, distance)
        assert one <= other * (1 + 1e-9)


def test_the_switch_beats_both_maps_alone() -> None:
    given = process(li.FullBatch(records=1), 100, sensitivity=0.01, lipschitz=1.05, diameter=10.0, drift=0.04)
    maps = last_maps(given, 100).without_record()
    assert remaining_mu(maps, 10.0) < min(_from(maps, 10.0, 0), _from(maps, 10.0, 100)) * 0.995


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.2])
def test_the_farthest_distance_is_the_recursion_of_the_smaller_map(factor: float) -> None:
    steps, push, drift = 60, 0.1, 0.5
    given = process(li.FullBatch(records=1), steps, sensitivity=push, lipschitz=factor, drift=drift)
    bound = farthest(first_maps(given, steps), math.inf)
    gap = 0.0
    for _ in range(steps):
        gap = min(factor * gap + push, gap + drift)
    assert gap <= bound
    listed = process(
        li.FullBatch(records=1),
        steps,
        sensitivity=np.full(steps, push),
        lipschitz=np.full(steps, factor),
        drift=np.full(steps, drift),
    )
    assert farthest(first_maps(listed, steps), math.inf) == pytest.approx(gap, rel=1e-9)
    assert farthest(first_maps(listed, steps), 0.7) <= 0.7 * (1 + 1e-9)
