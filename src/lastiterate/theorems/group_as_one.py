"""The records of a user as one record, for theorems that see of it only how far it pushes at each step.

Where it is known which batches they are in, pushes of one batch add up. Where it is not: with pushes, domain and everything
else k times as large a bound μ is k times as large, which is what k records cost, wherever they are (docs/proofs.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lastiterate.facts import fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.process import Process


def group_as_one(process: Process) -> Process:
    """What is computed is once as far from what is proved, if both data sets are compared at once."""
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
    """What is stored once stays so."""
    if values.strides == (0,):
        return np.broadcast_to(up(float(values[0]) * count), values.shape)
    return np.asarray(up(values * count))
