"""Two methods of unlearning by noisy steps, as their own code counts them, and as it can be counted.

Chien2024: Graph-COM/SGD_unlearning (arXiv 2403.17105), full batches, 100 requests one after the other. Koloskova2025:
stair-lab/certified-unlearning-neural-networks-icml-2025 (arXiv 2506.06985), clipped steps from a clipped model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.kernel.steps import Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.reproduction.evidence import Finding
from lastiterate.runs.batches import FullBatch
from lastiterate.runs.losses import logistic
from lastiterate.runs.noise import Langevin
from lastiterate.runs.run import Run
from lastiterate.shift.optimise import best_schedule

REQUESTS = 100
_L2, _STD, _CLIP = 1e-6, 0.03, 1.0  # `lam`, times the records; `sigma` of Langevin noise; `M`
_TRAINING = 1001  # burn_in + len_list: the steps that their code trains for
_ORDERS = np.linspace(1.001, 1000, 10_000)  # as their code looks at them


@dataclass(frozen=True)
class Chien2024:
    """One data set of their sequential experiment, ε = 1 at δ = 1/n; `printed` is the sum of its stored `k_list_b0`."""

    name: str
    records: int
    printed: int

    @property
    def run(self) -> Run:
        """A logistic regression with rows of norm 1; each removed record is replaced by another."""
        l2 = _L2 * self.records
        loss = logistic(feature_norm=1.0, l2=l2, clip=_CLIP)
        return Run(loss, FullBatch(records=self.records), 1 / (0.25 + l2), Langevin(std=_STD), _TRAINING)

    def further(self, meets: Callable[[float, float], bool]) -> list[int]:
        """Steps after each request. Two endless trainings are Z = s/(1 − c) apart, and each request adds as much.

        `meets` is told the distance and how much of it the noise of the further steps leaves, per unit: c^K/√(Σ c^{2j}).
        """
        process = self.run.process
        factor, noise = float(process.lipschitz[0]), float(process.noise[0])
        apart = float(process.sensitivity[0]) / (1 - factor)
        distance, found = 0.0, list[int]()
        for _ in range(REQUESTS):
            distance = (distance * factor ** found[-1] if found else 0.0) + apart
            count = 1
            while not meets(distance, factor**count / (noise * math.sqrt(_powers(factor, count)))):
                count += 1
            found.append(count)
        return found

    def by_renyi(self, times: float) -> int:
        """ε of (α, α·times·μ²/2)-RDP as they convert it; `times` is 2 in their formula, and 1 for noise of variance 2ησ²."""

        def meets(distance: float, share: float) -> bool:
            rate = times * (distance * share) ** 2 / 2
            return _from_renyi(rate, 1 / self.records) <= 1

        return sum(self.further(meets))

    def by_distance(self) -> int:
        """The same distances; what the noise of the further steps leaves of them is converted exactly."""
        return sum(self.further(lambda distance, share: self._meets(distance * share)))

    def _meets(self, mu: float) -> bool:
        return float(GaussianDP(mu).delta(1.0)) <= 1 / self.records


CHIEN2024 = (Chien2024("MNIST, 3 or 8", 11264, 886), Chien2024("CIFAR-10, 3 or 8", 9728, 1183))


@dataclass(frozen=True)
class Koloskova2025:
    """T steps of length at most `step` from a model in a ball of this radius, both in units of the noise, with decay."""

    radius: float
    step: float
    decay: float
    steps: int

    @property
    def mu(self) -> float:
        """One block: (ρ^T·2·radius + Σρ^j·2·step)/√Σρ^{2j}, whose square is twice what their code calls `epsilon_renyi`."""
        kept = 1 - self.decay
        reached = 2 * self.radius * kept**self.steps + 2 * self.step * _powers(math.sqrt(kept), self.steps)
        return reached / math.sqrt(_powers(kept, self.steps))

    @property
    def by_engine(self) -> float:
        """The engine on the same steps: the two runs may follow any gradients, and start a diameter apart."""
        pushes = np.full(self.steps, 2 * self.step)
        pushes[0] += (1 - self.decay) * 2 * self.radius
        given = Steps(pushes, np.ones(self.steps), np.full(self.steps, 1 - self.decay))
        return best_schedule(given)[0]


def renyi_epsilon(mu: float, delta: float) -> float:
    """ε of (α, αμ²/2)-RDP by the usual conversion, for the best α."""
    return _from_renyi(mu**2 / 2, delta)


def logged_epsilon(renyi: float, delta: float) -> float:
    """What the code of Koloskova2025 logs: `epsilon_renyi` is converted as if it were the divergence at every order."""
    alphas: Floats = _ORDERS
    return float((renyi - (math.log(delta) + np.log(alphas)) / (alphas - 1) + np.log((alphas - 1) / alphas)).min())


def twice_the_noise() -> Finding:
    """E6.1: the total for MNIST, with their own conversion."""
    return Finding("epochs for 100 removals", CHIEN2024[0].by_renyi(2.0), CHIEN2024[0].by_renyi(1.0))


def jointly_clipped() -> Finding:
    """E6.2: ten classes, unit rows, clip 1, η = 1/(1/4 + m), m = 0.009728, at scores that hill climbing found."""
    scores = np.array([6.0, 12.0, -7.0, 0.06, 0.06, -5.0, -6.0, -5.0, 0.06, -5.0])
    curvature = _L2 * 9728
    size = 1 / (0.25 + curvature)
    slope = float(np.linalg.norm(jointly_clipped_step(scores, size, curvature), 2))
    return Finding("Lipschitz constant of a step of ten classes", 1 - size * curvature, slope, slope)


def order_left_out() -> Finding:
    """E6.3: `epsilon_renyi` = 1, with weight decay: μ = √2."""
    exact = float(GaussianDP(math.sqrt(2.0)).epsilon(1e-5))
    return Finding("epsilon at delta 1e-5 for epsilon_renyi = 1", logged_epsilon(1.0, 1e-5), exact, exact)


def jointly_clipped_step(scores: Floats, step_size: float, l2: float) -> Floats:
    """The derivative of a step of one-against-the-rest regressions whose gradient is clipped at 1 as one vector.

    One record with unit features and the first label, in the weights along these features.
    """
    signs = np.where(np.arange(len(scores)) == 0, 1.0, -1.0)
    right = 1 / (1 + np.exp(-signs * scores))
    gradient, change = (right - 1) * signs, np.diag(right * (1 - right))
    if (length := float(np.linalg.norm(gradient))) > _CLIP:
        direction = gradient / length
        change = _CLIP / length * (np.eye(len(scores)) - np.outer(direction, direction)) @ change
    return np.asarray((1 - step_size * l2) * np.eye(len(scores)) - step_size * change)


def _powers(factor: float, count: int) -> float:
    """Σ factor^{2j} over j < count."""
    return float(np.square(factor ** np.arange(count, dtype=float)).sum())


def _from_renyi(rate: float, delta: float) -> float:
    """The least α·rate + log(1/δ)/(α − 1) over α ≥ 2, which their search looks at."""
    order = max(1 + math.sqrt(math.log(1 / delta) / rate), 2.0)
    return order * rate + math.log(1 / delta) / (order - 1)
