"""Balls and bins, where a record is there or not: what some epochs reveal from a common state."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.balls_and_bins import BallsAndBinsDP
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.notion import Notion
from lastiterate.curves.present_or_absent import present_or_absent
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.levels import few_levels
from lastiterate.numerics.rounding import up
from lastiterate.runs.per_step import is_constant
from lastiterate.runs.process import Process
from lastiterate.theorems.epoch_by_epoch import epoch_average
from lastiterate.theorems.evidence import NoFiniteBound, RecordSchedules
from lastiterate.theorems.places import places_of
from lastiterate.theorems.prepayment import prepaid_evidence
from lastiterate.theorems.shift_engine import schedules_of, shift_evidence

_MOST_LEVELS = 20  # different epochs, each rounded up to the next: each is a loss distribution of its own
_TYPICAL_LOG_DELTA = math.log(1e-6)  # where two guarantees are compared, by estimates: either is valid


def composed_epochs(process: Process, first: int = 0) -> Notion:
    """Every iterate of these epochs released, from this step on; the last epoch may be cut short.

    An epoch whose steps differ counts as one whose steps are all as its worst.
    """
    per_epoch = process.batches.per_epoch
    ratios = _ratios(process, first)
    if is_constant(ratios):
        return _epochs(process, float(ratios[0]), -(-(len(process) - first) // per_epoch))
    padded = np.append(ratios, np.zeros(-len(ratios) % per_epoch)).reshape(-1, per_epoch)
    levels, counts = few_levels(padded.max(axis=1), _MOST_LEVELS, 1e-9)
    parts = [(_epochs(process, mu, n), 1) for mu, n in zip(levels.tolist(), counts.tolist(), strict=True)]
    return compose_counted(parts)


def _ratios(process: Process, first: int) -> Floats:
    if is_constant(process.sensitivity) and is_constant(process.noise):
        return np.broadcast_to(process.step_mu, len(process) - first)
    return np.asarray(process.sensitivity[first:] / process.noise[first:])


def _epochs(process: Process, mu: float, count: int) -> BallsAndBinsDP:
    if not math.isfinite(mu):
        raise NoFiniteBound("gradient_not_bounded")
    return BallsAndBinsDP(up(mu), process.batches.per_epoch, count, process.adjacency)


def hidden_in_the_last_epoch(process: Process) -> Notion:
    """The last iterate: the place in the last epoch is hidden, and all earlier ones count as the worst."""
    places = places_of(process, averaged=True)
    found = schedules_of(places, places.wanted)
    if not all(math.isfinite(record.mu) for record in found):
        raise NoFiniteBound("no_finite_schedule")
    return _hidden_among(found, process.adjacency)


def prepaid_in_the_last_epoch(process: Process, slack: float) -> Notion:
    """The same with prepayment, but for a probability `slack`: one push, of the record against nothing."""
    return _hidden_among(prepaid_evidence(process, averaged=True, slack=slack).schedules, process.adjacency)


def _hidden_among(found: tuple[RecordSchedules, ...], adjacency: Adjacency) -> Notion:
    """One law without the record, and one for each place; where it has no turn at all they are the same."""
    mus, weights = (np.array(values) for values in zip(*((one.mu, one.weight) for one in found), strict=True))
    absent = max(0.0, 1 - float(weights.sum()))
    return present_or_absent(np.append(mus, 0.0), np.append(weights, absent), adjacency=adjacency)


def from_a_common_state(process: Process) -> Notion:
    """Whole epochs on a bounded domain, of which the last iterate is released: the better of both, or an average.

    An average over the record's places holds for any neighbours; the rest for a record that is there or not.
    """
    unbounded = replace(process, diameter=math.inf)
    if process.adjacency.replaces:
        one = len(process) == process.batches.per_epoch
        return epoch_average(process) if one else shift_evidence(unbounded, averaged=True).notion
    ways = (hidden_in_the_last_epoch(unbounded), composed_epochs(process))
    return min(ways, key=lambda one: float(one._epsilon(np.array([_TYPICAL_LOG_DELTA]))[0]))
