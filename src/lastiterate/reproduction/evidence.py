"""Numbers behind the errata, computed when they are asked for: what is printed, what is corrected, what is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc, ndtr

from lastiterate.auditing.quadratic import exact_mu
from lastiterate.curves.adjacency import FIXED_SIZE, REPLACE_ONE
from lastiterate.curves.baselines import advanced_composition, amplification_by_subsampling, clt_mu_estimate
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.renyi import DEFAULT_ORDERS
from lastiterate.curves.subsampled import subsampled_gaussian
from lastiterate.numerics.normal_gap import log_gap
from lastiterate.reproduction.instances import clipped_softmax_step, clipped_step, one_sampled_step, two_wells
from lastiterate.runs.batches import Batches, Cyclic, FixedSize, FullBatch
from lastiterate.runs.domains import ConvexSet, Unbounded
from lastiterate.runs.losses import general, network
from lastiterate.runs.noise import OnIterate
from lastiterate.runs.run import Run
from lastiterate.shift.distance_bounds import amplification
from lastiterate.theorems.block_mixing import BLOCK_MIXING
from lastiterate.theorems.papers.asoodeh2023 import CURVED, PROJECTED, REGULARISED
from lastiterate.theorems.papers.boninsegna2023 import FIXED_BATCHES
from lastiterate.theorems.papers.langevin import FULL_BATCH, RANDOM_BATCHES
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from lastiterate.theorems.theorem import Theorem


@dataclass(frozen=True)
class Finding:
    """`exact` is what an instance costs, if there is one: no more than the corrected number."""

    what: str
    printed: float
    corrected: float
    exact: float | None = None

    def __str__(self) -> str:
        exact = "" if self.exact is None else f", an instance {self.exact:.5g}"
        return f"{self.what}: printed {self.printed:.5g}{exact}, corrected {self.corrected:.5g}"


def regularised_one_step() -> Finding:
    """E0.1: one of a hundred records; the others push to −5, the record to 5 or to −5."""
    gap = 10.0
    exact = 0.01 * float(ndtr(-_crossing(gap) + 5.0)) - (math.exp(10) - 0.99) * float(ndtr(-_crossing(gap) - 5.0))
    printed = 0.01 / 0.99 * math.exp(float(log_gap(10.0, 5.0)))
    return Finding(
        "delta at epsilon 10 of one step", printed, float(_of(REGULARISED, _one_step_run()).delta(10.0)), exact
    )


def _crossing(gap: float) -> float:
    """Where 0.01·N(5, 1) is (e^10 − 0.99)·N(−5, 1)."""
    return math.log((math.exp(10) - 0.99) / 0.01) / gap


def _one_step_run() -> Run:
    domain = Unbounded(dimension=1)
    return Run(network(clip=5.0), FixedSize(100, 1), 1.0, OnIterate(std=1.0), 1, domain, weight_decay=0.5)


def regularised_two_wells() -> Finding:
    """E0.1: λ = 0.99, ηC = 2, one record of ten, 200 steps; ε = 0."""
    run = Run(
        network(clip=2.0), FixedSize(10, 1), 1.0, OnIterate(std=1.0), 200, Unbounded(dimension=1), weight_decay=0.99
    )
    exact = float(two_wells(0.99, 2.0, 0.1, 200, cells=800).delta(np.zeros(1))[0])
    corrected = float(_of(REGULARISED, run).delta(0.0))
    return Finding("total variation between two wells", printed_theorem_3(0.99, 2.0, 0.1, 200), corrected, exact)


def printed_theorem_3(decay: float, move: float, rate: float, steps: int, epsilon: float = 0.0) -> float:
    """δ by (21) of Asoodeh2023 as printed, noise 1, one dimension: with the radius for the diameter; not a bound (E0.1).

    The best over the radius κ of the noise.
    """
    best = math.inf
    for radius in np.geomspace(2.0, 12.0, 200).tolist():
        grown = (1 - (1 - decay) ** np.arange(1, steps + 1)) / decay
        thetas = np.exp(log_gap(epsilon, (move + radius) * grown - radius))
        reached = 0.0
        for theta in thetas.tolist():
            reached = theta * ((1 - rate) * reached + rate / (1 - rate))
        outside = float(gammaincc(0.5, radius**2 / 2))
        best = min(best, (1 + math.exp(epsilon)) * -math.expm1(steps * math.log1p(-outside)) + reached)
    return best


def projected_limit() -> Finding:
    """E0.3: the setting of Asoodeh2023, Fig. 1; the exact curve for its chord."""
    printed, corrected = (_of(theorem, _figure_1()).epsilon(1e-3) for theorem in (PROJECTED, CURVED))
    return Finding("epsilon at delta 1e-3, Fig. 1", float(printed), float(corrected))


def projected_profile() -> Finding:
    """E0.3: the same by block mixing."""
    printed, corrected = (_of(theorem, _figure_1()).delta(0.02) for theorem in (PROJECTED, BLOCK_MIXING))
    return Finding("delta at epsilon 0.02, Fig. 1", float(printed), float(corrected))


def _figure_1() -> Run:
    return Run(network(clip=2.0), FixedSize(1000, 1), 0.01, OnIterate(std=1.0), 10**6, ConvexSet(diameter=3.0))


def last_batch() -> Finding:
    """E1.1: one epoch of four batches whose maps are constant: the last batch is a Gaussian mechanism, μ = 1/2."""
    run = _convex(Cyclic(records=40, batch_size=10), 4, mu=0.5)
    exact = exact_mu(run, 1.0) ** 2 / 2
    return Finding("rho of the last batch", exact / 4, float(_of(FIXED_BATCHES, run).rdp(2.0)) / 2, exact)


def strong_composition() -> Finding:
    """E1.3."""
    printed = 2 * math.sqrt(2 * 1000 * math.log(1e5)) * 0.5
    corrected = advanced_composition(epsilon=0.5, delta=0.0, times=1000, slack_delta=1e-5)[0]
    return Finding("epsilon of a thousand times 0.5", printed, corrected)


def subsampling() -> Finding:
    """E1.4."""
    corrected = amplification_by_subsampling(epsilon=1.0, delta=1e-5, inclusion=0.01)[0]
    return Finding("epsilon 1 on one record of a hundred", 0.01, corrected, math.log1p(0.01 * math.expm1(1.0)))


def gaussian_noise() -> Finding:
    """E1.4: δ at ε = 0.1 of the noise that is said to give 1e-5."""
    noise = math.sqrt(2 * math.log(1.25e5) / 0.1)
    right = math.sqrt(2 * math.log(1.25e5)) / 0.1
    exact = math.exp(float(log_gap(0.1, 1 / noise)))
    return Finding(f"delta at epsilon 0.1, of noise {noise:.3g} for {right:.3g}", 1e-5, exact, exact)


def free_first_epoch() -> Finding:
    """E1.5: one step, one record of two, s/ν = 1; with S = 1 at each start of an epoch it would cost nothing."""
    run = _convex(FixedSize(records=10, batch_size=5), 1, mu=1.0, curvature=0.5)
    order = float(DEFAULT_ORDERS[np.searchsorted(DEFAULT_ORDERS, 2.0)])
    push = order * (order - 1) / 2
    exact = math.log(0.5 * math.exp(push) + 0.5) / (order - 1)
    return Finding(f"D_{order:g} of one epoch", 0.0, float(_of(RANDOM_BATCHES, run).rdp(order)), exact)


def lost_steps() -> Finding:
    """E1.6: D_2 of a hundred steps of noise 10 without contraction."""
    run = _convex(FullBatch(records=10), 100, mu=0.1)
    exact = exact_mu(run, 0.0) ** 2
    return Finding("D_2 of a hundred steps", 0.1**2, _mu(run) ** 2, exact)


def order_forgotten() -> Finding:
    """E3.1: D_10 of the Gaussian mechanism with μ = 1, which is the last step."""
    return Finding("D_10 of the last step", 0.5, float(GaussianDP(1.0).rdp(10.0)), 5.0)


def central_limit() -> Finding:
    """E4.7: one step with μ = 1 on one record of a hundred."""
    step = subsampled_gaussian(mu=1.0, inclusion=0.01, sampling=FIXED_SIZE, adjacency=REPLACE_ONE)
    estimate = GaussianDP(clt_mu_estimate(mu=1.0, inclusion=0.01, times=1))
    exact = one_sampled_step(1.0, 0.01, 0.0).epsilon(1e-8)
    what = "epsilon at delta 1e-8 of one sampled step"
    return Finding(what, float(estimate.epsilon(1e-8)), float(step.epsilon(1e-8)), exact)


def langevin_limit() -> Finding:
    """E1.7: twice the exact value in the limit."""
    run = _convex(FullBatch(records=10), 10**6, mu=0.1, curvature=1e-3)
    exact = exact_mu(run, 1e-3) ** 2 / 2
    return Finding("rho in the limit", float(_of(FULL_BATCH, run).rdp(2.0)) / 2, _mu(run) ** 2 / 2, exact)


def clipped_constant() -> Finding:
    """E2.2: ηM = 1."""
    worst = max(float(np.linalg.norm(clipped_step(1.0, angle), 2)) for angle in np.linspace(0, math.pi, 2001))
    return Finding("Lipschitz constant of a clipped step", math.sqrt(2), 2 / math.sqrt(3), worst)


def flat_domain() -> Finding:
    """E2.4: on the line y = 0, f = 50xy + x has no curvature; the clipped step, then projected, has slope 1.96."""
    eta, clip, width = 0.1, 0.5, 1e-6

    def step(x: float) -> float:
        gradient = np.array([1.0, 50 * x])
        return x - eta * float(gradient[0]) * min(1.0, clip / float(np.linalg.norm(gradient)))

    places = np.linspace(-0.1, 0.1, 4001).tolist()
    slope = max(abs(step(x + width) - step(x)) / width for x in places)
    return Finding("slope of a clipped step on a line", math.sqrt(2), slope, slope)


def one_epoch_too_many() -> Finding:
    """E2.5: fifty epochs of ten, L = 1; μ² over (s/ν)²."""
    share = amplification(1.0, 10)
    run = _convex(Cyclic(records=100, batch_size=10), 500, mu=1.0)
    return Finding("mu² of fifty epochs", 2 * (1 + 50 * share), 1 + 49 * share, exact_mu(run, 0.0) ** 2)


def corollary_noise() -> Finding:
    """E2.6: α = 10, ε = 1, one epoch, m = 0: D_α of the last step alone at the printed noise."""
    alpha, epsilon = 10.0, 1.0
    noise = 0.5 * math.sqrt(1 / (alpha * epsilon))  # in units of Cλ/b; the sensitivity is 2 of them
    exact = alpha / 2 * (2 / noise) ** 2
    return Finding("D_10 of the last step, for a target of 1", epsilon, exact, exact)


def dobrushin_reversed() -> Finding:
    """E3.3: the divergence at ε = 0.5 vanishes, total variation does not."""
    one, two = np.array([0.6, 0.4]), np.array([0.4, 0.6])
    at_half = float(np.maximum(one - math.exp(0.5) * two, 0).sum())
    distance = float(np.abs(one - two).sum()) / 2
    return Finding("total variation of two rows", at_half, distance, distance)


def iterated_shift() -> Finding:
    """E3.4: L = 0.9, r = 100 steps after the record's turn."""
    printed, best = 0.9**101 / 100, 0.9**200 * (1 - 0.81) / (1 - 0.81**100)
    return Finding("share of the divergence after 100 steps", printed, best)


