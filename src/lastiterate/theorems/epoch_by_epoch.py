"""Shuffled batches as a composition of epochs: for steps that move iterates apart.

Take every epoch for released at its end. Given where the record's turn falls in an epoch, the steps after it hide the push
as in Balle et al. 2019 and Kong and Ribero 2025; the place is uniformly random, so an epoch is an average of Gaussian
mechanisms; epochs compose. Nothing grows from one epoch into the next, whatever the Lipschitz constants.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from lastiterate.algorithms.batches import SHUFFLED, Turns
from lastiterate.algorithms.process import Process
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_levels
from lastiterate.numerics.rounding import down, up
from lastiterate.privacy.averaged import AveragedGaussianDP
from lastiterate.privacy.compose import compose_counted
from lastiterate.privacy.notion import Notion
from lastiterate.theorems.assumptions import FINITE_LIPSCHITZ, batches
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.theorem import Assumption, Theorem

# Of epochs that are counted as alike: each is one more transform, and fewer count more epochs as the worst.
_MOST_GROUPS = 6
_MOST_LEVELS = 100  # of μ within an epoch: rounded up to the next, by less than 10 %; each is a term of every sum
# With ∞ here the next step might make NaN of it; a shift that is hidden so well costs nothing either way.
_LARGEST_HIDDEN = 1e280
_LARGEST_MU, _MOST_STEPS = 8.0, 10**7  # ε is 65 there, at δ = 1e-5; and a run of so many steps is held in a few arrays


def mus_by_place(sensitivity: Floats, noise: Floats, lipschitz: Floats) -> Floats:
    """μ of a record with one turn, for each place of each epoch (the rows): s/√(ν² + hidden).

    What the later steps hide of a shift, in the units of its own step: Σ_k ν_k²/(L_{j+1}⋯L_k)², rounded down.
    """
    hidden = np.zeros(len(noise))
    mus = np.empty_like(noise)
    with np.errstate(divide="ignore", over="ignore"):
        for place in range(noise.shape[1] - 1, -1, -1):
            mus[:, place] = sensitivity[:, place] / np.sqrt(np.square(noise[:, place]) + hidden)
            hidden = (np.square(noise[:, place]) + hidden) / np.square(lipschitz[:, place])
            hidden = np.minimum(down(hidden, operations=10), _LARGEST_HIDDEN)
    return up(mus)


def epoch_average(process: Process) -> AveragedGaussianDP:
    """One whole epoch in a random order, from a common state."""
    per_epoch = process.batches.per_epoch
    return _average(_mus(process, 0, per_epoch, per_epoch)[0], per_epoch)


def _composed(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), a new secret order each epoch.
    Bound: epochs composed, each the average over the places j of a record of G(μ_j), μ_j = s/√(ν² + Σ_k ν²/L^{2k}).
        The sum is over the steps that follow the record's turn in its epoch. Where steps differ, epochs are counted in a
        few groups, each as one that is no better than any of its epochs at any place.
    Assumes: a known Lipschitz constant, above 1 somewhere; releases at the end of epochs alone.
    Attained by: one epoch of two batches, to 1 %.
    Reference: a composition of averages (docs/proofs.md).
    """
    per_epoch = process.batches.per_epoch
    whole, rest = divmod(len(process), per_epoch)
    counted: list[tuple[Notion, int]] = []
    if whole:
        shown = per_epoch if process.constant else whole * per_epoch
        mus = _mus(process, 0, shown, per_epoch)
        for first, last, count in groups_of_epochs(len(mus), whole):
            counted.append((_average(mus[first:last].max(axis=0), per_epoch), count))
    if rest:
        counted.append((_average(_mus(process, len(process) - rest, len(process), rest)[0], per_epoch), 1))
    return Evidence(compose_counted(counted))


def _mus(process: Process, first: int, last: int, places: int) -> Floats:
    values = (process.sensitivity, process.noise, process.lipschitz)
    return mus_by_place(*(np.array(array[first:last]).reshape(-1, places) for array in values))


def groups_of_epochs(shown: int, epochs: int) -> list[tuple[int, int, int]]:
    """A few groups of consecutive epochs, from one to another, and of how many: all, where one is shown for all."""
    if shown == 1:
        return [(0, 1, epochs)]
    edges = [int(part[0]) for part in np.array_split(np.arange(shown), min(_MOST_GROUPS, shown))]
    return [(first, last, last - first) for first, last in pairwise([*edges, shown])]


def _average(mus: Floats, per_epoch: int) -> AveragedGaussianDP:
    """Each place with probability 1/per_epoch, none with the rest; many values of μ are rounded up to a few."""
    values, counts = few_levels(mus, _MOST_LEVELS, 1e-4)
    absent = 1 - len(mus) / per_epoch
    return AveragedGaussianDP(mus=np.append(values, 0.0), weights=np.append(counts / per_epoch, max(absent, 0.0)))


def _new_orders(process: Process) -> str | None:
    if process.batches.turns is Turns.ONE_ORDER:
        return "it needs a new order each epoch, but there is one order for the whole run"
    return None


def _released_with_epochs(process: Process) -> str | None:
    cut = [release for release in process.releases if release % process.batches.per_epoch]
    if not cut:
        return None
    return f"it needs releases after whole epochs of {process.batches.per_epoch} steps, but one is at {cut[0]}"


def _growing(process: Process) -> str | None:
    if process.contraction > 1:
        return None
    return f"no step moves iterates apart (lipschitz at most {process.contraction:.6g}), so that random-order is better"


def _some_protection(process: Process) -> str | None:
    """With less, composing takes long and is worth little."""
    if len(process) > _MOST_STEPS:
        return f"it needs at most {_MOST_STEPS:g} steps, but there are {len(process):g}"
    places = min(process.batches.per_epoch, len(process))
    epochs = len(process) // places
    shown = places if process.constant else epochs * places
    mus = _mus(process, 0, shown, places)
    worst = max(float(mus.max()), math.sqrt(epochs * float(np.square(mus).mean())))
    if worst <= _LARGEST_MU:
        return None
    return f"it needs a mu of {_LARGEST_MU:g} at most, of a turn and in all, but there is {worst:.3g}: hardly any protection"


NEW_ORDERS = Assumption("each epoch has a new order", _new_orders)
RELEASED_WITH_EPOCHS = Assumption("releases at the end of epochs", _released_with_epochs)
GROWING = Assumption("some step moves iterates apart", _growing)
SOME_PROTECTION = Assumption("some protection", _some_protection)

EPOCH_BY_EPOCH = Theorem(
    "random-order/epoch-by-epoch",
    "lastiterate, a composition of epochs in random orders",
    "a new secret order each epoch, any Lipschitz constants",
    (
        batches("shuffled batches", *SHUFFLED),
        NEW_ORDERS,
        RELEASED_WITH_EPOCHS,
        FINITE_LIPSCHITZ,
        GROWING,
        SOME_PROTECTION,
    ),
    _composed,
)
