"""Block mixing: a bounded domain forgets. The profile recursion over blocks of steps, for every kind of batches.

A block from one common state reveals what its steps reveal; from two states that differ it still hides most of the
difference. Blocks follow each other without end, and the profile stays. Proof: docs/proofs.md.

With weight decay a ball stands for the domain, which no iterate leaves, nearly always: X_t = (1 − λ)X_{t−1} + (a clipped
mean gradient) + noise is a fixed point, plus gradients of norm at most drift/(2λ) in all, plus a Gaussian vector with
variance at most ν²/(1 − (1 − λ)²). Asoodeh and Diaz 2023, Theorem 3, cuts every step's noise at κν, and their ball has
radius (ηC + κν)/λ; to cut the sum is enough: its ball is smaller by about √λ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter

import numpy as np
from scipy.special import gammaincc, gammainccinv

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.minimum import Ladder, rungs
from lastiterate.curves.notion import Notion
from lastiterate.curves.transformed import NearlyAlways
from lastiterate.errors import InvalidInput
from lastiterate.facts import Fact, fact
from lastiterate.mixing.recursion import mixed_profile
from lastiterate.mixing.window import Ends
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import Turns
from lastiterate.runs.per_step import extremes
from lastiterate.runs.process import Process
from lastiterate.shift.distance_bounds import last_maps, remaining_mu
from lastiterate.theorems import features
from lastiterate.theorems.balls_and_bins import from_a_common_state
from lastiterate.theorems.epochs import FEW_ENOUGH, averaged_epoch, hidden_epoch, tabled, whole_epoch
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import BOUNDED, UNFINISHED_EPOCH, Assumption
from lastiterate.theorems.papers.asoodeh2023 import BOUNDED_GRADIENTS, DECAYING, KNOWN_DIMENSION
from lastiterate.theorems.places import Place, place_evidence
from lastiterate.theorems.shift_engine import HIDDEN_PLACE
from lastiterate.theorems.theorem import Theorem
from lastiterate.theorems.typical_batches import BOUNDED_RECORDS, sampled_window

# In units of the noise: farther apart, a block hides next to nothing; here the laws overlap by 2 %.
_LARGEST_APART = 4.5
# Of a hidden place: points of its profile, and places that stand for others; fewer are looser, more take longer.
_POINTS, _REPRESENTED = 40, 10
# Steps in a block: a limit of effort; longer ones hide more of what was before, and reveal more themselves.
_LONGEST = 20_000
# The probability that some iterate leaves the ball; δ grows by 1 + e^ε times it, and less makes a larger ball, as √log.
_LOST = 1e-14


def blocks_of(process: Process, length: int) -> Notion:
    """Return the guarantee of blocks of so many rounds (steps, or epochs of passes). Trusted."""
    return blocks_of_alike(process.worst_alike, length)


def blocks_of_alike(process: Process, length: int) -> Notion:
    """Return the guarantee of blocks of so many rounds, for steps that are all alike."""
    if length > (most := _most_rounds(process)):  # a small file must not ask for hours
        raise InvalidInput("blocks_too_long", most=most, got=f"{length}")
    ends = ends_of(process, length)
    blocks = -(-len(process) // (length * _round(process)))
    return mixed_profile(ends.common_delta, ends.apart_delta, blocks)


def ends_of(process: Process, length: int) -> Ends:
    """Return d and M of a block of so many rounds: what it reveals from one common state, and from two."""
    short = process.like_the_first(length * _round(process))
    return _ENDS[process.batches.turns](short)


def _in_fixed_order(process: Process) -> Ends:
    """Return the ends where the record is in the last batch of each epoch: what follows its last turn is post-processing."""
    turns = (np.arange(len(process)) + 1) % _round(process) == 0
    return _every_step(replace(process, sensitivity=process.sensitivity * turns))


def _every_step(process: Process) -> Ends:
    """Return the ends where it is known what a record pushes at each step, be it nothing: the engine does it all."""
    maps = last_maps(process, len(process))
    common = remaining_mu(maps, 0.0)
    return Ends(GaussianDP(common), common, remaining_mu(maps, process.diameter), math.inf)


def _in_new_orders(process: Process) -> Ends:
    """Return the ends of whole epochs, each with an order of its own."""
    maps = last_maps(process, len(process)).without_record()
    return Ends(_from_a_common_state(process), math.inf, math.inf, remaining_mu(maps, process.diameter))


def _from_a_common_state(process: Process) -> Notion:
    """Return what whole epochs reveal: the place of the record in the last is hidden, where that can be gone through."""
    if len(process) == _round(process):
        epoch = whole_epoch(process)
        averaged = FEW_ENOUGH.failure(process) is not None
        return averaged_epoch(process, epoch) if averaged else tabled(hidden_epoch(process, epoch), _POINTS)
    unbounded = replace(process, diameter=math.inf)
    if HIDDEN_PLACE.failures(unbounded):
        return place_evidence(unbounded, Place.AVERAGE).notion
    return tabled(place_evidence(unbounded, Place.HIDDEN, most=_REPRESENTED).notion, _POINTS)


def _in_own_places(process: Process) -> Ends:
    """Return the ends of whole epochs, in each of which the record has a place of its own."""
    maps = last_maps(process, len(process)).without_record()
    return Ends(from_a_common_state(process), math.inf, math.inf, remaining_mu(maps, process.diameter))


def _at_random(process: Process) -> Ends:
    maps = last_maps(process, len(process))
    same, apart = remaining_mu(maps.without_record(), process.diameter), remaining_mu(maps, process.diameter)
    return Ends(sampled_window(process, len(process)), remaining_mu(maps, 0.0), apart, same)


_ENDS: dict[Turns, Callable[[Process], Ends]] = {
    Turns.EVERY_STEP: _every_step,
    Turns.FIXED_ORDER: _in_fixed_order,
    Turns.ONE_ORDER: _in_fixed_order,
    Turns.NEW_ORDERS: _in_new_orders,
    Turns.OWN_PLACE: _in_own_places,
    Turns.FRESH: _at_random,
}


def _round(process: Process) -> int:
    return process.batches.per_epoch if process.batches.passes else 1


def _most_rounds(process: Process) -> int:
    return max(_LONGEST // _round(process), 1)


def lengths(process: Process) -> tuple[int, ...]:
    """Return lengths of blocks that are worth a try, in rounds: long enough to hide something, short enough to be computed.

    A block may be longer than the run, whose first steps are then steps of both runs before the record's first turn.
    """
    each = _round(process)
    most = min(-(-len(process) // each), _most_rounds(process))
    if process.batches.reshuffled and process.contraction > 1:
        most = min(most, 1)
    doubled = rungs(most, 2.0) if most else ()
    least = next((length for length in doubled if _hidden(process, length * each) <= _LARGEST_APART), None)
    return () if least is None else rungs(most, least=least)


def _hidden(process: Process, steps: int) -> float:
    maps = last_maps(process.like_the_first(steps), steps).without_record()
    return remaining_mu(maps, process.diameter)


def _bound(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), any batches; blocks of steps, one after the other.
    Bound: h(ε) ← the least over e0 of max{d(ε − e0), (1 − x)·d(ε − e0) + x·M(ε̃)}, x = h(e0), once a block; the best
        length.
        d is the profile of a block from one common state, M from two states at distance D, and ε̃ = ε − e0 + log(1 +
        (e^{e0} − 1)/x). From h = 1 each round gives a bound for any number of blocks.
    Assumes: a bounded domain, and noise that hides it within a block; only the last iterate is released.
    Attained by: opposite gradients on a tiny interval, to 3 %.
    Reference: docs/proofs.md, after Balle et al. 2019, Theorem 1.
    """
    ladder = Ladder(lengths(process.worst_alike), partial(blocks_of, process))
    return Evidence(ladder, ladder)


