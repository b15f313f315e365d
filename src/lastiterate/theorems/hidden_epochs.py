"""Epochs composed, in each of which the place of a record is hidden: for steps that move iterates apart.

As epoch by epoch; but an epoch in a secret order, from a common state, hides more than the average over its places.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.curves.profile import LARGEST_TABLED, Profile
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.process import Process
from lastiterate.theorems.assumptions import FINITE_LIPSCHITZ
from lastiterate.theorems.epoch_by_epoch import (
    SOME_PROTECTION,
    EpochGroup,
    epochs_of,
    mus_by_place,
)
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import (
    ANY_CHECKPOINTS,
    ANY_MAP,
    ANY_NEIGHBOURS,
    CHANGING_STEPS,
    IN_ORDER,
    NEW_ORDERS,
    Assumption,
)
from lastiterate.theorems.places import exchange_of, place_sizes
from lastiterate.theorems.theorem import Theorem

_MOST_PLACES = 2048  # of an epoch: every pair of them is looked at
_MOST_GROUPED = 96  # groups of places: each counts as its worst
_POINTS = 160  # of an epoch's profile: chords lie above it, with fewer by more
_LOG_SMALLEST = -48.0  # of δ: a table ends there, below what is followed in compositions and recursions


def pair_mus_by_place(
    sensitivity: Floats, noise: Floats, lipschitz: Floats, cuts: tuple[int, ...] = (), exchange: float = 1.0
) -> Floats:
    """μ of a push at place k and another at j, for each two places of an epoch: the least of two ways to pay, rounded up.

    One after the other: the first push is hidden by the steps before the second, the second by the rest. Or both schedules
    at once, each as if its push were alone: then the shifts add up, step by step. `cuts`: where the iterate is released,
    and nothing may be left. `exchange`: how many times as large one of the two is, whichever is worse.
    """
    own = mus_by_place(sensitivity[None], noise[None], lipschitz[None], cuts)[0]
    count = len(own)
    first_alone = np.full((count, count), np.inf)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        for place in range(count - 1):
            factors = np.cumprod(np.append(1.0, lipschitz[place + 1 : -1]))
            hidden = np.cumsum(np.square(noise[place:-1] / factors))
            following = min((cut for cut in cuts if cut > place), default=count)
            hidden = np.minimum(hidden, hidden[min(following, count - 1) - place - 1])
            first_alone[place, place + 1 :] = sensitivity[place] / np.sqrt(np.minimum(hidden, 1e280))
    in_both_orders = []
    for early, late in {(exchange, 1.0), (1.0, exchange)}:
        in_turn = np.hypot(early * first_alone, late * own)
        in_both_orders.append(np.minimum(in_turn, early * own[:, None] + late * own))
    found = np.triu(np.max(in_both_orders, axis=0))  # of the earlier and the later place
    return np.asarray(up(np.maximum(found, found.T)))


def hidden_epoch(pairs: Floats, mus: Floats, sizes: Floats, total: int, exchange: float = 1.0) -> HiddenPlaceDP:
    """One epoch in a secret order, from a common state; `mus` of its places, and of each two of them.

    So many records of `total` are at each place. With fewer steps than batches, the record may be absent: beside another
    place, only that place costs anything, where another record is in its stead.
    """
    order = np.argsort(-mus, kind="stable")
    starts = _starts(len(mus))
    pairs = pairs[np.ix_(order, order)]
    pairs = np.maximum.reduceat(np.maximum.reduceat(pairs, starts, axis=0), starts, axis=1)
    own, counts = mus[order][starts], np.add.reduceat(sizes[order], starts)
    if (absent := total - sizes.sum()) > 0:
        beside = exchange * own
        pairs = np.block([[pairs, beside[:, None]], [beside[None, :], np.zeros((1, 1))]])
        own, counts = np.append(own, 0.0), np.append(counts, absent)
    return HiddenPlaceDP(mus=own, pair_mus=np.minimum(pairs, 1e100), weights=counts / total)


def _starts(count: int) -> NDArray[np.intp]:
    """Places, the hardest first, in groups: the first alone, the others more and more together."""
    if count <= _MOST_GROUPED:
        return np.arange(count)
    return np.unique((np.geomspace(1, count, _MOST_GROUPED) - 1).astype(np.intp))


def tabled(notion: HiddenPlaceDP, points: int = _POINTS) -> Profile:
    """Its profile, between points by chords, which lie above."""
    places = (one.tobytes() for one in (notion.mus, notion.pair_mus, notion.weights))
    return _known(*places, notion.adjacency, points)


@lru_cache(maxsize=16)
def _known(mus: bytes, pair_mus: bytes, weights: bytes, adjacency: Adjacency, points: int) -> Profile:
    """Runs of other lengths, and other theorems about the same run, have the same epochs."""
    own, pairs, chances = (np.frombuffer(one) for one in (mus, pair_mus, weights))
    square = pairs.reshape(len(own), len(own))
    notion = HiddenPlaceDP(mus=own, pair_mus=square, weights=chances, adjacency=adjacency)
    largest = min(float(notion.average._epsilon(np.array([_LOG_SMALLEST]))[0]), LARGEST_TABLED)
    epsilons = largest * np.linspace(0.0, 1.0, points) ** 1.5
    return Profile(epsilons=epsilons, deltas=notion.delta(epsilons), adjacency=notion.adjacency)


def whole_epoch(process: Process) -> HiddenPlaceDP:
    """One whole epoch in a random order, from a common state, of steps that are alike."""
    alike = process.like_the_first(process.batches.per_epoch)
    return _one_epoch(process, next(epochs_of(alike)))


def _one_epoch(process: Process, epochs: EpochGroup) -> HiddenPlaceDP:
    """These epochs, counted as one that is no better than any of them at any place."""
    worst = epochs.sensitivity.max(axis=0), epochs.noise.min(axis=0), epochs.lipschitz.max(axis=0)
    mus, exchange = epochs.mus, exchange_of(process)
    pairs = pair_mus_by_place(*worst, epochs.cuts, exchange)
    return hidden_epoch(pairs, mus, *place_sizes(process, len(mus)), exchange)


def _composed(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), a new secret order each epoch.
    Bound: epochs composed, each with δ(ε) = Σ_k w_k·Σ_j (W_kj/y_k)·θ_{log y_k}(μ_kj), as where one place is hidden.
        Within an epoch μ_kk = s/√(ν² + Σ_i ν²/L^{2i}), over the steps that follow the record's step; μ_kj is the least of
        √(μ_jj² + s²/h²), h² what the steps from k to j hide, and μ_kk + μ_jj. A release inside an epoch ends what steps
        hide. Where steps differ, epochs are counted in a few groups, each as one that is no better than any of its epochs.
    Assumes: a known Lipschitz constant; at most 2048 batches.
    Attained by: one epoch of two batches, to 2 %.
    Reference: a composition of hidden places (docs/proofs.md).
    """
    return Evidence(compose_counted([(tabled(_one_epoch(process, one)), one.count) for one in epochs_of(process)]))


def _few_enough(process: Process) -> Fact | None:
    batches = process.batches.per_epoch
    return None if batches <= _MOST_PLACES else fact("too_many_batches", at_most=_MOST_PLACES, batches=batches)


FEW_ENOUGH = Assumption("few_batches", _few_enough)

HIDDEN_EPOCHS = Theorem(
    "hidden-place/epoch-by-epoch",
    "lastiterate, a composition of epochs with hidden places",
    "a new secret order each epoch, any Lipschitz constants: a place is also compared with other places",
    {NEW_ORDERS, CHANGING_STEPS} | IN_ORDER | ANY_CHECKPOINTS | ANY_MAP | ANY_NEIGHBOURS,
    (
        FINITE_LIPSCHITZ,
        FEW_ENOUGH,
        SOME_PROTECTION,
    ),
    _composed,
)
