"""Prepayment with momentum: noise before a record's step hides it, too, where the push turns slowly.

Proof: docs/proofs.md, "Linear optimisers".
"""

from __future__ import annotations

import math

import numpy as np

from lastiterate.curves.averaged import AveragedGaussianDP
from lastiterate.curves.chosen_slack import ChosenSlack
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import longest
from lastiterate.kernel.steps import Refused
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import Turns
from lastiterate.runs.optimizers import SGD
from lastiterate.runs.process import Process
from lastiterate.shift.momentum import Asked, Hidden, Turning, best_path
from lastiterate.shift.overlap import TurnsOfRecord
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import ANY_NEIGHBOURS, FIXED_ORDER, IN_ORDER, MOMENTUM, ONE_ORDER, Assumption
from lastiterate.theorems.linear_optimiser import LINEAR, mu_of_square
from lastiterate.theorems.places import place_sizes
from lastiterate.theorems.prepayment import SEVERAL, SMOOTH, smooth_of
from lastiterate.theorems.theorem import Theorem

_MOST_WORK = 400_000  # steps of single records: some seconds
_PREPAID = (1, 2, 4)  # so many turns, the last, and all, or none: what is prepaid for longer has turned more
_PAYMENTS = (0.5, 1.0, 2.0, 8.0)  # at most, in units of the push


def _turning(process: Process, slack: float, largest: float) -> Turning:
    """How far the push turns in a step, but for this probability, if no payment is larger than `largest` pushes."""
    optimizer, smooth, curvature = process.update.optimizer, smooth_of(process), process.update.curvature
    if not isinstance(optimizer, SGD) or isinstance(curvature, Fact):
        raise Refused(str(curvature))
    kept, noise = optimizer.momentum, float(process.noise[0])
    way = (float(smooth.movement[0]) + largest * float(process.sensitivity[0])) / (1 - kept)
    by_chance = noise * longest(smooth.rank, slack / len(process)) / math.sqrt((1 - kept) * (1 + kept))
    return Turning(optimizer.linear, *curvature, up(smooth.turning * (way + by_chance)))


def _square(process: Process, slack: float, place: int) -> float:
    """Σ payments² of a record with its turns at this place, the least of those tried; valid but for this probability.

    Some turns, the last, are prepaid, or none; what is paid for the others, which come before, is added. The larger a
    payment may be, the more the push may turn: a larger limit is tried where a smaller one excludes something.
    """
    every, steps = process.batches.per_epoch, len(process)
    if place >= steps:
        return 0.0
    hidden = _turning(process, slack, _PAYMENTS[0])
    causal = Hidden(hidden.linear, hidden.middle, hidden.half)
    record = TurnsOfRecord(causal, causal, 0, steps, every, (steps - 1 - place) % every)
    turns, least = np.arange(place, steps, every), up(record.square())
    prepaid = {min(one, len(turns)) for one in _PREPAID} | {len(turns)}
    for largest in _PAYMENTS:
        hidden = _turning(process, slack, largest)
        for last in sorted(prepaid):
            pushes, already = np.zeros(steps), record.payments(last)
            pushes[turns[len(turns) - last :]] = 1.0
            path = best_path(hidden, Asked(pushes, hidden.linear.taps, np.arange(steps, dtype=np.intp), already))
            payments = hidden.payments(path, pushes) + already
            if float(payments[:-1].max(initial=0.0)) <= largest:
                prepaid.discard(last)
                least = min(least, up(float(np.square(payments).sum())))
    return least


def _mus(process: Process, slack: float) -> list[float]:
    """Of a record at each place; what rounding adds to a push is paid where it comes, on top."""
    every, smooth = process.batches.per_epoch, smooth_of(process)
    rough = float(smooth.rough[0]) / float(process.noise[0]) * math.sqrt(-(-len(process) // every))
    squares = [_square(process, slack, place) for place in range(every)]
    return [mu_of_square(process, square) + up(rough) if square else 0.0 for square in squares]


def _bound(process: Process) -> Evidence:
    """Update: v ← β·v − η∇f(X) + N(0, ν²), X ← X + v, batches in passes of one order, smooth losses.
    Bound: μ² = (s/ν)²·Σa_t², θ_0 = θ_T = 0, a_t = |θ_t − (1+β−m)θ_{t−1} + βθ_{t−2} − [its step]| + r·|θ_{t−1}|
        + γ·(|(1+β−m)θ_{t−1} − βθ_{t−2}| + β·|θ_{t−2}|), for the last uses of a record; what linear-optimiser has for the
        others is added. δ(ε) ≤ θ_ε(μ) + δ0, of the worst place, or on average if it is secret.
        γ = ℓ·((ηG + a_max)/(1−β) + νκ/√(1−β²)) bounds the change of a record's effect in one step, but for a
        probability δ0.
    Assumes: momentum, no decay, no projection and no proximal map, a known smoothness, bounded gradients, identical steps;
        only the last iterate is released.
    Attained by: quadratic losses where a record's effect is constant, three epochs of four batches, to 5 %.
    Reference: docs/proofs.md, "Linear optimisers".
    """

    def but_for(slack: float) -> Notion:
        mus = _mus(process, slack)
        if process.batches.turns is Turns.FIXED_ORDER:
            return GaussianDP(max(mus))
        sizes, total = place_sizes(process, len(mus))
        return AveragedGaussianDP(mus=mus, weights=sizes / total)

    return Evidence(ChosenSlack(but_for))


def _short(process: Process) -> Fact | None:
    needed = len(process) * process.batches.per_epoch
    if needed <= _MOST_WORK:
        return None
    return fact("too_much_work", times="batches_per_epoch", at_most=_MOST_WORK, needed=needed)


PREPAID_MOMENTUM = Theorem(
    "linear-optimiser/prepaid",
    "lastiterate, noise before a record's step, with momentum",
    "momentum, smooth losses: worst record, or the average over the record's place",
    {FIXED_ORDER, ONE_ORDER, MOMENTUM} | IN_ORDER | ANY_NEIGHBOURS,
    (
        SEVERAL,
        LINEAR,
        SMOOTH,
        Assumption("short_enough", _short),
    ),
    _bound,
    functions=1,
)
