"""Epochs composed, each as if it were released at its end: for shuffled batches whose steps move iterates apart.

Every epoch begins in a common state, and nothing grows from one epoch into the next, whatever the Lipschitz constants. The
record has one turn in an epoch; the steps after it hide the push, as in Balle et al. 2019 and Kong and Ribero 2025, up to
the next release. The place of the turn is random: an epoch is an average of Gaussian mechanisms, or its place is hidden,
which is more than the average; and for smooth losses the push may be prepaid within the epoch. Proofs: docs/proofs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import LARGEST_TABLED, Profile
from lastiterate.curves.transformed import ChosenSlack
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_levels
from lastiterate.numerics.rounding import down, up
from lastiterate.runs.process import Process
from lastiterate.theorems import features
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import FINITE_LIPSCHITZ, Assumption
from lastiterate.theorems.places import MOST_REPRESENTED, NOT_COMPARED, Place, exchange_of, place_evidence, place_sizes
from lastiterate.theorems.prepayment import ALIKE_IF_NEW, SEVERAL, SMOOTH, too_much_to_prepay
from lastiterate.theorems.theorem import Theorem

# Of epochs that are counted as alike: each is one more transform, and fewer count more epochs as the worst.
_MOST_GROUPS = 6
_MOST_PATTERNS = 8  # different ways to cut epochs by releases: of more, all count as cut wherever one is
_MOST_LEVELS = 100  # of μ within an epoch: rounded up to the next, by less than 10 %; each is a term of every sum
# With ∞ here the next step might make NaN of it; a shift that is hidden so well costs nothing either way.
_LARGEST_HIDDEN = 1e280
_LARGEST_MU, _MOST_STEPS = 8.0, 10**7  # ε is 65 there, at δ = 1e-5; and a run of so many steps is held in a few arrays

_MOST_PLACES = 2048  # of an epoch: every pair of them is looked at
_MOST_GROUPED = 96  # groups of places: each counts as its worst
_POINTS = 160  # of an epoch's profile: chords lie above it, with fewer by more
_LOG_SMALLEST = -48.0  # of δ: a table ends there, below what is followed in compositions and recursions


def _averaged(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), a new secret order each epoch.
    Bound: epochs composed, each the average over the places j of a record of G(μ_j), μ_j = s/√(ν² + Σ_k ν²/L^{2k}).
        The sum is over the steps that follow the record's step in its epoch, up to the next release. Where steps differ,
        epochs are counted in a few groups, each as one that is no better than any of its epochs at any place.
    Assumes: a known Lipschitz constant.
    Attained by: one epoch of two batches, to 1 %.
    Reference: a composition of averages (docs/proofs.md).
    """
    return Evidence(_composed(process, partial(averaged_epoch, process)))


def _hidden(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), a new secret order each epoch.
    Bound: epochs composed, each with δ(ε) = Σ_k w_k·Σ_j (W_kj/y_k)·θ_{log y_k}(μ_kj), as where one place is hidden.
        Within an epoch μ_kk = s/√(ν² + Σ_i ν²/L^{2i}), over the steps that follow the record's step; μ_kj is the least of
        √(μ_jj² + s²/h²), h² what the steps from k to j hide, and μ_kk + μ_jj. A release inside an epoch ends what steps
        hide. Where steps differ, epochs are counted in a few groups, each as one that is no better than any of its epochs.
    Assumes: a known Lipschitz constant; at most 2048 batches.
    Attained by: one epoch of two batches, to 2 %.
    Reference: a composition of hidden places (docs/proofs.md).
    """
    return Evidence(_composed(process, lambda epochs: tabled(hidden_epoch(process, epochs))))


def _prepaid(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), a new secret order each epoch, smooth losses, no decay.
    Bound: δ0 + epochs composed, each with a hidden place and prepayment from a common state.
        With more than 24 batches per epoch, the average over the places is used instead.
    Assumes: no projection and no proximal map, a known smoothness, bounded gradients, one clip for all steps, which
        are identical; no weight decay; whole epochs, and releases only at their ends; some step moves iterates apart.
    Attained by: one epoch of two batches, where a record's effect is constant, to 2 %.
    Reference: a composition of hidden places with prepayment (docs/proofs.md).
    """
    return Evidence(ChosenSlack(partial(_prepaid_epochs, process)))


