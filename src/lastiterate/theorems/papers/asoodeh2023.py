"""Asoodeh and Diaz 2023: hockey-stick contraction, no convexity; projected (Theorems 1, 2) and regularised (3, corrected).

In the paper: σ is noise, 2ηC is drift, D the diameter, p or b/n the inclusion, 1 − λ is retain. Batches are averaged over
their own size, or have one size; sums divided by a constant are covered as long as no batch is of unusual size.
Beyond it: the exact contraction curve, and the better of drift and Lipschitz constant.
"""

from __future__ import annotations

import math
from operator import attrgetter

import numpy as np
from scipy.special import gammaincc, ndtri

from lastiterate.curves.profile import Profile
from lastiterate.errors import INSIDE_UNIT, checked_number
from lastiterate.facts import Fact, fact
from lastiterate.mixing.contraction import CurvedContraction, linear_contraction
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import log_gap_above, log_gap_below, threshold_above
from lastiterate.numerics.rounding import up
from lastiterate.runs.per_step import extremes
from lastiterate.runs.process import Process
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import (
    ANY_MAP,
    ANY_NEIGHBOURS,
    BOUNDED,
    CHANGING_STEPS,
    FULL_BATCHES,
    RANDOM_BATCHES,
    RANDOM_SIZES,
    WEIGHT_DECAY,
    Assumption,
)
from lastiterate.theorems.theorem import Theorem

# Of the ball of one step's noise beyond √dimension, in units of the noise. Any is valid; 40 is left with probability
# e^−800, and 32 are 15 % apart, near enough to the best; each takes a pass over the steps.
_RADII = np.geomspace(0.5, 40.0, 32)
# Of the radius still to grow: below the 1e-9 that it is rounded up by; less means more steps one by one.
_SETTLED = math.log(1e-11)
_LARGEST_RATIO = 30.0  # beyond, ε would be in the hundreds: r²/2 = 450 without anything to hide it


def printed_ratio(process: Process) -> float:
    """r = (D + 2ηC)/σ, of the worst step; no less where a decay above 2 moves iterates apart."""
    carried = max(1.0, extremes(process.retain)[1]) * process.diameter
    return up((carried + extremes(process.drift)[1]) / extremes(process.noise)[0])


def sharper_ratio(process: Process) -> float:
    """Return how far apart iterates may be, in units of the noise: by drift or by Lipschitz constant, the less of both."""
    by_drift = extremes(process.retain)[1] * process.diameter + extremes(process.drift)[1]
    by_curvature = process.contraction * process.diameter + extremes(process.sensitivity)[1]
    return up(min(by_drift, by_curvature) / extremes(process.noise)[0])


def _projected(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), a batch drawn afresh at each step.
    Bound: δ ≤ pθ(1 − ((1−p)θ)^T)/(1 − (1−p)θ), θ = θ_ε((D + 2ηC)/σ).
    Assumes: any clipped loss, a bounded domain; only the last iterate is released.
    Attained by: opposite gradients on a tiny interval, to 3 %.
    Reference: Asoodeh and Diaz 2023, Theorems 1 and 2.
    """
    ratio, rate = printed_ratio(process), float(process.inclusion[0])
    return Evidence(Profile(function=lambda e: linear_contraction(e, ratio, rate, len(process))))


def _curved(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), a batch drawn afresh at each step.
    Bound: δ_t = (1 − p)·g(δ_{t−1}) + p·g(1), g(x) = x·θ_{ε(x)}(r), ε(x) = log(1 + (e^ε − 1)/x).
        r = min(retain·D + drift, L·D + s)/ν: how far apart two states are after a step, in units of its noise.
    Assumes: a clipped or smooth loss, a bounded domain; only the last iterate is released.
    Attained by: opposite gradients on a tiny interval, to 3 %.
    Reference: the recursion of Asoodeh and Diaz 2023 with Balle et al. 2019, Theorem 1 (docs/proofs.md).
    """
    ratio, rate = sharper_ratio(process), float(process.inclusion[0])
    return Evidence(CurvedContraction(ratio, rate, len(process)))


def limit_epsilon(process: Process, delta: float) -> float:
    """ε for any number of steps, by Theorems 1 and 2: θ_ε(r) = δ/(p + (1 − p)δ). (22)"""
    target, rate = checked_number("delta", delta, INSIDE_UNIT), float(process.inclusion[0])
    share = math.log(target / (rate + (1 - rate) * target)) - 1e-12
    return float(threshold_above(share, printed_ratio(process)))


def closed_limit_epsilon(process: Process, delta: float) -> float:
    """r·(r/2 + Φ⁻¹(p(1 − δ)/(p + (1 − p)δ))): looser, and closed. (23)"""
    target, rate = checked_number("delta", delta, INSIDE_UNIT), float(process.inclusion[0])
    ratio = printed_ratio(process)
    quantile = float(ndtri(rate * (1 - target) / (rate + (1 - rate) * target)))
    return max(up(ratio * (ratio / 2 + quantile)), 0.0)


def _regularised(process: Process) -> Evidence:
    """Update: X ← (1 − λ)X − η·(a clipped mean gradient) + N(0, ν²), a batch drawn afresh at each step.
    Bound: (1 + e^ε)·(1 − P(χ²_d ≤ κ²)^T) + p·Σ_t (1−p)^{T−t}·Π_{s≥t} θ_ε(2(r_s − νκ)/ν), over κ.
        r_s = (ηC + κν)(1 − (1−λ)^s)/λ; the sum is the recursion of Theorem 1 with a radius that grows.
    Assumes: weight decay, no projection, a known number of parameters, identical steps; only the last iterate is
        released.
    Attained by: full decay, the last step alone, to 3 %.
    Reference: Asoodeh and Diaz 2023, Theorem 3, corrected.
    """
    rate = float(process.inclusion[0])
    return Evidence(Profile(function=lambda e: regularised_delta(process, rate, e)))


