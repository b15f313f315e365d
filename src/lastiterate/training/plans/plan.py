"""A plan for training, and the settings that the user has fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, Adjacency
from lastiterate.display import card, lines, summary
from lastiterate.errors import InvalidInput, worded
from lastiterate.runs.batches import BallsAndBins, Batches, FullBatch, Poisson, Shuffled
from lastiterate.runs.kinds import kind_named
from lastiterate.runs.losses import Loss
from lastiterate.runs.noise import Noise, OnGradientSum, OnMeanGradient
from lastiterate.runs.optimizers import AVERAGE, LAST, SGD
from lastiterate.runs.run import Run
from lastiterate.training.plans.problem import PULL, clip_of

MOST_PASSES = 250


class Way(Enum):
    """How records are dealt to the steps, and which releases are accounted for."""

    FULL = "full_batches"
    PASSES = "hidden_passes"
    SAMPLED = "random_batches"

    def __str__(self) -> str:
        return worded("plan_way", way=self.value)

    @property
    def called(self) -> str:
        """Name of the way in a table."""
        return _CALLED[self.name]


_CALLED = {"FULL": "full batches, momentum", "PASSES": "hidden passes", "SAMPLED": "random batches, momentum"}


@dataclass(frozen=True)
class Wishes:
    """Settings that the user has fixed; None is left to choose. `passes` over the data are not exceeded."""

    batches: int | None = None
    epochs: int | None = None
    step_size: float | None = None
    l2: float | None = None
    passes: int = MOST_PASSES

    @property
    def most_epochs(self) -> int:
        return self.passes if self.epochs is None else self.epochs


@dataclass(frozen=True)
class Plan:
    """A plan: `batches` in each of `epochs`. The mean of the last `averaged` iterates is released.

    `noise`: on the mean gradient, about what the budget will ask for. `error`: the loss beyond the best that is expected on
    the problem that stands for the data; `others`: that of the best plan of every other way.
    """

    way: Way
    batches: int
    epochs: int
    step_size: float
    l2: float
    momentum: float
    averaged: int
    noise: float
    error: float
    others: tuple[tuple[Way, float], ...] = ()

    @property
    def steps(self) -> int:
        return self.batches * self.epochs

    def __repr__(self) -> str:
        return summary(
            self, self.way.called, self.length, f"step size {self.step_size:.3g}", f"expected error {self.error:.2g}"
        )

    def _repr_html_(self) -> str:
        return card(lines([str(self)]))

    def __str__(self) -> str:
        settings = {"length": self.length, "step_size": self.step_size, "l2": self.l2}
        return worded("plan_settings", way=self.way, **settings, why=self.why)

    @property
    def length(self) -> str:
        """Length of the training in words."""
        return f"{self.epochs} epochs of {self.batches} batches" if self.batches > 1 else f"{self.epochs} steps"

    @property
    def why(self) -> str:
        """Reason for the choice in one sentence."""
        if not self.others:
            return worded("plan_only_way")
        return worded("plan_compared", error=self.error, others=self.others)


# From a plan to a run.


@dataclass(frozen=True)
class Ingredients:
    """Ingredients of a run besides the plan: the clip if every iterate is accounted for, and the mu spent before."""

    loss: Loss
    batches: Batches
    adjacency: Adjacency
    clip: float
    prior_mu: float = 0.0
    user_records: int = 1


def run_of(plan: Plan, ingredients: Ingredients) -> Run:
    """Return the run of a plan with roughly the noise that it needs, yet to be calibrated."""
    return Run(
        ingredients.loss,
        ingredients.batches,
        plan.step_size,
        _noise(plan, ingredients),
        plan.steps,
        adjacency=ingredients.adjacency,
        optimizer=SGD(momentum=plan.momentum),
        released=AVERAGE(last=plan.averaged) if plan.averaged > 1 else LAST,
        prior_mu=ingredients.prior_mu,
        user_records=ingredients.user_records,
    )


def _noise(plan: Plan, ingredients: Ingredients) -> Noise:
    if plan.way is Way.PASSES:
        return OnMeanGradient(std=plan.noise)
    return OnGradientSum(multiplier=plan.noise * ingredients.batches.divisor / ingredients.clip, clip=ingredients.clip)


def batches_of(plan: Plan, records: int, adjacency: Adjacency) -> Batches:
    """Return the plan's batches, of equal size where they are dealt in an order; the last few records are left out."""
    count = plan.batches
    if count > records:
        raise InvalidInput("batches_beyond_records", field="batches", got=f"{count}", records=records)
    if (plan.way is Way.SAMPLED and adjacency.replaces) or (count == 1 and adjacency is ADD_OR_REMOVE_ONE):
        return Poisson(records, 1 / count)
    if plan.way is Way.SAMPLED or adjacency is ADD_OR_REMOVE_ONE:
        return BallsAndBins(records, count)
    size = records // count
    return FullBatch(records) if count == 1 else Shuffled(size * count, size)


def change_of(loss: Loss, adjacency: Adjacency) -> float:
    """Distance by which a record moves a sum of gradients of this loss, at most."""
    clip = loss.clip if isinstance(loss.clip, float) else math.inf
    if adjacency.replaces:
        return min(loss.gradient_sensitivity, 2 * clip)
    return min(loss.gradient_bound, clip)


def loss_for(loss: Loss, way: Way, l2: float) -> Loss:
    """Return the loss for a way; hidden steps need a convex one, so what shortens gradients keeps convexity."""
    given: dict[str, Any] = {**loss.arguments, "l2": l2}
    if way is Way.PASSES and loss.clip is None:
        if loss.kind == "softmax":
            given |= {"pull": loss.arguments.get("pull") or PULL}
        elif loss.keeps_convexity:
            given |= {"clip": clip_of(loss)}
    elif loss.clip is not None:
        given |= {"clip": loss.clip}
    kind = kind_named("loss", loss.kind)
    return loss if kind is None else kind.make(**given)
