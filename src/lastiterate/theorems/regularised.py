"""Weight decay keeps the iterates in a ball, nearly always: block mixing without a projection and without convexity.

X_t = (1 − λ)X_{t−1} + (a clipped mean gradient) + noise, so that X_t is a fixed point, plus gradients of norm at most
drift/(2λ) in all, plus a Gaussian vector with variance at most ν²/(1 − (1 − λ)²). Asoodeh and Diaz 2023, Theorem 3, cuts
every step's noise at κν, and their ball has radius (ηC + κν)/λ; to cut the sum is enough: its ball is smaller by about √λ.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from scipy.special import gammaincc, gammainccinv

from lastiterate.curves.ladder import Ladder
from lastiterate.curves.notion import Notion
from lastiterate.curves.slack import NearlyAlways
from lastiterate.numerics.rounding import up
from lastiterate.runs.per_step import extremes
from lastiterate.runs.process import Process
from lastiterate.theorems.block_mixing import FORGETFUL, WHOLE_EPOCHS_IF_NEW, blocks_of_alike, lengths
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import (
    ANY_BATCHES,
    ANY_NEIGHBOURS,
    CHANGING_STEPS,
    IN_ORDER,
    RANDOM_SIZES,
    WEIGHT_DECAY,
    Assumption,
)
from lastiterate.theorems.papers.asoodeh2023 import BOUNDED_GRADIENTS, DECAYING, KNOWN_DIMENSION
from lastiterate.theorems.sampled import BOUNDED_RECORDS
from lastiterate.theorems.theorem import Theorem

# The probability that some iterate leaves the ball; δ grows by 1 + e^ε times it, and less makes a larger ball, as √log.
_LOST = 1e-14


def in_a_ball(process: Process) -> tuple[Process, float]:
    """The process projected on a ball that no iterate leaves, but for a probability; and that probability."""
    if process.dimension is None or not extremes(process.retain)[1] < 1:
        return process, 0.0
    alike = process.worst_alike
    retain, noise = float(alike.retain[0]), extremes(process.noise)[1]
    half = process.dimension / 2
    square = 2 * float(gammainccinv(half, _LOST / len(process))) * (1 + 1e-6)
    lost = len(process) * float(gammaincc(half, square / 2)) * (1 + 1e-6)
    radius = float(alike.drift[0]) / 2 / (1 - retain) + noise * math.sqrt(square / ((1 - retain) * (1 + retain)))
    return replace(alike, diameter=up(2 * radius, by=1e-9)), max(lost, 1e-300)


def _blocks_in_a_ball(process: Process, length: int) -> Notion:
    ball, lost = in_a_ball(process)
    return NearlyAlways(blocks_of_alike(ball, length), lost)


def _bound(process: Process) -> Evidence:
    """Update: X ← (1 − λ)X − η·(a clipped mean gradient) + N(0, ν²), any batches.
    Bound: block mixing in the ball that is left with probability at most P(χ²_d > κ²) at each of T steps; the best
        length.
        Its diameter is drift/(1 − r) + 2κν/√(1 − r²), r = retain, d parameters; δ(ε) grows by (1 + e^ε)·T·P(χ²_d > κ²).
    Assumes: weight decay, no projection, a known number of parameters; only the last iterate is released.
    Attained by: full decay, the last step alone, to 3 %.
    Reference: docs/proofs.md, after Asoodeh and Diaz 2023, Theorem 3.
    """
    ladder = Ladder(lengths(in_a_ball(process)[0]), partial(_blocks_in_a_ball, process))
    return Evidence(ladder, ladder)


REGULARISED_MIXING = Theorem(
    "regularised-mixing",
    "lastiterate, block mixing in the ball that weight decay gives",
    "any clipped loss, weight decay, no projection, any batches",
    {RANDOM_SIZES, CHANGING_STEPS, WEIGHT_DECAY} | ANY_BATCHES | IN_ORDER | ANY_NEIGHBOURS,
    (
        BOUNDED_GRADIENTS,
        BOUNDED_RECORDS,
        DECAYING,
        KNOWN_DIMENSION,
        WHOLE_EPOCHS_IF_NEW,
        Assumption(FORGETFUL.code, lambda process: FORGETFUL.failure(in_a_ball(process)[0])),
    ),
    _bound,
    rung=_blocks_in_a_ball,
)
