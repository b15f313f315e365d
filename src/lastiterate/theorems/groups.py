"""The records of a user: as one record, or each at its own place in a secret order.

As one, for theorems that see of it only how far it pushes at each step. Where it is known which batches the records are in,
pushes of one batch add up. Where it is not: with pushes, domain and everything else k times as large a bound μ is k times
as large, which is what k records cost, wherever they are.

In an order that is random and secret each has its own place, and few of them have a bad one. Given the order, k records at
places j_1, …, j_k cost at most μ_{j_1} + … + μ_{j_k}, one neighbour after the other, and the order does not depend on the
data: δ(ε) is at most the average of θ_ε at these sums. Places of different records are drawn without putting back: no k of
them are more than n^k/(n·(n − 1)⋯(n − k + 1)) times as likely as if they were drawn independently, so that the worst law
with at most such a density counts. Proofs: docs/proofs.md.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lastiterate.curves.hidden_participation import AveragedGaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.facts import fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_weighted
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import Turns
from lastiterate.runs.process import Process

_CELLS = 4000  # of the sum of μ: each μ is rounded up to the next
_MOST_RECORDS = 64  # of one user; of more, single cells are too wide
_MOST_LEVELS = 600
_ROUNDED = 1e-11  # of a probability, in convolutions


def group_as_one(process: Process) -> Process:
    """Return the process of one record that pushes as all records of a user together.

    What is computed is once as far from what is proved, if both data sets are compared at once.
    """
    pushes = _pushes(process)
    diameter, displacement = process.diameter, process.displacement
    if not process.members:
        diameter, displacement = up(process.group * diameter), up(process.group * displacement)
    return replace(
        process,
        sensitivity=pushes,
        diameter=diameter,
        displacement=displacement,
        prior_mu=up(process.group * process.prior_mu),
        smooth=fact("records_push_at_once"),
        group=1,
    )


def _pushes(process: Process) -> Floats:
    if not process.members:
        return _times(process.sensitivity, process.group)
    counts = np.resize(np.array(process.members, float), len(process))
    return np.where(counts > 0, up(process.sensitivity * counts), 0.0)


def _times(values: Floats, count: int) -> Floats:
    """Return `values` times `count`, rounded up; an array that stores one number for all steps stays one."""
    if values.strides == (0,):
        return np.broadcast_to(up(float(values[0]) * count), values.shape)
    return np.asarray(up(values * count))


def placed_by_chance(process: Process, one: Notion) -> Notion | None:
    """Return the guarantee for all records of a user, from the average over the places of one record.

    None where the places of several records are not known to be drawn like this.
    """
    if not isinstance(one, AveragedGaussianDP) or process.group > min(_MOST_RECORDS, _slots(process)) or not one.mus:
        return None
    free = max(0.0, 1.0 - math.fsum(one.weights))
    sums, weights = _law_of_sum(np.append(one.mus, 0.0), np.append(one.weights, free), process.group)
    sums, weights = few_weighted(sums, _worst_law(weights, _density(process)), _MOST_LEVELS)
    return AveragedGaussianDP(mus=sums, weights=np.minimum(weights, 1.0), adjacency=one.adjacency)


def _slots(process: Process) -> int:
    """Return how many places there are that records are dealt to, one each."""
    return process.batches.largest * (process.batches.per_epoch - 1) + process.batches.last_size


def _density(process: Process) -> float:
    """Return how many times as likely as independent ones the places of all records may be."""
    if process.batches.turns is Turns.OWN_PLACE:
        return 1.0 + _ROUNDED
    left = 1.0 - np.arange(process.group) / _slots(process)
    return (1.0 + _ROUNDED) * math.exp(-math.fsum(np.log(left).tolist()))


def _law_of_sum(mus: Floats, weights: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the law of the sum of `count` independent μ, each rounded up to a cell: its values and their probabilities."""
    cells = _CELLS // count
    unit = float(mus.max()) / cells
    law: Floats = np.asarray(np.bincount(np.ceil(mus / unit * (1 - 1e-15)).astype(np.intp), weights, cells + 1), float)
    together: Floats = law
    for _ in range(count - 1):
        together = np.convolve(together, law)
    return up(unit * np.arange(len(together)), operations=50), together


def _worst_law(weights: Floats, density: float) -> Floats:
    """Return the law with at most this density beside the other that has as much as it can at the end."""
    above = np.minimum(np.cumsum((density * weights)[::-1]), 1.0)[::-1]
    above[0] = 1.0
    return above - np.append(above[1:], 0.0)