def regularised_delta(process: Process, rate: float, epsilons: Floats) -> Floats:
    """The least over κ, the radius of the ball that one step's noise leaves with little probability."""
    dimension = process.dimension or 1
    radii = _RADII + math.sqrt(dimension)
    outside = np.minimum(up(gammaincc(dimension / 2, np.square(radii) / 2), by=1e-9), 1 - 1e-16)
    wrong = np.maximum(up(-np.expm1(len(process) * np.log1p(-outside))), 1e-300)
    best = np.ones_like(epsilons)
    for radius, left in zip(radii.tolist(), wrong.tolist(), strict=True):
        lost = (1 + np.exp(np.minimum(epsilons, 700.0))) * left
        if (lost < best).any():
            ratios = _ratios(process, radius)
            # The last step alone, in a ball that has grown, lets so much through: not worth the others if that is too much.
            least = lost + rate * np.exp(log_gap_below(epsilons, float(ratios[-1])))
            if (least < best).any():
                best = np.minimum(best, up(lost + _inside_ball(process, rate, ratios, epsilons)))
    return best


def _ratios(process: Process, radius: float) -> Floats:
    """How far two states are apart after each step, in units of its noise, until the ball has grown."""
    noise, retain = float(process.noise[0]), float(process.retain[0])
    log_retain = math.log(retain) if retain else -math.inf
    growing = min(len(process), math.ceil(_SETTLED / log_retain) if retain else 1)
    grown = -np.expm1(np.arange(1.0, growing + 1) * log_retain) / (1 - retain) if retain else np.ones(1)
    earlier = np.append(0.0, grown[:-1])
    # r_s − νκ without its cancellation: all but the newest of the noise balls.
    return up(float(process.drift[0]) / noise * grown + 2 * radius * retain * earlier, by=1e-9)


def _inside_ball(process: Process, rate: float, ratios: Floats, epsilons: Floats) -> Floats:
    """The recursion of the process that is projected on the ball; once that has grown, all steps are alike."""
    thetas = np.exp(log_gap_above(epsilons, ratios[:, None]))
    reached = np.zeros_like(epsilons)
    for theta in thetas:
        reached = theta * ((1 - rate) * reached + rate)
    more = len(process) - len(ratios)
    kept = ((1 - rate) * thetas[-1]) ** more
    return kept * reached + linear_contraction(epsilons, float(ratios[-1]), rate, more)


def _bounded_gradients(process: Process) -> Fact | None:
    return None if math.isfinite(extremes(process.drift)[1]) else fact("lacks", what="clipped_gradients")


def _decaying(process: Process) -> Fact | None:
    least, most = extremes(process.retain)
    if least >= 0 and most < 1:
        return None
    return fact("lacks", what="weight_decay") if most == 1 else fact("decay_too_strong", factor=most)


def _known_dimension(process: Process) -> Fact | None:
    return None if process.dimension is not None else fact("lacks", what="dimension")


def _some_reach(process: Process) -> Fact | None:
    if not math.isfinite(process.diameter):
        return None
    ratio = sharper_ratio(process)
    if ratio <= _LARGEST_RATIO:
        return None
    if math.isinf(ratio):
        return fact("neither_clipped_nor_smooth")
    return fact("iterates_too_far_apart", at_most=_LARGEST_RATIO, times_noise=ratio)


BOUNDED_GRADIENTS = Assumption("bounded_gradients", _bounded_gradients)
DECAYING = Assumption("weight_decays", _decaying)
KNOWN_DIMENSION = Assumption("known_dimension", _known_dimension)
SOME_REACH = Assumption("some_reach", _some_reach)

PROJECTED = Theorem(
    "asoodeh2023/projected",
    "Asoodeh and Diaz 2023, Theorems 1 and 2",
    "any clipped loss, bounded domain, independent batches",
    {FULL_BATCHES, RANDOM_BATCHES, RANDOM_SIZES, CHANGING_STEPS} | ANY_MAP | ANY_NEIGHBOURS,
    (BOUNDED, BOUNDED_GRADIENTS),
    _projected,
    sees=attrgetter("noise", "drift", "retain"),
)
CURVED = Theorem(
    "nonlinear-contraction",
    "lastiterate, Asoodeh and Diaz 2023 with Balle et al. 2019, Theorem 1",
    "any clipped or smooth loss, bounded domain, independent batches",
    {FULL_BATCHES, RANDOM_BATCHES, RANDOM_SIZES, CHANGING_STEPS} | ANY_MAP | ANY_NEIGHBOURS,
    (
        BOUNDED,
        SOME_REACH,
    ),
    _curved,
    sees=lambda process: (sharper_ratio(process),),
)
REGULARISED = Theorem(
    "asoodeh2023/regularised",
    "Asoodeh and Diaz 2023, Theorem 3, corrected",
    "any clipped loss, weight decay, no projection, independent batches",
    {FULL_BATCHES, RANDOM_BATCHES, RANDOM_SIZES, WEIGHT_DECAY} | ANY_NEIGHBOURS,
    (
        BOUNDED_GRADIENTS,
        DECAYING,
        KNOWN_DIMENSION,
    ),
    _regularised,
    "E0.1: printed with a radius for a diameter, which a counterexample refutes; E0.2: b/(n − b) for b/n",
    sees=attrgetter("noise", "drift", "retain"),
)
