"""Momentum, Nesterov, averages of iterates: linear optimisers with a hidden state.

What a record pushes into the state is paid for by the noise of its own step and of those that follow, along a path that
leaves nothing behind; the paths of several turns may overlap. Proof: docs/proofs.md, "Linear optimisers".
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lastiterate.curves.compose import compose_counted
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.transformed import ChosenSlack
from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import longest
from lastiterate.kernel.steps import Refused
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import Turns
from lastiterate.runs.optimizers import SGD, Average
from lastiterate.runs.process import Process
from lastiterate.shift.momentum import (
    Asked,
    Hidden,
    Turning,
    TurnsOfRecord,
    best_memory_path,
    memories,
    square_of,
)
from lastiterate.theorems import features
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import Assumption
from lastiterate.theorems.places import place_sizes, smooth_of
from lastiterate.theorems.prepayment import SEVERAL, SMOOTH
from lastiterate.theorems.theorem import Theorem

_DIGITS = 5  # to which a square is rounded up: other machines find paths that differ in later ones
_MOST_PLACES = 256  # looked at one by one; beyond, some stand for others that are hidden longer
_MOST_STEPS = 10**8
_FORGOTTEN = 1e-9  # of the μ of a step: added for all that came before the last steps
_LARGEST_MU = 8.0  # ε is 65 there, at δ = 1e-5: with more, composing takes long and is worth little

_MOST_PREPAID_STEPS = 400_000  # steps of single records: some seconds
_PREPAID_TURNS = (1, 2, 4)  # so many turns, the last, and all, or none: what is prepaid for longer has turned more
_PAYMENTS = (0.5, 1.0, 2.0, 8.0)  # at most, in units of the push


def _states(process: Process) -> tuple[Hidden, Hidden, int]:
    """Return the state before and after averaging begins, and after how many steps it does."""
    update = process.update
    linear = update.optimizer.linear
    if linear is None or isinstance(update.curvature, Fact):
        raise Refused(str(update.curvature))
    middle, half = update.curvature
    before, after = Hidden(linear, middle, half), Hidden(update.released.filtered(linear), middle, half)
    begins = update.released.begins(len(process))
    return (before, after, begins) if begins else (after, after, 0)


def _recent(process: Process) -> Process:
    """Return the last steps alone, from a common state, if the optimiser forgets what came before; else the run itself.

    Where the last batch of an epoch is smaller, every step then counts as one on that batch.
    """
    update, epoch, whole = process.update, _every(process), len(process)
    linear, taken = update.optimizer.linear, update.released
    if linear is None or isinstance(update.curvature, Fact) or process.releases:
        return process
    if not process.constant and not process.batches.uneven:
        return process
    alike = replace(process if process.constant else process.worst_alike, inside=(1.0, 1.0))
    averaged = whole - taken.begins(whole) if isinstance(taken, Average) else 1
    filtered = linear if isinstance(taken, Average) else taken.filtered(linear)
    pushes = max(float(alike.sensitivity[0]), float(alike.sampled[0])) / float(alike.noise[0])
    together, negligible = 8 * max(process.group, sum(process.members)) * pushes, _FORGOTTEN * alike.step_mu
    found = memories(Hidden(filtered, *update.curvature), linear.point)
    needed = int(min([whole, *(one.needed(together, negligible / averaged) for one in found)]))
    steps = -(-(needed + averaged) // epoch) * epoch + whole % epoch
    return alike.last_steps(steps, negligible) if steps < whole else process


def _rounded_up(square: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(square)) + 1 - _DIGITS)
    return math.ceil(square / unit) * unit * (1 + 1e-12)


def mu_of_square(process: Process, square: float) -> float:
    return math.sqrt(_rounded_up(square)) * process.step_mu * (1 + 1e-12)


def _every(process: Process) -> int:
    return process.batches.per_epoch if process.batches.passes else 1


def _square_at(process: Process, left: int) -> float:
    """Return Σ payments² of a record whose last turn has `left` steps after it."""
    return TurnsOfRecord(*_states(process), len(process), _every(process), left).square()


def _worst(process: Process) -> Evidence:
    """Update: ξ ← Fξ + b·(−η∇f(cᵀξ) + N(0, ν²)), full batches or passes in one order; Rξ is released at the end.
    Bound: μ² = (s/ν)²·Σ_t(Σ_τ a^τ_t)²; for each record's step τ, a^τ_t = |u_t| + r·|cᵀθ_{t−1}| with θ = 0 before it,
        θ_t = Fθ_{t−1} + b(−m·cᵀθ_{t−1} + [t = τ] − u_t), and Rθ = 0 at the end; η·Hessian lies within r of m.
    Assumes: a linear optimiser, no projection and no proximal map, a known smoothness, identical steps; only what
        `released` names is released, at the end.
    Attained by: the last batch of a pass with momentum, on steep quadratic losses, to 1 %.
    Reference: docs/proofs.md, "Linear optimisers".
    """
    begins, every = _states(process)[2], _every(process)
    places = range(min(every, len(process))) if begins else (0,)
    return Evidence(GaussianDP(mu_of_square(process, max(_square_at(process, left) for left in places))))


def _averaged(process: Process) -> Evidence:
    """Update: ξ ← Fξ + b·(−η∇f(cᵀξ) + N(0, ν²)), passes in a random and secret order, drawn once or each epoch.
    Bound: the average over a record's places of G(μ) for the place, μ as in linear-optimiser. With a new order each
        epoch, every use of a record is covered within its own epoch, and the averages of all epochs are composed.
    Assumes: a linear optimiser, no projection and no proximal map, a known smoothness, identical steps; only what
        `released` names is released, at the end.
    Attained by: one epoch of two batches, to 5 %.
    Reference: docs/proofs.md, "Linear optimisers".
    """
    return Evidence(_one_order(process) if process.batches.turns is Turns.ONE_ORDER else _new_orders(process))


def _one_order(process: Process) -> Notion:
    every, steps = _every(process), len(process)
    squares = np.zeros(every)  # by the steps that are left after the last turn; 0 where there is no turn
    sizes, total = place_sizes(process, every)
    if every <= _MOST_PLACES:
        for left in range(min(every, steps)):
            squares[left] = _square_at(process, left)
    else:  # as the worst place, but for the last turn, which is paid for within some of the steps that are left
        earlier, after = _square_at(process, 0) - 1, _states(process)[1]
        squares[: min(every, steps)] = up(earlier) + _squares_within(after, min(every, steps))
    mus = np.array([mu_of_square(process, square) if square else 0.0 for square in squares.tolist()])
    return AveragedGaussianDP(mus=mus, weights=sizes[(steps - 1 - np.arange(every)) % every] / total)


def _new_orders(process: Process) -> Notion:
    """Return epochs that do not average yet, the one in which that begins, those that do, and the last, composed."""
    before, after, begins = _states(process)
    every, steps = process.batches.per_epoch, len(process)
    last = steps - (steps - 1) // every * every
    whole = (steps - last) // every
    early, cut = min(begins // every, whole), int(begins % every > 0 and begins // every < whole)
    parts: list[tuple[Notion, int]] = [
        (_epoch(process, before, every), early),
        (GaussianDP(process.step_mu * (1 + 1e-12)), cut),
        (_epoch(process, after, every), whole - early - cut),
        (_last_epoch(process, after, last) if begins <= steps - last else _at_once(process, last), 1),
    ]
    return compose_counted([part for part in parts if part[1]])


def _last_epoch(process: Process, hidden: Hidden, length: int) -> AveragedGaussianDP:
    """Return the last epoch, at whose end nothing may be left in what is released; few places have their own best paths."""
    if length > _MOST_PLACES:
        return _epoch(process, hidden, length)
    squares = [square_of(hidden, steps, hidden.linear.taps) for steps in range(1, length + 1)]
    return _of_places(process, np.array(squares))


def _at_once(process: Process, places: int) -> AveragedGaussianDP:
    return _of_places(process, np.ones(places))


def _epoch(process: Process, hidden: Hidden, length: int) -> AveragedGaussianDP:
    """Return an epoch of so many steps, or what there is of it, at whose end nothing is left of any push."""
    return _of_places(process, _squares_within(hidden, length))


def _squares_within(hidden: Hidden, most: int) -> Floats:
    """Return Σ payments² of one turn that is paid for within 1, 2, … steps; of many lengths, some stand for more."""
    lengths = np.unique(np.geomspace(1, most, min(most, _MOST_PLACES)).astype(np.intp))
    squares = np.array([square_of(hidden, int(one), hidden.order) for one in lengths])
    return np.asarray(squares[np.searchsorted(lengths, np.arange(1, most + 1), side="right") - 1])


def _of_places(process: Process, squares: Floats) -> AveragedGaussianDP:
    """Return the average over the first places of an epoch, from Σ payments² of the last of them, of the one before, …"""
    sizes, total = place_sizes(process, len(squares))
    values, which = np.unique(squares[::-1], return_inverse=True)
    mus = np.array([mu_of_square(process, value) for value in values.tolist()])
    absent = max(1 - float(sizes.sum()) / total, 0.0)
    return AveragedGaussianDP(mus=np.append(mus, 0.0), weights=np.append(np.bincount(which, sizes) / total, absent))


def _hidden_state(process: Process) -> Fact | None:
    update = process.update
    if update.plain:
        return fact("plain_update")
    return fact("not_linear", because=update.curvature) if isinstance(update.curvature, Fact) else None


def _short(process: Process) -> Fact | None:
    if len(process) > _MOST_STEPS:
        return fact("too_many_steps", at_most=_MOST_STEPS, steps=len(process))
    every = _every(process)
    if process.update.released.begins(len(process)) and every > _MOST_PLACES:
        return fact("too_many_batches_averaged", at_most=_MOST_PLACES, batches=every)
    return None


def _some_protection(process: Process) -> Fact | None:
    """With less, composing takes long and is worth little."""
    if process.batches.turns is not Turns.NEW_ORDERS or isinstance(process.update.curvature, Fact):
        return None
    places = min(process.batches.per_epoch, len(process))
    mean = float(_squares_within(_states(process)[1], places).mean())
    worst = process.step_mu * max(1.0, math.sqrt(mean * len(process) / places))
    return None if worst <= _LARGEST_MU else fact("hardly_protected", at_most=_LARGEST_MU, mu=worst)


LINEAR = Assumption("linear_update", _hidden_state)
_SHORT = Assumption("short_enough", _short)
_UPDATE = (features.ANY_UPDATE - {features.OTHER_OPTIMIZER}) | {features.WEIGHT_DECAY}
_COVERED = {features.ONE_ORDER} | _UPDATE | features.IN_ORDER | features.ANY_NEIGHBOURS

LINEAR_OPTIMISER = Theorem(
    "linear-optimiser",
    "lastiterate, payments along paths of a linear filter",
    "momentum and averages with hidden states, worst record",
    _COVERED | {features.FULL_BATCHES, features.FIXED_ORDER},
    (LINEAR, _SHORT),
    _worst,
    recent=_recent,
)
RANDOM_LINEAR_OPTIMISER = Theorem(
    "linear-optimiser/random-order",
    "lastiterate, payments along paths of a linear filter, averaged over the order",
    "momentum and averages with hidden states, a random and secret order",
    _COVERED | {features.NEW_ORDERS},
    (
        LINEAR,
        _SHORT,
        Assumption("some_protection", _some_protection),
    ),
    _averaged,
    recent=_recent,
)


# With prepayment: noise before a record's step hides it, too, where the push turns slowly.


def _prepaid(process: Process) -> Evidence:
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
        mus = prepaid_mus(process, slack)
        if process.batches.turns is Turns.FIXED_ORDER:
            return GaussianDP(max(mus))
        sizes, total = place_sizes(process, len(mus))
        return AveragedGaussianDP(mus=mus, weights=sizes / total)

    return Evidence(ChosenSlack(but_for))


def prepaid_mus(process: Process, slack: float) -> list[float]:
    """Return μ of a record at each place; what rounding adds to a push is paid where it comes, on top."""
    every, smooth = process.batches.per_epoch, smooth_of(process)
    rough = float(smooth.rough[0]) / float(process.noise[0]) * math.sqrt(-(-len(process) // every))
    squares = [_least_square(process, slack, place) for place in range(every)]
    return [mu_of_square(process, square) + up(rough) if square else 0.0 for square in squares]


def _least_square(process: Process, slack: float, place: int) -> float:
    """Return Σ payments² of a record with its turns at this place, the least of those tried; valid but for this probability.

    Some turns, the last, are prepaid, or none; what is paid for the others, which come before, is added. The larger a
    payment may be, the more the push may turn: a larger limit is tried where a smaller one excludes something.
    """
    every, steps = process.batches.per_epoch, len(process)
    if place >= steps:
        return 0.0
    hidden = turning(process, slack, _PAYMENTS[0])
    causal = Hidden(hidden.linear, hidden.middle, hidden.half)
    record = TurnsOfRecord(causal, causal, 0, steps, every, (steps - 1 - place) % every)
    turns, least = np.arange(place, steps, every), up(record.square())
    prepaid = {min(one, len(turns)) for one in _PREPAID_TURNS} | {len(turns)}
    for largest in _PAYMENTS:
        hidden = turning(process, slack, largest)
        for last in sorted(prepaid):
            pushes, already = np.zeros(steps), record.payments(last)
            pushes[turns[len(turns) - last :]] = 1.0
            path = best_memory_path(hidden, Asked(pushes, hidden.linear.taps, np.arange(steps, dtype=np.intp), already))
            payments = hidden.payments(path, pushes) + already
            if float(payments[:-1].max(initial=0.0)) <= largest:
                prepaid.discard(last)
                least = min(least, up(float(np.square(payments).sum())))
    return least


def turning(process: Process, slack: float, largest: float) -> Turning:
    """Return how far the push turns in a step, but for a probability, if no payment is larger than `largest` pushes."""
    optimizer, smooth, curvature = process.update.optimizer, smooth_of(process), process.update.curvature
    if not isinstance(optimizer, SGD) or isinstance(curvature, Fact):
        raise Refused(str(curvature))
    kept, noise = optimizer.momentum, float(process.noise[0])
    way = (float(smooth.movement[0]) + largest * float(process.sensitivity[0])) / (1 - kept)
    by_chance = noise * longest(smooth.rank, slack / len(process)) / math.sqrt((1 - kept) * (1 + kept))
    return Turning(optimizer.linear, *curvature, up(smooth.turning * (way + by_chance)))


def _short_to_prepay(process: Process) -> Fact | None:
    needed = len(process) * process.batches.per_epoch
    if needed <= _MOST_PREPAID_STEPS:
        return None
    return fact("too_much_work", times="batches_per_epoch", at_most=_MOST_PREPAID_STEPS, needed=needed)


PREPAID_MOMENTUM = Theorem(
    "linear-optimiser/prepaid",
    "lastiterate, noise before a record's step, with momentum",
    "momentum, smooth losses: worst record, or the average over the record's place",
    {features.FIXED_ORDER, features.ONE_ORDER, features.MOMENTUM} | features.IN_ORDER | features.ANY_NEIGHBOURS,
    (
        SEVERAL,
        LINEAR,
        SMOOTH,
        Assumption("short_enough", _short_to_prepay),
    ),
    _prepaid,
    functions=1,
)
