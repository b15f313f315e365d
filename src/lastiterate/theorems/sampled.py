"""Random batches: what the last steps of a run reveal if every iterate leaves."""

from __future__ import annotations

import math

import numpy as np

from lastiterate.curves.adjacency import FIXED_SIZE, POISSON, REPLACE_ONE
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.mixed_steps import mixed_subsampled_gaussian
from lastiterate.curves.notion import Notion
from lastiterate.curves.subsampled import SubsampledGaussians, subsampled_gaussian
from lastiterate.curves.zeroed_out import Step, ZeroedOut
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_levels
from lastiterate.numerics.rounding import up
from lastiterate.runs.per_step import each, extremes, is_constant
from lastiterate.runs.process import Process
from lastiterate.theorems.features import Assumption

# Each is integrated by itself; a step is rounded up to the next, by 11 % at most and usually far less.
_MOST_LEVELS = 200
_FEW_LEVELS = 40  # the same where each is put on a lattice
_MOST_ON_A_LATTICE, _LARGEST_ON_A_LATTICE = 50_000, 8.0  # steps, and a push over the noise


def sampled_step(process: Process, mu: float) -> Notion:
    """One step on a random batch that would be μ-GDP if the batch were known to have the record.

    C_p(G(μ)) where batches with the record, with its neighbour and without either are all within μ; where the sum is divided
    by a constant, the law of Poisson sampling; where it is divided by the size of the batch, C_p(G(share·μ)) averaged over
    that size (docs/proofs.md).
    """
    rate, sampling = float(process.inclusion[0]), process.batches.sampling
    if len(process.levels) > 1:
        return mixed_subsampled_gaussian(mu=up(mu), inclusion=rate, levels=process.levels)
    law = process.adjacency if sampling is POISSON else REPLACE_ONE
    return subsampled_gaussian(mu=up(mu), inclusion=rate, sampling=sampling, adjacency=law).relabelled(
        process.adjacency
    )


def sampled_window(process: Process, count: int) -> Notion:
    """The last `count` steps of a run, every iterate released."""
    ratios = each(np.divide, process.sampled[-count:], process.noise[-count:])
    if is_constant(ratios):
        return compose_counted([(sampled_step(process, float(ratios[0])), count)])
    levels, counts = few_levels(ratios, _MOST_LEVELS, 1e-9)
    steps = [sampled_step(process, mu) for mu in levels.tolist()]
    return compose_counted(list(zip(steps, counts.tolist(), strict=True)))


def released_window(process: Process, count: int) -> Notion:
    """The same, sharper where another record takes the place of one that contributes nothing."""
    composed = sampled_window(process, count)
    apart = not process.adjacency.replaces and process.batches.sampling is FIXED_SIZE
    if not apart or not isinstance(composed, SubsampledGaussians) or not _worth_a_lattice(process, count):
        return composed
    last = slice(len(process) - count, None)
    ratios = [each(np.divide, values[last], process.noise[last]) for values in (process.sensitivity, process.sampled)]
    return ZeroedOut(_few_steps(process, *ratios), composed)


def _worth_a_lattice(process: Process, count: int) -> bool:
    """Of more steps, or of larger pushes, lattices take long and gain little."""
    largest = extremes(process.sampled)[1] / extremes(process.noise)[0]
    return count <= _MOST_ON_A_LATTICE and largest <= _LARGEST_ON_A_LATTICE and float(process.inclusion[0]) < 1


def _few_steps(process: Process, near: Floats, far: Floats) -> tuple[tuple[Step, int], ...]:
    """Each rounded up to the next of a few: how far from others, and the largest part of it that nothing is away."""
    rate, part = float(process.inclusion[0]), min(float(np.max(near / far)), 1.0)
    if is_constant(far):
        return (((up(part * float(far[0])), up(float(far[0])), rate), len(far)),)
    levels, counts = few_levels(far, _FEW_LEVELS, 1e-9)
    found = ((up(part * one), up(one), rate) for one in levels.tolist())
    return tuple(zip(found, counts.tolist(), strict=True))


def _bounded_records(process: Process) -> Fact | None:
    if process.batches.constant_size or math.isfinite(extremes(process.sampled)[1]):
        return None
    return fact("record_gradients_unbounded")


BOUNDED_RECORDS = Assumption("bounded_records", _bounded_records)
