"""Runs whose numbers are extreme: an answer or a sentence, in seconds and without gigabytes."""

from __future__ import annotations

import math
import subprocess
import sys
import time

import numpy as np
import pytest

import lastiterate as li
from lastiterate.numerics.normal_gap import log_gap_above, shift_below, threshold_above
from lastiterate.numerics.roots import decreasing_crossing
from lastiterate.progress import _listener, tracked


def softmax_run(l2: float) -> li.Run:
    loss = li.losses.softmax(feature_norm=1.0, pull=0.5, classes=3)
    prox, domain = li.parts.ElasticNet(l1=0.1, l2=l2), li.parts.Box(side=1.0, dimension=3)
    return li.Run(loss, li.FixedSize(100, 10), 1e100, li.OnIterate(std=1.0), 10, domain, prox)


@pytest.mark.parametrize("l2", [0.0, 1.0, 1e-100])
def test_a_huge_step_size(l2: float) -> None:
    report = li.account(softmax_run(l2), 1e-5)
    assert report.epsilon > 1e190
    assert not any(math.isnan(epsilon) for epsilon in report.epsilons)


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-5, 0.5, 1 - 1e-16])
@pytest.mark.parametrize("threshold", [0.0, 5e-324, 1e-300, 1e-200, 1.0, 1e100, 1e308])
def test_shifts_below_extreme_thresholds(threshold: float, delta: float) -> None:
    shift = float(shift_below(np.log(delta), threshold))
    assert 0 < shift < math.inf
    if shift > 1e-290:
        assert float(log_gap_above(min(threshold, 1e100), shift)) <= np.log(delta) + 1e-12


@pytest.mark.parametrize("batches", [li.FullBatch(20), li.Cyclic(20, 5), li.Shuffled(20, 5), li.Shuffled(20, 5, False)])
def test_pushes_whose_squares_underflow_are_not_free(batches: li.Batches) -> None:
    """s/ν is 1e-190 or more, so that δ(0) is above 1e-191: no theorem may say that ε = 0 at δ = 1e-250."""
    loss = li.losses.logistic(feature_norm=1.0)
    run = li.Run(loss, batches, 1e-90, li.OnIterate(std=1e99), 8)
    assert 1e-190 <= run.process.step_mu < 1e-189
    report = li.account(run, 1e-250)
    assert all(epsilon > 0 for epsilon in report.epsilons)
    assert 0 < report.epsilon < 1e-100


def test_shifts_whose_squares_overflow() -> None:
    assert float(log_gap_above(1.0, 1e200)) == 0.0
    assert float(threshold_above(math.log(1e-5), 1e200)) == math.inf
    assert float(threshold_above(math.log(1e-5), 1e100)) > 1e199


def test_a_jump_from_infinity_is_found_quickly() -> None:
    asked = []

    def jumps(x: float) -> float:
        asked.append(x)
        return math.inf if x < math.pi else -1.0

    found = decreasing_crossing(jumps, -60.0, 60.0, 0.0, 0.1, 1e-4)
    assert math.pi <= found < math.pi + 1e-6
    assert len(asked) < 50


def test_noise_that_is_far_too_large_is_accounted_for_quickly() -> None:
    run = li.Run(
        li.losses.network(clip=1.0), li.FixedSize(100, 10), 1.0, li.OnIterate(std=6e4), 40, li.Ball(radius=0.5)
    )
    began = time.monotonic()
    assert 0 <= li.account(run, 1e-5).epsilon < 1e-3
    assert time.monotonic() - began < 8  # it took a minute, on lattices of a million cells


def test_many_equal_steps_are_stored_once() -> None:
    """One million here, so that it is quick: ten million took 2.2 GB, and take 0.26 GB now."""
    code = (
        "import resource, lastiterate as li; from lastiterate.theorems.shift_engine import SHIFT_ENGINE\n"
        "run = li.Run(li.losses.logistic(feature_norm=1.0, l2=0.01), li.Poisson(1000, 0.01), 0.1, "
        "li.OnMeanGradient(std=0.5), 1_000_000)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert SHIFT_ENGINE.apply(run.process).epsilon(1e-5) > 0\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout
    assert float(out) < 0.1


def test_work_inside_other_work_keeps_the_bar_alive() -> None:
    heard: list[tuple[str, int, int]] = []
    token = _listener.set(lambda *said: heard.append(said))
    try:
        for one in tracked([1, 2], "theorems"):
            for _ in tracked([3, 4], "steps"):
                assert one in (1, 2)
    finally:
        _listener.reset(token)
    assert {what for what, *_ in heard} == {"theorems"}
    assert [done for _, done, _ in heard].count(1) >= 3
