"""Hidden participation: on random batches it is not known in which steps a record took part, and this hides a part of it.

Composition takes every iterate for released. Where only the last one is, the pushes of all steps that used the record are
spread over the steps that follow, and a set of steps where the record is easy to see is compared with all of its subsets.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from lastiterate.curves.adjacency import POISSON
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.hidden_participation import hidden_participation, participation_or_nothing
from lastiterate.curves.ladder import Ladder, rungs
from lastiterate.curves.notion import Notion
from lastiterate.curves.participation_estimate import rough_window
from lastiterate.curves.profile import Profile
from lastiterate.facts import Fact, fact
from lastiterate.numerics.minorant_law import CostLaw, minorant_law
from lastiterate.numerics.rounding import up
from lastiterate.runs.per_step import extremes
from lastiterate.runs.process import Process
from lastiterate.theorems.assumptions import NONEXPANSIVE
from lastiterate.theorems.evidence import Evidence, NoFiniteBound
from lastiterate.theorems.features import (
    ANY_CHECKPOINTS,
    ANY_MAP,
    ANY_NEIGHBOURS,
    CHANGING_STEPS,
    RANDOM_BATCHES,
    RANDOM_SIZES,
    Assumption,
)
from lastiterate.theorems.theorem import Theorem

_LONGEST, _MOST_TURNS = 4096, 800_000  # steps of a window, and steps times turns: limits of effort
_NARROW = 4.0  # times the noise: there blocks forget what windows would compose
_MOST_STEPS = 10**10  # of a composition
_SHORTEST = 8  # shorter ones are no better than composition
_RATIO = 3.0  # between windows: ε is flat around the best, which is often the longest


def _bound(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), random batches.
    Bound: windows of k steps composed, each with δ(ε) = Σ_V p_V·θ_{ε(V)}(μ(V)), ε(V) = min(μ(V), q)·(q − min(μ(V), q)/2).
        V is the set of a window's steps that use the record, p_V its probability, μ(V) the engine's with the record at every
        step of V and nothing left at the end; q such that Σ_V p_V·e^{ε(V)} = e^ε. Steps that differ count as the worst.
        Poisson batches with or without the record: the profile of Σ_V p_V·N(μ(V), 1) against N(0, 1), in both orders.
    Assumes: batches of fixed size, or averaged over their own; Poisson batches where the neighbour's record contributes
        nothing; no step moves iterates apart.
    Attained by: one step on a random batch.
    Reference: hidden participation (docs/proofs.md).
    """
    if not math.isfinite(extremes(process.sampled)[1]):
        raise NoFiniteBound("gradient_not_bounded")
    most = min(max(last - first for first, last in process.stretches), longest_window(process))
    longer = rungs(most, _RATIO, _SHORTEST)
    ladder = Ladder(longer if longer[0] == 1 else (1, *longer), partial(windows_of, process))
    return Evidence(ladder, ladder)


def longest_window(process: Process) -> int:
    """So many steps are gone through at most."""
    return min(_LONGEST, max(1, math.isqrt(int(_MOST_TURNS / float(process.inclusion[0])))))


def windows_of(process: Process, length: int) -> Notion:
    """The guarantee of windows of at most this length. Trusted: everything in it is rounded up."""
    counts = [-(-(last - first) // length) for first, last in process.stretches]
    longest = max(-(-(last - first) // n) for (first, last), n in zip(process.stretches, counts, strict=True))
    return compose_counted([(participation_window(process, longest), sum(counts))])


def participation_window(process: Process, length: int) -> Profile:
    """So many steps from a common state, of which the last iterate is released."""
    rate, mu, factor = _alike(process)
    law = _law(length, rate, factor)
    hidden = participation_or_nothing if process.batches.sampling is POISSON else hidden_participation
    return hidden(mu * np.sqrt(law.costs), law.weights, law.lost)


def rough_participation(process: Process, length: int) -> Profile:
    """About the same, or better, to steer searches."""
    return rough_window(length, *_alike(process))


def _alike(process: Process) -> tuple[float, float, float]:
    """(rate, mu of a turn, factor) of the worst step."""
    worst = process.worst_alike
    mu = up(float(worst.sampled[0]) / float(worst.noise[0]))
    return float(process.inclusion[0]), mu, min(worst.contraction, 1.0)


@lru_cache(maxsize=16)
def _law(length: int, rate: float, factor: float) -> CostLaw:
    return minorant_law(length, rate, factor)


def worth_hiding(process: Process) -> bool:
    """Whether the theorem has something to say of the steps of this process, however many there are."""
    assumptions = (one for one in HIDDEN_PARTICIPATION.assumptions if one is not FEW_ENOUGH)
    return all(one.failure(process) is None for one in assumptions)


def _replaced(process: Process) -> Fact | None:
    if process.batches.sampling is not POISSON or not process.adjacency.replaces:
        return None
    return fact("poisson_replaced")


def _wide(process: Process) -> Fact | None:
    width = process.diameter / extremes(process.noise)[0]
    return None if width > _NARROW else fact("domain_too_small", times_noise=width)


def _few_enough(process: Process) -> Fact | None:
    """Errors of a composition are bounded for as many windows, and not for more."""
    steps = len(process)
    return None if steps <= _MOST_STEPS else fact("too_many_steps", at_most=_MOST_STEPS, steps=steps)


FEW_ENOUGH = Assumption("short_enough", _few_enough)

HIDDEN_PARTICIPATION = Theorem(
    "hidden-participation",
    "lastiterate, a record's participation in random batches is hidden",
    "random batches, convex: steps with the record are compared with steps without it",
    {RANDOM_BATCHES, RANDOM_SIZES, CHANGING_STEPS} | ANY_CHECKPOINTS | ANY_MAP | ANY_NEIGHBOURS,
    (
        Assumption("no_poisson_if_replaced", _replaced),
        Assumption("no_small_domain", _wide),
        NONEXPANSIVE,
        FEW_ENOUGH,
    ),
    _bound,
    rung=windows_of,
)
