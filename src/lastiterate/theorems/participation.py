"""Hidden participation: on random batches it is not known in which steps a record took part; alone, and with prepayment.

Composition takes every iterate for released. Where only the last one is, the pushes of all steps that used the record are
spread over the steps that follow, and a set of steps where the record is easy to see is compared with all of its subsets.
Where losses are smooth and steps are small, noise hides what a record does in any step of a window, before it and after it:
so it hardly matters in which steps of the window the record takes part, and how often it does is hidden.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache, partial
from itertools import chain

import numpy as np

from lastiterate.curves.adjacency import POISSON
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.hidden_participation import hidden_participation, participation_or_nothing, rough_window
from lastiterate.curves.minimum import Ladder, rungs
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.curves.transformed import ChosenSlack
from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import kept
from lastiterate.numerics.payment_law import LARGEST, UNLIKELY, CostLaw, Steady, minorant_law, most_turns, payment_law
from lastiterate.numerics.rounding import up
from lastiterate.runs.per_step import extremes
from lastiterate.runs.process import Process
from lastiterate.theorems import features
from lastiterate.theorems.evidence import Evidence, NoFiniteBound
from lastiterate.theorems.features import NONEXPANSIVE, Assumption
from lastiterate.theorems.places import smooth_of
from lastiterate.theorems.prepayment import SMOOTH
from lastiterate.theorems.theorem import Theorem

_LONGEST, _MOST_TURNS = 4096, 800_000  # steps of a window, and steps times turns: limits of effort
_NARROW = 4.0  # times the noise: there blocks forget what windows would compose
_MOST_STEPS = 10**10  # of a composition
_SHORTEST = 8  # steps of a window: shorter ones are no better than composition
_RATIO = 3.0  # between windows: ε is flat around the best, which is often the longest

# Of what is prepaid, what a window may lose from its first step to its last: the longest window that is worth a try, and two
# that are shorter. Which of them is best depends on how many there are.
_LOSSES = (3.0, 0.6, 0.12)
_FEW_STEPS = 64  # are also composed one by one: a short window may be worse than its steps
_MOST_PREPAID_TURNS = 400.0  # in a window, on average: a limit of effort
_TYPICAL_SLACK = 1e-9  # for which lengths are chosen; each is valid for every other
_LEAST_MU = 0.2  # of a turn: below, composition is as good, to a hundredth
_LEAST_LOST = 1e-9  # in a step: less makes no difference
# Between the losses of a step that are told apart: those of one run with more noise share their laws.
_BETWEEN_LOSSES = 1.05


def _hidden(process: Process) -> Evidence:
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


def _prepaid(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), random batches, smooth losses.
    Bound: windows of k steps composed, each with δ(ε) = Σ_V p_V·θ_{ε(V)}(μ(V)), Σ_V p_V·e^{ε(V)} = e^ε, over the sets V of
        a window's steps that use the record. μ(V) = √Σ(a_t/ν)² for the least payments a_t of one shape, not falling, that
        leave nothing: z_t = z_{t−1} + s·[t ∈ V] − a_t, where only lo·z of a z < 0, which is prepaid, is kept;
        lo = c − ω − c·γ as in prepayment, except with a chosen probability δ0 for the whole run.
        For zero-out or add-or-remove, with Poisson batches: Σ_V p_V·N(μ(V), 1) against N(0, 1), in both orders.
    Assumes: no projection and no proximal map, a known smoothness, bounded gradients, one clip; identical steps; batches
        of fixed size for replace-one, Poisson batches with a fixed divisor otherwise.
    Attained by: quadratic losses where a record's effect is constant, in the limit of small steps.
    Reference: docs/proofs.md, "Hidden participation with prepayment".
    """
    ladder = Ladder(_lengths(process), partial(prepaid_windows_of, process))
    return Evidence(ladder, ladder)


# Windows whose noise comes after the turns of a record.