def clipped_softmax() -> Finding:
    """E4.1: ten classes, ‖x‖ = 8, clip 5, η = 0.05, λ = 0.002."""
    scores = np.array([-18.9422, 0.0, *[-2.789] * 8])
    slope = float(np.linalg.norm(clipped_softmax_step(scores, 8.0, 5.0, 0.05, 0.002), 2))
    return Finding("Lipschitz constant of a clipped softmax step", 1 - 0.05 * 0.002, slope, slope)


def pure_exponential() -> Finding:
    """E5.4: F = 0 and F' = 3x on [0, 1]: the largest logarithm of a ratio of densities."""
    slope = 3.0
    ratios = (math.log(slope / -math.expm1(-slope)), slope - math.log(slope / -math.expm1(-slope)))
    return Finding("pure epsilon of a slope of 3 on [0, 1]", 2 * slope, slope, max(ratios))


def closed_form_above_one() -> Finding:
    """E4.6: c = 1.1, twenty steps, s/ν = 0.1: linear losses are in the class, and cost the composition."""
    power = 1.1**20
    formula = 0.1 * math.sqrt((power - 1) / (power + 1) * 2.1 / 0.1)
    run = _convex(FullBatch(records=10), 20, mu=0.1, curvature=-0.1)
    return Finding("mu of twenty steps with c = 1.1", formula, _mu(run), exact_mu(run, 0.0))


def _convex(batches: Batches, steps: int, mu: float, curvature: float = 0.0) -> Run:
    """Noise 1 on the iterate, step size 1, Hessians from `curvature` to 1."""
    modulus = {"strong_convexity": curvature} if curvature >= 0 else {"weak_convexity": -curvature}
    loss = general(smoothness=1.0, gradient_sensitivity=mu * batches.divisor, **modulus)
    return Run(loss, batches, 1.0, OnIterate(std=1.0), steps)


def _of(theorem: Theorem, run: Run) -> Notion:
    return theorem.notion(run.process)


def _mu(run: Run) -> float:
    """By the shift engine, which says everything in terms of μ."""
    return math.sqrt(float(_of(SHIFT_ENGINE, run).rdp(2.0)))