def _forgetful(process: Process) -> Fact | None:
    if not math.isfinite(process.diameter) or lengths(process.worst_alike):
        return None
    return fact(
        "blocks_hide_too_little",
        diameter=process.diameter,
        at_most=_LARGEST_APART,
        noise=extremes(process.noise)[0],
        because=process.reason,
    )


def _whole_epochs(process: Process) -> Fact | None:
    return UNFINISHED_EPOCH.failure(process) if process.batches.reshuffled else None


def _whole_epochs_if_shuffled(process: Process) -> Fact | None:
    return UNFINISHED_EPOCH.failure(process) if process.batches.shuffled else None


WHOLE_EPOCHS_IF_SHUFFLED = Assumption("whole_epochs_if_secret", _whole_epochs_if_shuffled)
WHOLE_EPOCHS_IF_NEW = Assumption("whole_epochs_if_new", _whole_epochs)
FORGETFUL = Assumption("blocks_hide_domain", _forgetful)

_STEPS = {features.RANDOM_SIZES, features.CHANGING_STEPS} | features.IN_ORDER
_COVERED = _STEPS | features.ANY_BATCHES | features.ANY_NEIGHBOURS

BLOCK_MIXING = Theorem(
    "block-mixing",
    "lastiterate, after Balle et al. 2019, Theorem 1",
    "bounded domain, any batches and Lipschitz constants",
    _COVERED | features.ANY_MAP,
    (
        BOUNDED,
        BOUNDED_RECORDS,
        WHOLE_EPOCHS_IF_NEW,
        FORGETFUL,
    ),
    _bound,
    rung=blocks_of,
    sees=attrgetter("sensitivity", "noise", "lipschitz", "sampled"),
)