def longest_window(process: Process) -> int:
    """Return how many steps of a window are gone through at most."""
    return min(_LONGEST, max(1, math.isqrt(int(_MOST_TURNS / float(process.inclusion[0])))))


def windows_of(process: Process, length: int) -> Notion:
    """Return the guarantee of windows of at most this length. Trusted: everything in it is rounded up."""
    counts = [-(-(last - first) // length) for first, last in process.stretches]
    longest = max(-(-(last - first) // n) for (first, last), n in zip(process.stretches, counts, strict=True))
    return compose_counted([(participation_window(process, longest), sum(counts))])


def participation_window(process: Process, length: int) -> Profile:
    """Return what `length` steps from a common state reveal, of which the last iterate is released."""
    rate, mu, factor = _alike(process)
    law = _law(length, rate, factor)
    hidden = participation_or_nothing if process.batches.sampling is POISSON else hidden_participation
    return hidden(mu * np.sqrt(law.costs), law.weights, law.lost)


def rough_participation(process: Process, length: int) -> Profile:
    """Return an estimate of `participation_window`, which may lie below it: to steer searches."""
    return rough_window(length, *_alike(process))


def _alike(process: Process) -> tuple[float, float, float]:
    """Return the rate, μ of a turn and the Lipschitz constant of the worst step."""
    worst = process.worst_alike
    mu = up(float(worst.sampled[0]) / float(worst.noise[0]))
    return float(process.inclusion[0]), mu, min(worst.contraction, 1.0)


@lru_cache(maxsize=16)
def _law(length: int, rate: float, factor: float) -> CostLaw:
    return minorant_law(length, rate, factor)


def worth_hiding(process: Process) -> bool:
    """Whether hidden participation applies to the steps of this process, however many there are."""
    assumptions = (one for one in HIDDEN_PARTICIPATION.assumptions if one is not FEW_ENOUGH)
    return all(one.failure(process) is None for one in assumptions)


# Windows where pushes that are still to come are paid for as well.


def _lengths(process: Process) -> tuple[int, ...]:
    lost = 1 - kept_at_least(process, _TYPICAL_SLACK)
    longest = max(last - first for first, last in process.stretches)  # between two releases
    most = max(min(longest, int(_MOST_PREPAID_TURNS / float(process.inclusion[0]))), 1)
    alone = {1} if longest <= _FEW_STEPS else set()
    return tuple(sorted(alone | {min(max(int(one / lost), _SHORTEST), most) for one in _LOSSES}))


def prepaid_windows_of(process: Process, length: int) -> Notion:
    """Return the guarantee of windows of at most this length. Trusted: everything in it is rounded up."""
    return ChosenSlack(partial(_windows, process, length))


def _windows(process: Process, length: int, slack: float) -> Notion:
    """Return the composition of windows that prepay, but for one event of the whole run, of probability `slack`.

    A shorter window may be worse than a longer one, so that each counts with its own length.
    """
    counts = Counter(chain.from_iterable(_cut(last - first, length) for first, last in process.stretches))
    return compose_counted([(prepaid_window(process, steps, slack), count) for steps, count in sorted(counts.items())])


def _cut(steps: int, length: int) -> list[int]:
    """Return the lengths of as few parts as there have to be, about equally long."""
    count = -(-steps // length)
    return [steps // count + (part < steps % count) for part in range(count)]


def prepaid_window(process: Process, length: int, slack: float) -> Profile:
    """Return what `length` steps from a common state reveal, of which the last iterate is released."""
    given = Steady(length, float(process.inclusion[0]), kept_at_least(process, slack))
    if not given.payable:
        return Profile(epsilons=np.zeros(1), deltas=np.ones(1))
    law, noise = payment_law(given), float(process.noise[0])
    rough = float(smooth_of(process).rough[0]) / noise
    mus = up(float(process.sampled[0]) / noise) * np.sqrt(law.costs)
    extra = rough * math.sqrt(most_turns(length, given.rate))  # of rounding, paid where it comes
    paid, lost = up(mus + np.where(mus > 0, extra, 0.0)), law.lost + UNLIKELY
    # Another record in its place, or nothing.
    hidden = hidden_participation if process.adjacency.replaces else participation_or_nothing
    return hidden(paid, law.weights, lost)


def kept_at_least(process: Process, slack: float) -> float:
    """Return what a step keeps of what is prepaid, with probability 1 − slack, whoever is in the record's place.

    The record may be replaced by its neighbour or by any other, so there are as many pushes as records; by nothing: one.
    """
    pushes = process.batches.records if process.adjacency.replaces else 1
    smooth, steps = smooth_of(process), 2
    largest = up(LARGEST * float(process.sampled[0]) + float(smooth.rough[0]))
    noise = np.broadcast_to(process.noise[0], steps)
    share = slack * (steps / len(process)) * (1 - 1e-12)
    found = kept(smooth.like_the_first(steps), noise, largest, share, pushes)
    lost = max(up(1 - float(found.least[-1])), _LEAST_LOST)
    return (
        1 - _BETWEEN_LOSSES ** math.ceil(math.log(lost) / math.log(_BETWEEN_LOSSES)) * (1 + 1e-9) if lost < 1 else 0.0
    )


# What the theorems assume.


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


def _one_place(process: Process) -> Fact | None:
    batches, adjacency = process.batches, process.adjacency
    fits = batches.constant_size if adjacency.replaces else batches.sampling is POISSON
    return None if fits else fact("batches_not_for", adjacency=adjacency.name.lower(), batches=batches.kind)


def _alike_smooth(process: Process) -> Fact | None:
    if isinstance(process.smooth, Fact) or (process.constant and process.smooth.alike):
        return None
    return fact("steps_not_alike")


def _worth_hiding(process: Process) -> Fact | None:
    mu = float(process.sampled[0]) / float(process.noise[0])
    return None if mu >= _LEAST_MU else fact("sensitivity_too_small", times_noise=mu)


def _little_lost(process: Process) -> Fact | None:
    if any(one.failure(process) is not None for one in (_ONE_PLACE, SMOOTH, ALIKE_SMOOTH)):
        return None
    least = kept_at_least(process, _TYPICAL_SLACK)
    if _SHORTEST * (1 - least) <= _LOSSES[0] and Steady(_SHORTEST, 0.5, least).payable:
        return None
    return fact("difference_lost", kept=max(least, 0.0))


FEW_ENOUGH = Assumption("short_enough", _few_enough)
_ONE_PLACE = Assumption("batches_fit_adjacency", _one_place)
ALIKE_SMOOTH = Assumption("alike_in_size_and_clip", _alike_smooth)
_COVERED = {features.RANDOM_BATCHES, features.RANDOM_SIZES} | features.ANY_CHECKPOINTS | features.ANY_NEIGHBOURS

HIDDEN_PARTICIPATION = Theorem(
    "hidden-participation",
    "lastiterate, a record's participation in random batches is hidden",
    "random batches, convex: steps with the record are compared with steps without it",
    _COVERED | {features.CHANGING_STEPS} | features.ANY_MAP,
    (
        Assumption("no_poisson_if_replaced", _replaced),
        Assumption("no_small_domain", _wide),
        NONEXPANSIVE,
        FEW_ENOUGH,
    ),
    _hidden,
    rung=windows_of,
)
PREPAID_PARTICIPATION = Theorem(
    "hidden-participation/prepaid",
    "lastiterate, a record's participation in random batches is hidden, also by noise before it",
    "random batches, smooth losses, small steps: how often a record takes part is hidden",
    _COVERED | {features.WEIGHT_DECAY},
    (
        _ONE_PLACE,
        SMOOTH,
        ALIKE_SMOOTH,
        NONEXPANSIVE,
        FEW_ENOUGH,
        Assumption("noticeable_sensitivity", _worth_hiding),
        Assumption("small_steps", _little_lost),
    ),
    _prepaid,
    rung=prepaid_windows_of,
)
