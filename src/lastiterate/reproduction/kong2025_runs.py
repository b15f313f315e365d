"""The runs of Kong and Ribero 2025, Fig. 1, and ρ of their (α, αρ)-RDP bounds."""

from __future__ import annotations

import math

from lastiterate.reproduction.bounds import lower_mu, mu_of
from lastiterate.runs.batches import Cyclic
from lastiterate.runs.domains import ConvexSet, Unbounded
from lastiterate.runs.losses import Loss, general
from lastiterate.runs.noise import OnIterate
from lastiterate.runs.run import Run
from lastiterate.theorems.theorem import Theorem

STEP_SIZE, CLIP, NOISE, BATCH, RECORDS = 1e-5, 10.0, 1e-5, 10, 10_000
PER_PASS = RECORDS // BATCH
ONE = (STEP_SIZE * CLIP / (BATCH * NOISE)) ** 2  # (λC/(bσ))²
DIAMETER = 2e-5


def run_of(passes: int, weak: float, clipped: bool = False, bounded: bool = False) -> Run:
    """Smooth as far as Theorem 2.3 allows: λ(M + m) ≤ 1, or 1/2 with clipping."""
    domain = ConvexSet(DIAMETER) if bounded else Unbounded()
    batches = Cyclic(RECORDS, BATCH)
    return Run(loss_of(weak, clipped), batches, STEP_SIZE, OnIterate(NOISE), passes * PER_PASS, domain)


def loss_of(weak: float, clipped: bool) -> Loss:
    smoothness = (0.5 if clipped else 1.0) / STEP_SIZE - weak
    modulus = {"weak_convexity": weak} if weak else {"strong_convexity": 0.0}
    clip = {"clip": CLIP} if clipped else {}
    return general(smoothness=smoothness, gradient_sensitivity=2 * CLIP, **modulus, **clip)


def printed_constant(weak: float, clipped: bool) -> float:
    """L_λ (13), and √2 times as much for clipped steps."""
    smoothness = loss_of(weak, clipped).smoothness
    square = 1 + 2 * STEP_SIZE * weak * (1 + weak / (2 * (smoothness + weak)))
    return math.sqrt(2 * square if clipped else square)


def rho(theorem: Theorem, run: Run) -> float:
    return mu_of(theorem, run) ** 2 / 2


def lower_rho(run: Run) -> float:
    return lower_mu(run) ** 2 / 2


SETTING = (("λ", 1e-5), ("C", 10), ("σ, on the iterate", 1e-5), ("b", 10), ("k", 10_000))
