"""Shuffled batches as a composition of epochs: for steps that move iterates apart.

Take every epoch for released at its end. Given where the record's turn falls in an epoch, the steps after it hide the push
as in Balle et al. 2019 and Kong and Ribero 2025; the place is random, so an epoch is an average of Gaussian
mechanisms; epochs compose. Nothing grows from one epoch into the next, whatever the Lipschitz constants. Nor does anything
pass a release inside an epoch: the record has one turn, before or after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lastiterate.curves.averaged import AveragedGaussianDP
from lastiterate.curves.compose import compose_counted
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_levels
from lastiterate.numerics.rounding import down, up
from lastiterate.runs.process import Process
from lastiterate.theorems.assumptions import FINITE_LIPSCHITZ
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
from lastiterate.theorems.places import place_sizes
from lastiterate.theorems.theorem import Theorem

# Of epochs that are counted as alike: each is one more transform, and fewer count more epochs as the worst.
_MOST_GROUPS = 6
_MOST_PATTERNS = 8  # different ways to cut epochs by releases: of more, all count as cut wherever one is
_MOST_LEVELS = 100  # of μ within an epoch: rounded up to the next, by less than 10 %; each is a term of every sum
# With ∞ here the next step might make NaN of it; a shift that is hidden so well costs nothing either way.
_LARGEST_HIDDEN = 1e280
_LARGEST_MU, _MOST_STEPS = 8.0, 10**7  # ε is 65 there, at δ = 1e-5; and a run of so many steps is held in a few arrays


def mus_by_place(sensitivity: Floats, noise: Floats, lipschitz: Floats, cuts: tuple[int, ...] = ()) -> Floats:
    """μ of a record with one turn, for each place of each epoch (the rows): s/√(ν² + hidden).

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


def epoch_average(process: Process) -> AveragedGaussianDP:
    """One whole epoch in a random order, from a common state."""
    per_epoch = process.batches.per_epoch
    return _average(process, _mus(process, 0, per_epoch, per_epoch)[0])


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
        """For each place, the worst of these epochs."""
        return np.asarray(mus_by_place(self.sensitivity, self.noise, self.lipschitz, self.cuts).max(axis=0))


def epochs_of(process: Process) -> Iterator[EpochGroup]:
    """All epochs of a run in a few groups: whole ones, those that a release cuts, and the rest of one at the end."""
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


def _cut_epochs(process: Process) -> dict[int, tuple[int, ...]]:
    """For each epoch inside of which something is released: after how many of its steps."""
    found: dict[int, tuple[int, ...]] = {}
    for release in process.releases:
        epoch, inside = divmod(release, process.batches.per_epoch)
        if inside:
            found[epoch] = (*found.get(epoch, ()), inside)
    return found


def _patterns(cut: dict[int, tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The different ways in which epochs are cut; if there are many, one that cuts wherever one of them does."""
    different = sorted(set(cut.values()))
    return different if len(different) <= _MOST_PATTERNS else [tuple(sorted(set().union(*different)))]


def _rows(process: Process, epochs: NDArray[np.intp], count: int, cuts: tuple[int, ...] = ()) -> EpochGroup:
    per_epoch = process.batches.per_epoch
    steps = epochs[:, None] * per_epoch + np.arange(per_epoch)
    sensitivity, noise, lipschitz = (values[steps] for values in _values(process))
    return EpochGroup(sensitivity, noise, lipschitz, count, cuts)


def _values(process: Process) -> tuple[Floats, Floats, Floats]:
    return process.sensitivity, process.noise, process.lipschitz


def _composed(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), a new secret order each epoch.
    Bound: epochs composed, each the average over the places j of a record of G(μ_j), μ_j = s/√(ν² + Σ_k ν²/L^{2k}).
        The sum is over the steps that follow the record's step in its epoch, up to the next release. Where steps differ,
        epochs are counted in a few groups, each as one that is no better than any of its epochs at any place.
    Assumes: a known Lipschitz constant.
    Attained by: one epoch of two batches, to 1 %.
    Reference: a composition of averages (docs/proofs.md).
    """
    return Evidence(compose_counted([(_average(process, one.mus), one.count) for one in epochs_of(process)]))


def _mus(process: Process, first: int, last: int, places: int) -> Floats:
    sensitivity, noise, lipschitz = (np.array(one[first:last]).reshape(-1, places) for one in _values(process))
    return mus_by_place(sensitivity, noise, lipschitz)


def groups_of_epochs(shown: int, epochs: int) -> list[tuple[int, int, int]]:
    """A few groups of consecutive epochs, from one to another, and of how many: all, where one is shown for all."""
    if shown == 1:
        return [(0, 1, epochs)]
    edges = [int(part[0]) for part in np.array_split(np.arange(shown), min(_MOST_GROUPS, shown))]
    return [(first, last, last - first) for first, last in pairwise([*edges, shown])]


def _average(process: Process, mus: Floats) -> AveragedGaussianDP:
    """Each place with its probability, none with the rest; many values of μ are rounded up to a few."""
    sizes, total = place_sizes(process, len(mus))
    values, _ = few_levels(mus, _MOST_LEVELS, 1e-4)
    at_each = np.bincount(np.searchsorted(values, mus), sizes, len(values))
    absent = 1 - at_each.sum() / total
    return AveragedGaussianDP(mus=np.append(values, 0.0), weights=np.append(at_each / total, max(absent, 0.0)))


def _growing(process: Process) -> Fact | None:
    return None if process.contraction > 1 else fact("not_growing", lipschitz=process.contraction)


def _some_protection(process: Process) -> Fact | None:
    """With less, composing takes long and is worth little."""
    if len(process) > _MOST_STEPS:
        return fact("too_many_steps", at_most=_MOST_STEPS, steps=len(process))
    places = min(process.batches.per_epoch, len(process))
    epochs = len(process) // places
    shown = places if process.constant else epochs * places
    mus = _mus(process, 0, shown, places)
    worst = max(float(mus.max()), math.sqrt(epochs * float(np.square(mus).mean())))
    return None if worst <= _LARGEST_MU else fact("hardly_protected", at_most=_LARGEST_MU, mu=worst)


GROWING = Assumption("growing", _growing)
SOME_PROTECTION = Assumption("some_protection", _some_protection)

EPOCH_BY_EPOCH = Theorem(
    "random-order/epoch-by-epoch",
    "lastiterate, a composition of epochs in random orders",
    "a new secret order each epoch, any Lipschitz constants",
    {NEW_ORDERS, CHANGING_STEPS} | IN_ORDER | ANY_CHECKPOINTS | ANY_MAP | ANY_NEIGHBOURS,
    (
        FINITE_LIPSCHITZ,
        SOME_PROTECTION,
    ),
    _composed,
)