def _composed(process: Process, notion: Callable[[EpochGroup], Notion]) -> Notion:
    """Return the composition of all epochs of a run, of which those of a group have the same guarantee."""
    return compose_counted([(notion(epochs), epochs.count) for epochs in epochs_of(process)])


def _prepaid_epochs(process: Process, slack: float) -> Notion:
    """Return the composition of epochs that prepay; the exceptions of all of them together have probability `slack`."""
    each = down(slack / (len(process) // process.batches.per_epoch))
    return _composed(process, lambda _: _prepaid_epoch(process, each))


def _prepaid_epoch(process: Process, slack: float) -> Notion:
    """Return an epoch from a common state, but for a probability `slack`; of many places only the average is taken."""
    epoch = replace(process.like_the_first(process.batches.per_epoch), displacement=0.0)
    place = Place.AVERAGE if process.batches.per_epoch > MOST_REPRESENTED else Place.HIDDEN
    return tabled(place_evidence(epoch, place, slack).notion)


def whole_epoch(process: Process) -> EpochGroup:
    """Return one whole epoch of steps that are all like the first."""
    return next(epochs_of(process.like_the_first(process.batches.per_epoch)))


def averaged_epoch(process: Process, epochs: EpochGroup) -> AveragedGaussianDP:
    """Return what holds of each of these epochs from a common state, on average over the places of a record.

    Many values of μ are rounded up to a few. With fewer steps than batches, the record may be absent.
    """
    mus = epochs.mus
    sizes, total = place_sizes(process, len(mus))
    values, _ = few_levels(mus, _MOST_LEVELS, 1e-4)
    at_each = np.bincount(np.searchsorted(values, mus), sizes, len(values))
    absent = 1 - at_each.sum() / total
    return AveragedGaussianDP(mus=np.append(values, 0.0), weights=np.append(at_each / total, max(absent, 0.0)))


def hidden_epoch(process: Process, epochs: EpochGroup) -> HiddenPlaceDP:
    """Return what holds of each of these epochs from a common state, in which the place of a record is hidden.

    They count as one that is no better than any of them at any place.
    """
    worst = epochs.sensitivity.max(axis=0), epochs.noise.min(axis=0), epochs.lipschitz.max(axis=0)
    mus, exchange = epochs.mus, exchange_of(process)
    pairs = pair_mus_by_place(*worst, epochs.cuts, exchange)
    return hidden_among(pairs, mus, *place_sizes(process, len(mus)), exchange)


def hidden_among(pairs: Floats, mus: Floats, sizes: Floats, total: int, exchange: float = 1.0) -> HiddenPlaceDP:
    """Return one epoch in a secret order, from a common state, from `mus` of its places and `pairs` of each two of them.

    `sizes` records of `total` are at each place. With fewer steps than batches, the record may be absent: beside another
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
    return HiddenPlaceDP(mus=own, pair_mus=np.minimum(pairs, NOT_COMPARED), weights=counts / total)


def _starts(count: int) -> NDArray[np.intp]:
    """Return where groups of places begin, the hardest first: the first alone, the others more and more together."""
    if count <= _MOST_GROUPED:
        return np.arange(count)
    return np.unique((np.geomspace(1, count, _MOST_GROUPED) - 1).astype(np.intp))


def tabled(notion: Notion, points: int = _POINTS) -> Notion:
    """Return the profile of a hidden place, between points by chords, which lie above; any other guarantee as it is."""
    if not isinstance(notion, HiddenPlaceDP):
        return notion
    places = (one.tobytes() for one in (notion.mus, notion.pair_mus, notion.weights))
    return _known(*places, notion.adjacency, points)


@lru_cache(maxsize=16)
def _known(mus: bytes, pair_mus: bytes, weights: bytes, adjacency: Adjacency, points: int) -> Profile:
    """Return the table of a hidden place; runs of other lengths, and other theorems about a run, have the same epochs."""
    own, pairs, chances = (np.frombuffer(one) for one in (mus, pair_mus, weights))
    square = pairs.reshape(len(own), len(own))
    notion = HiddenPlaceDP(mus=own, pair_mus=square, weights=chances, adjacency=adjacency)
    largest = min(float(notion.average.epsilon_at_log(np.array([_LOG_SMALLEST]))[0]), LARGEST_TABLED)
    epsilons = largest * np.linspace(0.0, 1.0, points) ** 1.5
    return Profile(epsilons=epsilons, deltas=notion.delta(epsilons), adjacency=notion.adjacency)


# μ of a record with one turn in an epoch.


def mus_by_place(sensitivity: Floats, noise: Floats, lipschitz: Floats, cuts: tuple[int, ...] = ()) -> Floats:
    """Return μ of a record with one turn, for each place of each epoch (the rows): s/√(ν² + hidden).

    What the later steps hide of a shift, in the units of its own step: Σ_k ν_k²/(L_{j+1}⋯L_k)², rounded down. `cuts`: after
    so many steps of the epoch the iterate is released, and later ones hide nothing.
    """
    hidden = np.zeros(len(noise))
    mus = np.empty_like(noise)
    with np.errstate(divide="ignore", over="ignore"):
        for place in range(noise.shape[1] - 1, -1, -1):
            if place + 1 in cuts:
                hidden = np.zeros(len(noise))
            mus[:, place] = sensitivity[:, place] / np.sqrt(np.square(noise[:, place]) + hidden)
            hidden = (np.square(noise[:, place]) + hidden) / np.square(lipschitz[:, place])
            hidden = np.minimum(down(hidden, operations=10), _LARGEST_HIDDEN)
    return up(mus)


def pair_mus_by_place(
    sensitivity: Floats, noise: Floats, lipschitz: Floats, cuts: tuple[int, ...] = (), exchange: float = 1.0
) -> Floats:
    """Return μ of a push at place k and another at j, for each two places of an epoch: the least of two ways, rounded up.

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
            first_alone[place, place + 1 :] = sensitivity[place] / np.sqrt(np.minimum(hidden, _LARGEST_HIDDEN))
    in_both_orders = []
    for early, late in {(exchange, 1.0), (1.0, exchange)}:
        in_turn = np.hypot(early * first_alone, late * own)
        in_both_orders.append(np.minimum(in_turn, early * own[:, None] + late * own))
    found = np.triu(np.max(in_both_orders, axis=0))  # of the earlier and the later place
    return np.asarray(up(np.maximum(found, found.T)))


# The epochs of a run in a few groups.


@dataclass(frozen=True, eq=False)
class EpochGroup:
    """Some epochs (the rows) that are counted as alike, how many they are, and where in them the iterate is released."""

    sensitivity: Floats
    noise: Floats
    lipschitz: Floats
    count: int
    cuts: tuple[int, ...] = ()

    @property
    def mus(self) -> Floats:
        """μ of a record at each place, of the worst of these epochs."""
        return np.asarray(mus_by_place(self.sensitivity, self.noise, self.lipschitz, self.cuts).max(axis=0))


def epochs_of(process: Process) -> Iterator[EpochGroup]:
    """Yield all epochs of a run in a few groups: whole ones, those that a release cuts, and the rest of one at the end."""
    per_epoch = process.batches.per_epoch
    whole, rest = divmod(len(process), per_epoch)
    cut = _cut_epochs(process)
    at_the_end = cut.pop(whole, ())
    plain = np.setdiff1d(np.arange(min(whole, 1) if process.constant and not cut else whole), list(cut))
    if plain.size:
        given = plain[:1] if process.constant else plain
        for first, last, count in groups_of_epochs(len(given), whole - len(cut)):
            yield _rows(process, given[first:last], count)
    many = len(set(cut.values())) > _MOST_PATTERNS
    for cuts in _patterns(cut):
        inside = np.array([epoch for epoch, own in cut.items() if many or own == cuts], np.intp)
        yield _rows(process, inside[:1] if process.constant else inside, len(inside), cuts)
    if rest:
        part = slice(len(process) - rest, len(process))
        sensitivity, noise, lipschitz = (values[part][None] for values in _values(process))
        yield EpochGroup(sensitivity, noise, lipschitz, 1, at_the_end)


def groups_of_epochs(shown: int, epochs: int) -> list[tuple[int, int, int]]:
    """Return a few groups of consecutive epochs, from one to another, and of how many: all, where one is shown for all."""
    if shown == 1:
        return [(0, 1, epochs)]
    edges = [int(part[0]) for part in np.array_split(np.arange(shown), min(_MOST_GROUPS, shown))]
    return [(first, last, last - first) for first, last in pairwise([*edges, shown])]


def _cut_epochs(process: Process) -> dict[int, tuple[int, ...]]:
    """Return for each epoch inside of which something is released: after how many of its steps."""
    found: dict[int, tuple[int, ...]] = {}
    for release in process.releases:
        epoch, inside = divmod(release, process.batches.per_epoch)
        if inside:
            found[epoch] = (*found.get(epoch, ()), inside)
    return found


def _patterns(cut: dict[int, tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the different ways in which epochs are cut; if they are many, one that cuts wherever one of them does."""
    different = sorted(set(cut.values()))
    return different if len(different) <= _MOST_PATTERNS else [tuple(sorted(set().union(*different)))]


def _rows(process: Process, epochs: NDArray[np.intp], count: int, cuts: tuple[int, ...] = ()) -> EpochGroup:
    per_epoch = process.batches.per_epoch
    steps = epochs[:, None] * per_epoch + np.arange(per_epoch)
    sensitivity, noise, lipschitz = (values[steps] for values in _values(process))
    return EpochGroup(sensitivity, noise, lipschitz, count, cuts)


def _values(process: Process) -> tuple[Floats, Floats, Floats]:
    return process.sensitivity, process.noise, process.lipschitz


def _growing(process: Process) -> Fact | None:
    return None if process.contraction > 1 else fact("not_growing", lipschitz=process.contraction)


def _some_protection(process: Process) -> Fact | None:
    """With less, composing takes long and is worth little."""
    if len(process) > _MOST_STEPS:
        return fact("too_many_steps", at_most=_MOST_STEPS, steps=len(process))
    places = min(process.batches.per_epoch, len(process))
    epochs = len(process) // places
    shown = places if process.constant else epochs * places
    sensitivity, noise, lipschitz = (np.array(values[:shown]).reshape(-1, places) for values in _values(process))
    mus = mus_by_place(sensitivity, noise, lipschitz)
    worst = max(float(mus.max()), math.sqrt(epochs * float(np.square(mus).mean())))
    return None if worst <= _LARGEST_MU else fact("hardly_protected", at_most=_LARGEST_MU, mu=worst)


def _few_enough(process: Process) -> Fact | None:
    batches = process.batches.per_epoch
    return None if batches <= _MOST_PLACES else fact("too_many_batches", at_most=_MOST_PLACES, batches=batches)


def _little_enough(process: Process) -> Fact | None:
    if any(one.failure(process) is not None for one in (SMOOTH, ALIKE_IF_NEW)):
        return None
    per_epoch = process.batches.per_epoch
    pairs = per_epoch * (per_epoch - 1) // 2 if per_epoch <= MOST_REPRESENTED else 0
    return too_much_to_prepay(process.like_the_first(per_epoch), per_epoch + pairs)


SOME_PROTECTION = Assumption("some_protection", _some_protection)
FEW_ENOUGH = Assumption("few_batches", _few_enough)
_STEPS = {features.NEW_ORDERS, features.CHANGING_STEPS} | features.IN_ORDER | features.ANY_CHECKPOINTS
_COVERED = _STEPS | features.ANY_MAP | features.ANY_NEIGHBOURS

EPOCH_BY_EPOCH = Theorem(
    "random-order/epoch-by-epoch",
    "lastiterate, a composition of epochs in random orders",
    "a new secret order each epoch, any Lipschitz constants",
    _COVERED,
    (FINITE_LIPSCHITZ, SOME_PROTECTION),
    _averaged,
)
HIDDEN_EPOCHS = Theorem(
    "hidden-place/epoch-by-epoch",
    "lastiterate, a composition of epochs with hidden places",
    "a new secret order each epoch, any Lipschitz constants: a place is also compared with other places",
    _COVERED,
    (FINITE_LIPSCHITZ, FEW_ENOUGH, SOME_PROTECTION),
    _hidden,
)
PREPAID_EPOCHS = Theorem(
    "prepayment/epoch-by-epoch",
    "lastiterate, a composition of epochs with hidden places and prepayment",
    "a new secret order each epoch, smooth losses, steps that may move iterates apart",
    {features.NEW_ORDERS, features.UNEVEN_BATCHES, features.CHECKPOINTS} | features.ANY_NEIGHBOURS,
    (
        SEVERAL,
        FINITE_LIPSCHITZ,
        Assumption("growing", _growing),
        SMOOTH,
        ALIKE_IF_NEW,
        Assumption("short_enough", _little_enough),
        SOME_PROTECTION,
    ),
    _prepaid,
)
