"""What the library's own path and kernel prove by prepayment of the facts that `prepaid_by_hand` takes."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.tightness.prepaid_by_hand import GUESSES, Certificate, Facts, plain
from lastiterate.kernel.prepaid import Smooth, kept, prepaid_mu
from lastiterate.kernel.steps import Refused, Steps
from lastiterate.shift.prepay import best_path, path_along

_UNUSED = 1e-12  # a probability, where pushes do not turn


def by_library(facts: Facts) -> Certificate:
    """The least over guesses of the largest payment that the kernel does not refuse."""
    guesses = float(facts.pushes.max()) * 2.0 ** np.arange(2 - GUESSES // 2, 2 + GUESSES // 2)
    found = [mu for largest in guesses.tolist() if (mu := _mu(facts, largest)) is not None]
    return Certificate(min(found), facts.failure if facts.turning > 0 else 0.0) if found else plain(facts)


def _mu(facts: Facts, largest: float) -> float | None:
    steps = Steps(facts.pushes, facts.noise, facts.highest)
    rough = np.zeros(len(steps))
    smooth = Smooth(facts.centre, facts.spread, facts.drift, facts.decay, rough, facts.turning, 1, 0.0)
    try:
        given = kept(smooth, facts.noise, largest, facts.failure if facts.turning > 0 else _UNUSED, 1)
        mu = prepaid_mu(steps, smooth, given, path_along(steps, given, best_path(steps, given)), largest)
    except Refused:
        return None
    return mu if math.isfinite(mu) else None
