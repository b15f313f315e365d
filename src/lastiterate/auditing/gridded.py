"""Runs that are carried along on a grid: how long they may be, how wide, and on how many cells."""

from __future__ import annotations

import math
from typing import Any

from lastiterate.auditing.chain import Chain, shuffled_hazard
from lastiterate.auditing.maps import Map
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import Turns
from lastiterate.runs.run import Run

_MOST_STEPS = 20_000  # where they are not powers of one matrix
_ROUGH = 64
_COARSE = 200
_CELLS_PER_NOISE = 4
_MOST_CELLS = 400


def short_enough(run: Run) -> bool:
    """And all batches of one size, all records used: a grid knows no others."""
    batches = run.batches
    if batches.passes and batches.per_epoch * batches.largest != batches.records:
        return False
    return run.steps <= (_MOST_STEPS if run.batches.passes else 10**9)


def interval_width(run: Run) -> float | None:
    """Of an interval in the domain, on which projection acts alone."""
    width = run.domain.widest_interval
    return width if math.isfinite(width) and run.prox is None else None


def chain_of(run: Run, maps: tuple[Map, Map, Map], half: float, noise: Floats, **more: Any) -> Chain:
    """The record's turns are those of the run's batches."""
    batches, count = run.batches, run.steps
    every = batches.per_epoch if batches.shuffled else 1
    hazard = shuffled_hazard(every, count) if batches.shuffled else batches.inclusion(count)
    once = batches.turns is Turns.ONE_ORDER
    return Chain(*maps, noise, hazard, -half, half, per_epoch=every, one_order=once, cells=_COARSE, **more)


def refined(chain: Chain) -> Chain:
    """Cells that are narrow beside the noise."""
    return chain.on(max(_COARSE, min(_MOST_CELLS, _wanted(chain))))


def rough(chain: Chain) -> Chain:
    """Good enough to see which of two chains costs more."""
    return chain.on(max(_ROUGH, min(_COARSE, _wanted(chain))))


def _wanted(chain: Chain) -> int:
    return round(_CELLS_PER_NOISE * (chain.high - chain.low) / float(chain.noise.min()))
