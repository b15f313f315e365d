"""The batch size or the step size nearest to the present one that meets a target, and no farther than that."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace

from lastiterate.accounting.searches.by_theorem import Meets
from lastiterate.errors import Unavailable
from lastiterate.runs.per_step import times
from lastiterate.runs.run import Run

_FINENESS = 1e-6  # of the logarithm of a step size
_FIRST_STRIDE = 1 << 16  # so many of them: a few percent
_FARTHEST = 1 << 24  # a factor of ten million, either way

At = Callable[[int], bool]


def run_of_nearest_batch_size(run: Run, meets: Meets) -> Run:
    """With as many epochs. Next to a noise multiplier large batches cost most; next to noise on the mean, small ones."""
    sizes = run.batches.other_sizes
    if len(sizes) < 2:
        raise Unavailable("no_batch_size", field="free", batches=run.batches.called, records=run.batches.records)
    start = min(bisect_left(sizes, round(run.batches.divisor)), len(sizes) - 1)
    costly, cheap = (len(sizes) - 1, 0) if run.noise.on_sum else (0, len(sizes) - 1)

    def met_at(place: int) -> bool:
        return meets(_of_size(run, sizes[place]))

    if met_at(start):
        return _of_size(run, sizes[_last_that_meets(met_at, start, costly, 1)])
    found = _first_that_meets(met_at, start, (cheap, costly), 1)
    if found is None:
        raise Unavailable("no_batch_size_meets", field="free", least=sizes[0], most=sizes[-1], epsilon=meets.epsilon)
    return _of_size(run, sizes[found])


def run_of_nearest_step_size(run: Run, meets: Meets) -> Run:
    """The largest from the present one on, if that meets the target; else the nearest shorter one that does, or longer."""

    def at(place: int) -> Run:
        return replace(run, step_size=times(run.step_size, math.exp(place * _FINENESS)))

    def met_at(place: int) -> bool:
        return meets(at(place))

    if met_at(0):
        longest = _last_that_meets(met_at, 0, _FARTHEST, _FIRST_STRIDE)
        if longest == _FARTHEST:
            raise Unavailable("every_step_size_meets", field="free", epsilon=meets.epsilon)
        return at(longest)
    found = _first_that_meets(met_at, 0, (-_FARTHEST, _FARTHEST), _FIRST_STRIDE)
    if found is None:
        raise Unavailable("no_step_size_meets", field="free", epsilon=meets.epsilon)
    return at(found)


def _of_size(run: Run, size: int) -> Run:
    """With as many passes over the data."""
    batches = run.batches.resized(size)
    if run.length.epochs is not None:
        return replace(run, batches=batches)
    return replace(run, batches=batches, steps=max(1, round(run.steps * batches.per_epoch / run.batches.per_epoch)))


def _last_that_meets(met_at: At, start: int, end: int, stride: int) -> int:
    """Towards `end`, from a start that meets."""
    met = start
    for place in _outward(start, end, stride):
        if not met_at(place):
            return _border(met_at, met, place)
        met = place
    return met


def _first_that_meets(met_at: At, start: int, ends: tuple[int, int], stride: int) -> int | None:
    """Towards the first of the ends, from a start that does not meet; if there is none, towards the second."""
    for end in ends:
        missed = start
        for place in _outward(start, end, stride):
            if met_at(place):
                return _border(met_at, place, missed)
            missed = place
    return None


def _outward(start: int, end: int, stride: int) -> Iterator[int]:
    """Farther and farther away, up to the end."""
    sign = 1 if end > start else -1
    while stride < abs(end - start):
        yield start + sign * stride
        stride *= 2
    if end != start:
        yield end


def _border(met_at: At, met: int, missed: int) -> int:
    while abs(met - missed) > 1:
        middle = (met + missed) // 2
        met, missed = (middle, missed) if met_at(middle) else (met, middle)
    return met
