"""What exhibits ask of the library: a theorem's number for a run, the best one, and what an exact instance costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lastiterate.accounting.account import account
from lastiterate.accounting.report import lower_bound
from lastiterate.auditing.quadratic import exact_mu
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.runs.run import Run
from lastiterate.theorems.theorem import Guarantee, Theorem

TYPE_I_ERRORS = tuple((np.sin(np.linspace(0.0, np.pi / 2, 101)) ** 2).tolist())  # dense at both ends, where curves bend


def mu_of(theorem: Theorem, run: Run) -> float:
    """μ by a theorem that says everything in terms of it."""
    return math.sqrt(float(theorem.notion(run.process).rdp(2.0)))


@lru_cache(maxsize=64)
def proved(theorem: Theorem, run: Run) -> Notion | None:
    """What the theorem says of the run, if anything; kept, because searched bounds remember what they have tried."""
    answer = theorem.apply(run.process)
    return answer.notion if isinstance(answer, Guarantee) else None


def least_delta(theorems: Sequence[Theorem], run: Run, epsilon: float) -> float:
    """The least δ at this ε that any of these theorems proves."""
    return min(float(one.delta(epsilon)) for theorem in theorems if (one := proved(theorem, run)) is not None)


def least_epsilon(theorems: Sequence[Theorem], run: Run, delta: float) -> float:
    """The least ε at this δ that any of these theorems proves."""
    return min(float(one.epsilon(delta)) for theorem in theorems if (one := proved(theorem, run)) is not None)


def best_epsilon(run: Run, delta: float) -> float:
    """The least provable ε."""
    return account(run, delta).epsilon


def lower_epsilon(run: Run, delta: float) -> float:
    """What the worst instance costs that the run's assumptions allow."""
    return lower_bound(run, delta).epsilon


def lower_mu(run: Run) -> float:
    """μ of the worst quadratic losses with the run's Hessians, for batches in a fixed order; convex ones only."""
    bottom, top = max(run.loss.curvature, 0.0), run.loss.smoothness
    hessians = bottom + np.append(0.0, np.geomspace(1e-3, 1.0, 13)) * (top - bottom)
    return max(exact_mu(run, hessian) for hessian in hessians.tolist())


def tradeoff_of(mu: float) -> tuple[float, ...]:
    """The curve G(μ) over TYPE_I_ERRORS."""
    return tuple(np.asarray(GaussianDP(mu).tradeoff(np.array(TYPE_I_ERRORS))).tolist())