# Weight decay keeps the iterates in a ball, nearly always: no projection and no convexity is needed.


def in_a_ball(process: Process) -> tuple[Process, float]:
    """Return the process projected on a ball that no iterate leaves, but for a probability; and that probability."""
    if process.dimension is None or not extremes(process.retain)[1] < 1:
        return process, 0.0
    alike = process.worst_alike
    retain, noise = float(alike.retain[0]), extremes(process.noise)[1]
    half = process.dimension / 2
    square = 2 * float(gammainccinv(half, _LOST / len(process))) * (1 + 1e-6)
    lost = len(process) * float(gammaincc(half, square / 2)) * (1 + 1e-6)
    radius = float(alike.drift[0]) / 2 / (1 - retain) + noise * math.sqrt(square / ((1 - retain) * (1 + retain)))
    return replace(alike, diameter=up(2 * radius, by=1e-9)), max(lost, 1e-300)


def _blocks_in_a_ball(process: Process, length: int) -> Notion:
    ball, lost = in_a_ball(process)
    return NearlyAlways(blocks_of_alike(ball, length), lost)


def _regularised_bound(process: Process) -> Evidence:
    """Update: X ← (1 − λ)X − η·(a clipped mean gradient) + N(0, ν²), any batches.
    Bound: block mixing in the ball that is left with probability at most P(χ²_d > κ²) at each of T steps; the best
        length.
        Its diameter is drift/(1 − r) + 2κν/√(1 − r²), r = retain, d parameters; δ(ε) grows by (1 + e^ε)·T·P(χ²_d > κ²).
    Assumes: weight decay, no projection, a known number of parameters; only the last iterate is released.
    Attained by: full decay, the last step alone, to 3 %.
    Reference: docs/proofs.md, after Asoodeh and Diaz 2023, Theorem 3.
    """
    ladder = Ladder(lengths(in_a_ball(process)[0]), partial(_blocks_in_a_ball, process))
    return Evidence(ladder, ladder)


REGULARISED_MIXING = Theorem(
    "regularised-mixing",
    "lastiterate, block mixing in the ball that weight decay gives",
    "any clipped loss, weight decay, no projection, any batches",
    _COVERED | {features.WEIGHT_DECAY},
    (
        BOUNDED_GRADIENTS,
        BOUNDED_RECORDS,
        DECAYING,
        KNOWN_DIMENSION,
        WHOLE_EPOCHS_IF_NEW,
        Assumption(FORGETFUL.code, lambda process: FORGETFUL.failure(in_a_ball(process)[0])),
    ),
    _regularised_bound,
    rung=_blocks_in_a_ball,
)
