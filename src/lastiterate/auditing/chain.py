"""Noisy chains on an interval: both laws of one coordinate, computed on a grid.

The noise moves mass by differences of the normal distribution, and projection gathers what leaves the interval at its ends.
Coarse grids keep a matrix for each map, which treats a map as constant on cells. Fine ones split what a map moves between
the two nearest points of an even grid, and convolve. Either way the error falls with the square of the cells' width;
`delta_with_error` measures it, by halving the cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import ndtr

from lastiterate.auditing.grid_steps import (
    LARGEST,
    Convolution,
    GridKernel,
    Map,
    Matrices,
    branches,
    largest_epsilon,
    worse_order,
)
from lastiterate.display import summary
from lastiterate.errors import (
    FINITE,
    POSITIVE,
    UNIT,
    Interval,
    InvalidInput,
    check_fields,
    checked_array,
    checked_count,
    must_be,
    shown,
)
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import Turns
from lastiterate.runs.per_step import extremes
from lastiterate.runs.run import Run

_COARSE = 512  # cells up to which a matrix keeps its relative precision at about the cost of a convolution
_MOST_CELLS = 1_000_000
_FAR = 9.5  # standard deviations: beyond, 1e-21
_ROUNDING = 4e-17  # of a cell, a step
_SAME = 1e-14  # of the interval: places that are moved alike up to rounding

_Step = tuple[GridKernel, float]  # and how likely the record is in its batch


@dataclass(frozen=True)
class Chain:
    """The chain x ← Π(φ(x) + N(0, noise²)) on the interval [low, high], from `start`, computed on a grid.

    φ is `without` in a batch without the record, and `record` or `neighbour` in a batch with it. `hazard[t]` is the
    probability that the record is in batch t, given that it was in no earlier batch of its epoch; an epoch has `per_epoch`
    steps, or 1 if batches are independent or fixed. With `one_order` the record's position is drawn once for all epochs.

    If steps differ, step t uses the maps `changes[which[t] − 1]`, and the maps above if `which[t]` is 0. `left_out` is the
    probability that a run is not described by these maps.
    """

    without: Map
    record: Map
    neighbour: Map
    noise: Floats
    hazard: Floats
    low: float
    high: float
    start: float = 0.0
    per_epoch: int = 1
    cells: int = 200
    in_full: bool | None = None  # whether every map has a matrix; by default, if there are few cells
    one_order: bool = False
    changes: tuple[tuple[Map, Map, Map], ...] = ()
    which: tuple[int, ...] | None = None
    left_out: float = 0.0

    def __repr__(self) -> str:
        return summary(self, f"{len(self.noise)} steps on [{self.low:g}, {self.high:g}]", f"{self.cells} cells")

    def __post_init__(self) -> None:
        for name in ("without", "record", "neighbour"):
            if not callable(getattr(self, name)):
                raise must_be(name, "a function of positions", f"{shown(getattr(self, name)):.60}")
        check_fields(self, FINITE, "low", "high", "start")
        for name, least in (("per_epoch", 1), ("cells", 2)):
            object.__setattr__(self, name, checked_count(name, getattr(self, name), least))
        if self.cells > _MOST_CELLS:
            raise must_be("cells", f"at most {_MOST_CELLS}", f"{self.cells}")
        for name, within in (("noise", POSITIVE), ("hazard", UNIT)):
            object.__setattr__(self, name, _one_per_step(name, getattr(self, name), within))
        if not self.low <= self.start <= self.high or self.low == self.high:
            raise InvalidInput("start_outside_interval", low=self.low, high=self.high, start=self.start)
        if self.which is not None and (
            len(self.which) != len(self.noise) or not all(0 <= one <= len(self.changes) for one in self.which)
        ):
            raise InvalidInput("chain_which", field="which", got=f"{shown(self.which):.60}", most=len(self.changes))
        if len(self.noise) != len(self.hazard):
            raise InvalidInput("chain_lengths_differ", noise=len(self.noise), hazard=len(self.hazard))

    def delta(self, epsilons: Floats) -> Floats:
        """δ(ε) of the last iterate, in the worse of both orders."""
        found = worse_order(*self.laws, epsilons, *self._rounding)
        return found - (1 + np.exp(np.minimum(epsilons, LARGEST))) * self.left_out if self.left_out else found

    def epsilon(self, delta: float) -> float:
        """The smallest ε with δ(ε) ≤ `delta`."""
        return largest_epsilon(lambda epsilon: float(self.delta(np.array([epsilon]))[0]), delta)

    def delta_with_error(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """δ(ε) on cells half as wide, and its change: about three times the remaining error."""
        finer = self.finer.delta(epsilons)
        return finer, np.abs(finer - self.delta(epsilons))

    def least_epsilon(self, delta: float) -> float:
        """The smallest ε at which δ(ε) minus its error is at most `delta`."""

        def least(epsilon: float) -> float:
            found, error = self.delta_with_error(np.array([epsilon]))
            return float(found[0] - error[0])

        return largest_epsilon(least, delta)

    @cached_property
    def finer(self) -> Chain:
        """Return the chain on cells half as wide."""
        return replace(self, cells=2 * self.cells, in_full=self._in_full)

    def on(self, cells: int) -> Chain:
        """Return the chain on this number of cells."""
        return replace(self, cells=cells)

    @cached_property
    def laws(self) -> tuple[Floats, Floats]:
        """Distributions of the last iterate on the grid, for the record and for its neighbour."""
        one, two = self._after_many() if self._alike and len(self.noise) > 2 * self.cells else self._by_steps()
        return one, two

    @property
    def _alike(self) -> bool:
        (quiet, loud), (rare, often) = extremes(self.noise), extremes(self.hazard)
        return self.per_epoch == 1 and self.which is None and quiet == loud and rare == often

    @property
    def points(self) -> Floats:
        """The ends of the interval, where projection puts mass, and the middles of the cells between them."""
        width = self.high - self.low
        inner = self.low + (np.arange(self.cells) + 0.5) / self.cells * width
        return np.concatenate([[self.low], inner, [self.high]])

    @property
    def _rounding(self) -> tuple[float, float]:
        """Bounds on the rounding error of a cell: absolute, and relative to its mass."""
        steps = len(self.noise)
        summed = max(getattr(step, "count", 1) for maps in (self._maps, *self.changes) for step in maps)
        return 0.0 if self._in_full else _ROUNDING * steps, 4e-16 * (steps * summed + self.cells)

    @property
    def _in_full(self) -> bool:
        return self.cells <= _COARSE if self.in_full is None else self.in_full

    @property
    def _first(self) -> Floats:
        """Law of the start, split between two points so that its mean is right."""
        points, mass = self.points, np.zeros(self.cells + 2)
        above = min(int(np.searchsorted(points, self.start, side="right")), self.cells + 1)
        share = (self.start - points[above - 1]) / (points[above] - points[above - 1])
        mass[above - 1], mass[above] = 1 - share, share
        return mass

    def _by_steps(self) -> Floats:
        start = np.stack([self._first, self._first])
        which = (0,) * len(self.noise) if self.which is None else self.which
        kinds = list(zip(self.noise.tolist(), which, strict=True))
        of_kind = {kind: self._kernel(*kind) for kind in set(kinds)}
        kernels = [of_kind[kind] for kind in kinds]
        if self.one_order:
            return self._by_places(start, kernels)
        steps = list(zip(kernels, self.hazard.tolist(), strict=True))
        return self._one_by_one(start, steps) if self.per_epoch == 1 else self._by_epochs(start, steps, self._one_epoch)

    def _by_places(self, start: Floats, kernels: list[GridKernel]) -> Floats:
        """Average the law over the places of the record in an epoch; past the end of a short run it has none."""
        total, left = np.zeros_like(start), 1.0
        for place, hazard in enumerate([*self.hazard[: self.per_epoch].tolist(), 1.0]):
            if left * hazard > 0:
                turns = cyclic_hazard(self.per_epoch, place, len(kernels)).tolist()
                steps = list(zip(kernels, turns, strict=True))
                total += left * hazard * self._by_epochs(start, steps, self._one_by_one)
            left *= 1 - hazard
        return total

    def _by_epochs(self, mass: Floats, steps: list[_Step], walk: Callable[[Floats, list[_Step]], Floats]) -> Floats:
        """Return the law after all steps; if all epochs are alike, stop once another one changes nothing.

        A law that an epoch changes by a part of itself, it changes by no greater part the next time.
        """
        every = self.per_epoch
        alike = steps[:-every] == steps[every:]
        for first in range(0, len(steps), every):
            before, mass = mass, walk(mass, steps[first : first + every])
            if alike and first + 2 * every <= len(steps) and np.allclose(mass, before, rtol=2e-16 * every, atol=0.0):
                rest = len(steps) % every
                return walk(mass, steps[len(steps) - rest :]) if rest else mass
        return mass

    def _one_by_one(self, mass: Floats, steps: list[_Step]) -> Floats:
        """Return the law after steps at which the record is used independently of the steps before."""
        for (kernel, hazard), alike in groupby(steps):
            count = sum(1 for _ in alike)
            if hazard == 0:
                mass = kernel.idle(mass, count)
                continue
            for _ in range(count):
                mass = kernel((1 - hazard) * mass, hazard * mass)
        return mass

    def _one_epoch(self, unseen: Floats, steps: list[_Step]) -> Floats:
        """Return the law after an epoch in which the record is used once; mass is split by whether it was."""
        seen = none = np.zeros_like(unseen)
        for kernel, hazard in steps:
            unseen, seen = kernel((1 - hazard) * unseen, none), kernel(seen, hazard * unseen)
        return unseen + seen

    def _after_many(self) -> Floats:
        """Laws after equal steps, by powers of one matrix."""
        hazard = float(self.hazard[0])
        without, *within = (self._matrix(step, float(self.noise[0])) for step in self._maps)
        powers = [np.linalg.matrix_power((1 - hazard) * without + hazard * one, len(self.noise)) for one in within]
        return np.stack([self._first @ power for power in powers])

    @property
    def _maps(self) -> tuple[Map, Map, Map]:
        return self.without, self.record, self.neighbour

    def _kernel(self, noise: float, which: int) -> GridKernel:
        maps = (self._maps, *self.changes)[which]
        if self._in_full:
            return Matrices(*(self._matrix(step, noise) for step in maps))
        width, reach = (self.high - self.low) / self.cells, _FAR * noise
        ends = self.low - reach, self.high + reach
        moves = [
            [(chance, (np.clip(places, *ends) - self.low) / width) for chance, places in branches(step, self.points)]
            for step in maps
        ]
        return Convolution(moves, noise / width, self.cells)

    def _matrix(self, step: Map, noise: float) -> Floats:
        """Transition matrix of a step; a map that moves all places alike needs one row only."""
        edges, points = np.linspace(self.low, self.high, self.cells + 1), self.points
        moves = branches(step, points)
        ends, inner = [0, -1], slice(1, -1)
        alike = all(np.ptp(places - points) <= _SAME * (self.high - self.low) for _, places in moves)
        total = np.zeros((self.cells + 2, self.cells + 2))
        along = (np.arange(1 - self.cells, self.cells + 1) - 0.5) * ((self.high - self.low) / self.cells)
        row, sides = np.zeros((1, 2 * self.cells + 1)), np.zeros((2, self.cells + 2))
        for chance, places in moves:
            if alike:
                _add_moved(row, chance, along, (places - points)[1:2], noise)
                _add_moved(sides, chance, edges, places[ends], noise)
            else:
                _add_moved(total, chance, edges, places, noise)
        if alike:
            total[ends], total[inner] = sides, _rows_alike(row[0], self.cells)
        return total


def _rows_alike(row: Floats, cells: int) -> Floats:
    """Return all rows of a transition that moves all cells alike from one row that is twice as long."""
    starts = np.arange(cells - 1, -1, -1)
    inner = sliding_window_view(row[1:-1], cells)[starts]
    below, above = np.cumsum(row[:-1]), np.cumsum(row[:0:-1])[::-1]
    return np.column_stack([below[starts], inner, above[starts + cells]])


def _add_moved(total: Floats, chance: float, edges: Floats, places: Floats, noise: float) -> None:
    """Add to each cell of `total` the mass that noise moves there from each place; the outer two lie beyond the ends.

    By the tails on the side of each edge: those of the distribution function alone would round to 0 far above the mean.
    """
    away = (edges - places[:, None]) / noise
    above = away > 0
    tails = ndtr(np.negative(np.abs(away, out=away), out=away), out=away)
    within = np.abs(tails[:, 1:] - tails[:, :-1])
    row, cell = np.nonzero(above[:, 1:] != above[:, :-1])  # the cell that the place itself is in
    within[row, cell] = 1 - tails[row, cell] - tails[row, cell + 1]
    total[:, 1:-1] += np.multiply(within, chance, out=within)
    total[:, 0] += chance * np.where(above[:, 0], 1 - tails[:, 0], tails[:, 0])
    total[:, -1] += chance * np.where(above[:, -1], tails[:, -1], 1 - tails[:, -1])


def _one_per_step(name: str, values: Any, within: Interval) -> Floats:
    array = checked_array(name, values, within)
    if array.ndim != 1 or not array.size:
        raise must_be(name, "a list with one number per step", f"shape {array.shape}")
    return array


def iid_hazard(rate: float, steps: int) -> Floats:
    """Probability that the record is used at each step, for batches drawn afresh."""
    return np.full(steps, rate)


def shuffled_hazard(per_epoch: int, steps: int, last: float = 1.0) -> Floats:
    """Probability of use at each step given no use in the epoch before; `last`: size of the last batch."""
    place = np.arange(steps) % per_epoch
    return np.where(place == per_epoch - 1, 1.0, 1.0 / (per_epoch - 1 + last - np.minimum(place, per_epoch - 2)))


def cyclic_hazard(per_epoch: int, place: int, steps: int) -> Floats:
    """Whether each step uses the record, at the same place of every epoch."""
    return (np.arange(steps) % per_epoch == place).astype(float)


# Chains of runs: which runs a grid can hold, and with how many cells.


_MOST_STEPS = 20_000  # where they are not powers of one matrix
_ROUGH = 64
_COARSE_GRID = 200
_CELLS_PER_NOISE = 4
_MOST_GRID_CELLS = 400


def short_enough(run: Run) -> bool:
    """Whether a grid can hold the run: few steps, batches of one size, and every record used."""
    batches = run.batches
    if batches.passes and batches.per_epoch * batches.largest != batches.records:
        return False
    return run.steps <= (_MOST_STEPS if run.batches.passes else 10**9)


def interval_width(run: Run) -> float | None:
    """Width of an interval in the domain on which projection acts alone; None if there is none."""
    width = run.domain.widest_interval
    return width if math.isfinite(width) and run.prox is None else None


def chain_of(run: Run, maps: tuple[Map, Map, Map], half: float, noise: Floats, **more: Any) -> Chain:
    """Return the chain of a run with these maps and the turns of its batches."""
    batches, count = run.batches, run.steps
    every = batches.per_epoch if batches.shuffled else 1
    hazard = shuffled_hazard(every, count) if batches.shuffled else batches.inclusion(count)
    once = batches.turns is Turns.ONE_ORDER
    return Chain(*maps, noise, hazard, -half, half, per_epoch=every, one_order=once, cells=_COARSE_GRID, **more)


def refined(chain: Chain) -> Chain:
    """Return the chain on cells that are narrow beside the noise."""
    return chain.on(max(_COARSE_GRID, min(_MOST_GRID_CELLS, _wanted(chain))))


def rough(chain: Chain) -> Chain:
    """Return the chain on few cells, enough to compare two chains."""
    return chain.on(max(_ROUGH, min(_COARSE_GRID, _wanted(chain))))


def _wanted(chain: Chain) -> int:
    return round(_CELLS_PER_NOISE * (chain.high - chain.low) / float(chain.noise.min()))
