"""Hidden participation: on random batches it is not known in which steps a record took part, and this hides a part of it.

Composition takes every iterate for released. Where only the last one is, the pushes of all steps that used the record are
spread over the steps that follow, and a set of steps where the record is easy to see is compared with all of its subsets.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from lastiterate.algorithms.process import Process
from lastiterate.numerics.minorant_law import CostLaw, minorant_law
from lastiterate.numerics.rounding import up
from lastiterate.privacy.compose import compose_counted
from lastiterate.privacy.hidden_participation import hidden_participation
from lastiterate.privacy.ladder import Ladder, rungs
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.profile import Profile
from lastiterate.privacy.slack import with_slack
from lastiterate.theorems.assumptions import NONEXPANSIVE, on_usual_batches
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.sampled import BOUNDED_RECORDS, RANDOM
from lastiterate.theorems.theorem import Assumption, Theorem

LONGEST = 4096  # steps of a window: a limit of effort
_SHORTEST = 8  # shorter ones are no better than composition
_RATIO = 3.0  # between windows: ε is flat around the best, which is often the longest
_LARGEST_MU = 8.0  # of one turn: ε is 65 there, at δ = 1e-5


def _bound(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), random batches.
    Bound: windows of k steps composed, each with δ(ε) = Σ_V p_V·θ_{ε(V)}(μ(V)), ε(V) = min(μ(V), q)·(q − min(μ(V), q)/2).
        V is the set of a window's steps that use the record, p_V its probability, μ(V) the engine's with a push at every
        step of V and nothing left at the end; q such that Σ_V p_V·e^{ε(V)} = e^ε. Steps that differ count as the worst.
    Assumes: no step moves iterates apart; for Poisson a bound on each gradient.
    Attained by: one step on a random batch.
    Reference: hidden participation (docs/proofs.md).
    """
    most = min(max(last - first for first, last in process.stretches), LONGEST)
    ladder = Ladder(rungs(most, _RATIO, _SHORTEST), partial(windows_of, process))
    return Evidence(ladder, ladder)


def windows_of(whole: Process, length: int) -> Notion:
    """The guarantee of windows of at most this length. Trusted: everything in it is rounded up."""
    counts = [-(-(last - first) // length) for first, last in whole.stretches]
    longest = max(-(-(last - first) // n) for (first, last), n in zip(whole.stretches, counts, strict=True))
    window = participation_window(whole.typical, longest)
    return with_slack(compose_counted([(window, sum(counts))]), whole.slack)


def participation_window(process: Process, length: int) -> Profile:
    """So many steps from a common state, of which the last iterate is released."""
    worst = process.worst_alike
    mu = up(float(worst.sampled[0]) / float(worst.noise[0]))
    law = _law(length, float(process.inclusion[0]), min(worst.contraction, 1.0))
    return hidden_participation(mu * np.sqrt(law.costs), law.weights, law.lost)


@lru_cache(maxsize=16)
def _law(length: int, rate: float, factor: float) -> CostLaw:
    return minorant_law(length, rate, factor)


def _some_protection(process: Process) -> str | None:
    if BOUNDED_RECORDS.failure(process) is not None:
        return None
    worst = process.typical.worst_alike
    mu = float(worst.sampled[0]) / float(worst.noise[0])
    if mu <= _LARGEST_MU:
        return None
    return f"it needs a mu of {_LARGEST_MU:g} at most for each turn, but there is {mu:.3g}: hardly any protection"


HIDDEN_PARTICIPATION = Theorem(
    "hidden-participation",
    "lastiterate, a record's participation in random batches is hidden",
    "random batches, convex: steps with the record are compared with steps without it",
    (
        RANDOM,
        BOUNDED_RECORDS,
        on_usual_batches(NONEXPANSIVE),
        Assumption("some protection", _some_protection),
    ),
    _bound,
    rung=windows_of,
)
