"""Steps that are alike on a bounded set, in units of their noise: on which rows, levels and cuts their tables are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from lastiterate.mixing.distances import Scale, Step
from lastiterate.mixing.settled import BlockEnds
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import threshold_above
from lastiterate.numerics.rounding import up
from lastiterate.runs.process import Process
from lastiterate.theorems.block_mixing import ends_of
from lastiterate.theorems.places import exchange_of

_WIDTH, _FEWEST_ROWS, _MOST_ROWS = 0.1, 8, 64  # of rows: distances are rounded up to the next
_LEVELS, _BEND = 160, 2.0  # of loss, closer together near 0: chords lie above
# Where levels end: far above what is lost in the end, and not where a single step would end.
_ABOVE, _PER_WIDTH = 4.0, 2.6
_CUTS, _FEW_CUTS, _MANY_ROWS = 20, 10, 40  # levels that noise is reflected at: more are tighter, and slower
_LOG_NEGLIGIBLE = math.log(1e-10)
# Tables that differ less between distances, where they are worth a note, stay as they are.
_SETTLED, _NOTED = 1e-3, 1e-15


@dataclass(frozen=True, eq=False)
class Bounded:
    """Steps that are alike on a bounded set, in units of their noise."""

    process: Process

    @cached_property
    def width(self) -> float:
        return up(self.process.diameter / float(self.process.noise[0]))

    @cached_property
    def push(self) -> float:
        return up(float(self.process.sensitivity[0]) / float(self.process.noise[0]))

    @cached_property
    def scale(self) -> Scale:
        count = self._rows
        all_at_once, alone = (
            float(threshold_above(_LOG_NEGLIGIBLE, one)) for one in (self.width + self.push, self.push)
        )
        highest = min(all_at_once, alone + _ABOVE + _PER_WIDTH * self.width)
        levels = highest * (np.arange(_LEVELS + 1) / _LEVELS) ** _BEND
        cuts = _CUTS if count <= _MANY_ROWS else _FEW_CUTS
        return Scale(
            np.linspace(0.0, self.width, count + 1), levels, 0.4 * highest * (np.arange(cuts) / (cuts - 1)) ** 2
        )

    @property
    def _rows(self) -> int:
        """So many that a push is a whole number of rows, or nearly."""
        least = min(max(round(self.width / _WIDTH), _FEWEST_ROWS), _MOST_ROWS)
        return min(range(least, least * 4 // 3 + 1), key=lambda n: math.ceil(n * self.push / self.width) / n)

    @cached_property
    def turn(self) -> Step:
        """A step that sees the record."""
        return self._step(self.push)

    @cached_property
    def exchanged(self) -> Step:
        """A step that sees the record on one data set, and another record in its stead on the other."""
        push = exchange_of(self.process) * self.push
        return self.turn if push == self.push else self._step(push)

    @cached_property
    def free(self) -> Step:
        return self._step(0.0)

    def _step(self, push: float) -> Step:
        return Step(self.scale, self._moved(push), push)

    def _moved(self, push: float) -> Floats:
        lipschitz, retain, drift = (float(getattr(self.process, name)[0]) for name in ("lipschitz", "retain", "drift"))
        rows, noise = self.scale.rows, float(self.process.noise[0])
        with np.errstate(invalid="ignore"):
            by_curvature = np.where(rows > 0, lipschitz * rows, 0.0) + push
        return np.minimum(by_curvature, retain * rows + drift / noise)

    def ends(self, table: Floats) -> BlockEnds:
        return BlockEnds(partial(self.scale.along, table[0]), self.scale.levels, table[-1])

    def block(self, length: int, table: Floats | None = None) -> BlockEnds:
        """So many steps, or epochs of passes, also by the shift engine and composition; M between levels by chords."""
        known, levels = ends_of(self.process, length), self.scale.levels
        if table is None:
            return BlockEnds(known.common_delta, levels, known.apart_delta(levels))
        row = table[0]
        return BlockEnds(
            lambda epsilons: np.minimum(self.scale.along(row, epsilons), known.common_delta(epsilons)),
            levels,
            np.minimum(table[-1], known.apart_delta(levels)),
        )

    def carried(self, table: Floats, steps: int) -> Floats:
        """So many steps without the record before what the table is about."""
        for _ in range(steps):
            if self.settled(table):
                return self.long_before(table)
            table = self.free.before(table)
        return table

    def long_before(self, table: Floats) -> Floats:
        """Any number of steps without the record before what a settled table is about: an upper bound for all of them.

        Steps that bring nothing apart leave at most what there was. Others take two states to at most the diameter, for
        which the last row stands; two that agree stay together, and the first row is theirs.
        """
        if self.process.contraction <= 1:
            return table
        return np.concatenate([table[:1], np.broadcast_to(table[-1], table[1:].shape)])

    @staticmethod
    def settled(table: Floats) -> bool:
        """No distance costs more than none: earlier steps have nothing left to hide."""
        noted = np.maximum(table[0], _NOTED)
        return bool((np.maximum(table[-1], _NOTED) <= noted * (1 + _SETTLED)).all())
