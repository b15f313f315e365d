"""Lengths on the iterate from the units of a run: one function for each quantity that theorems see."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE
from lastiterate.facts import fact
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import Sizes, Turns
from lastiterate.runs.losses import Loss
from lastiterate.runs.per_step import each, once_if_equal, spread
from lastiterate.runs.process import Process, smooth_push, update_of

if TYPE_CHECKING:
    from lastiterate.runs.run import Run


@dataclass(frozen=True, eq=False)
class Quantities:
    """Quantities of each step of a run whose batches have these sizes.

    A contracting proximal map is counted into its own step, and `squeeze` is what it multiplies lengths by. Where a
    neighbour's record contributes nothing, up to `missing` records do.
    """

    run: Run
    sizes: Sizes
    missing: int = 1

    @property
    def process(self) -> Process:
        run = self.run
        return Process(
            batches=run.batches,
            adjacency=run.adjacency,
            sensitivity=self.sensitivity,
            noise=self.noise,
            lipschitz=each(np.multiply, self.lipschitz, self.squeeze),
            drift=self.drift,
            retain=self.retain,
            sampled=self.sampled,
            diameter=run.domain.diameter,
            reason=run.reason(self.lipschitz, self.sizes),
            dimension=run.domain.dimension if run.prox is None else None,
            displacement=run.arithmetic.displacement,
            prior_mu=run.prior_mu if self.at_once == 1 else up(self.at_once * run.prior_mu),
            smooth=smooth_push(self) if self.at_once == 1 else fact("user_in_one_batch"),
            levels=self.sizes.levels,
            update=update_of(self),
            group=run.user_records // self.at_once,
            proximal=run.prox is not None,
            decays=run.decay > 0,
        )

    @property
    def at_once(self) -> int:
        """Number of records of a user that one step may use: all of them with full batches, else one."""
        return self.run.user_records if self.run.batches.turns is Turns.EVERY_STEP else 1

    @cached_property
    def step_sizes(self) -> Floats:
        """Step size of each step: the unit of the iterate over that of a gradient."""
        return spread("step_size", self.run.step_size, self.run.steps)

    @cached_property
    def divisors(self) -> Floats:
        """Smallest number of records by which gradient sums are divided, per step."""
        return self._of_each("divisor")

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """Least and greatest ratio of a batch's size to the divisor of its gradient sum, without unit.

        The neighbour's may have `missing` records less, or, where a record may be added, one more than the run counts; as
        many as a user has, if that is more.
        """
        least, most, user = self._of_each("smallest_share"), self._of_each("largest_share"), self.run.user_records
        less = max(self.missing, user)
        if not self.run.adjacency.replaces:
            least = each(lambda share, by: np.maximum(share - less / by, 0.0), least, self.divisors)
        if self.run.adjacency is ADD_OR_REMOVE_ONE:
            most = each(lambda share, by: share + user / by, most, self.divisors)
        return least, most

    def _of_each(self, name: str) -> Floats:
        last = None if self.sizes.last is None else getattr(self.sizes.last, name)
        return self.run.batches.pattern(getattr(self.sizes, name), last, self.run.steps)

    @cached_property
    def squeeze(self) -> Floats:
        """Factor by which the proximal map multiplies lengths, without unit."""
        return each(lambda eta: 1 / (1 + eta * self._modulus), self.step_sizes)

    @property
    def _modulus(self) -> float:
        return 0.0 if self.run.prox is None else self.run.prox.strong_convexity

    @cached_property
    def gradient_change(self) -> Floats | float:
        """Distance between the gradient sums of a batch on the two data sets, in the unit of a gradient."""
        of_one = self.exchanged if self.run.adjacency.replaces else self.gradient_bound
        return of_one if self.at_once == 1 else each(lambda change: up(self.at_once * change), of_one)

    @cached_property
    def exchanged(self) -> Floats | float:
        """Largest distance between the gradients of two records, in the unit of a gradient."""
        return self._clipped(2.0, self.run.loss.gradient_sensitivity)

    @cached_property
    def gradient_bound(self) -> Floats | float:
        """Largest norm of a record's gradient, in the unit of a gradient."""
        return self._clipped(1.0, self.run.loss.gradient_bound)

    def _clipped(self, times: float, without: float) -> Floats | float:
        if self.run.clip is None:
            return without
        return each(lambda clip: np.minimum(times * clip, without), spread("clip", self.run.clip, self.run.steps))

    @property
    def sensitivity(self) -> Floats:
        """Distance by which a step that uses the record moves the iterate away from the neighbour's; a length."""
        return self._moved(self.gradient_change)

    @property
    def sampled(self) -> Floats:
        """The sensitivity that the law of sampling takes; a length."""
        batches, adjacency = self.run.batches, self.run.adjacency
        return self._moved(batches.sampled_change(self.exchanged, self.gradient_bound, self.sizes, adjacency))

    def _moved(self, change: Floats | float) -> Floats:
        """Return the distance that a step moves the iterate when the gradient sum moves by `change`."""
        more = self._more
        given = self.step_sizes, change, self.squeeze, self.divisors
        return each(lambda eta, c, q, divisor: q * eta * c / divisor * more, *given)

    @property
    def _more(self) -> float:
        """Factor by which rounding enlarges a move of the gradient sum, in the run and in this computation."""
        return up(self.run.arithmetic.factor, operations=2)

    @property
    def noise(self) -> Floats:
        """The standard deviation on the iterate; a length."""
        return each(np.multiply, self.run.noise.on_iterate(self.step_sizes, self.run.batches.divisor), self.squeeze)

    @cached_property
    def lipschitz(self) -> Floats:
        """Lipschitz constant of a step before its proximal map, without unit."""
        run, clipped = self.run, self.run.clip is not None
        found = each(
            lambda eta, *shares: step_lipschitz(run.loss, clipped, eta, eta * run.decay, shares),
            self.step_sizes,
            *self.shares,
        )
        return once_if_equal(found) if self.sizes.last else found

    @property
    def drift(self) -> Floats:
        """Largest difference of two steps on top of `retain`, whatever the curvature: opposite gradients; a length."""
        given, more = (self.step_sizes, self.gradient_bound, self.squeeze, self.shares[1]), self._more
        return each(lambda eta, c, q, share: q * 2 * eta * c * share * more * more, *given)

    @property
    def retain(self) -> Floats:
        """Factor that the l2 term leaves of a distance, without unit; exactly 1 where there is no such term."""
        exact = self.run.decay == self._modulus == 0
        found = each(lambda eta, q: q * np.abs(1 - eta * self.run.decay), self.step_sizes, self.squeeze)
        return found if exact else each(lambda kept: up(kept, operations=3), found)


# Exact Lipschitz constants of a noiseless step (the clipped one: errata E2.2).


def step_lipschitz(
    loss: Loss, clipped: bool, step_sizes: Floats, decay: Floats, shares: tuple[Floats | float, ...]
) -> Floats:
    """Lipschitz constant of x ↦ (1 − decay)·x − step_size·share·(mean gradient), for the worst share."""
    if not math.isfinite(loss.smoothness):
        return np.full_like(step_sizes, np.inf)
    if clipped and not loss.keeps_convexity:
        return _clipped(loss, step_sizes * shares[1], decay)
    bottom = 0.0 if clipped else loss.curvature
    corners = [share * bound for share in shares for bound in (bottom, loss.smoothness)]
    worst = np.zeros_like(step_sizes)
    for curvature in corners:
        worst = np.maximum(worst, np.abs(1 - decay - step_sizes * curvature))
    return _rounded_up(worst)


def _clipped(loss: Loss, step_sizes: Floats, decay: Floats) -> Floats:
    """Lipschitz constant (1 − λ)·L_clip(η/(1 − λ)); the triangle inequality where decay reverses the iterate."""
    weak = max(-loss.curvature, 0.0)
    shrink = 1 - decay
    turned = np.abs(shrink) + step_sizes * max(weak, loss.smoothness)
    positive = np.where(shrink > 0, shrink, 1.0)
    return _rounded_up(
        np.where(shrink > 0, positive * clipped_constant(weak, loss.smoothness, step_sizes / positive), turned)
    )


def clipped_constant(weak_convexity: float, smoothness: float, step_sizes: Floats) -> Floats:
    """Exact Lipschitz constant of x ↦ x − η·clip(∇f(x)) over all f with Hessian in [−weak_convexity, smoothness]."""
    half_gap, half_sum = (smoothness - weak_convexity) / 2, (smoothness + weak_convexity) / 2
    plain = np.maximum(1 + step_sizes * weak_convexity, step_sizes * smoothness - 1)
    # In units of 2/η, so that no square can overflow; outside (0, 1) the gap gives no product: the plain constant is left.
    gap, total = np.clip(step_sizes * (half_gap / 2), 0.0, 1.0), step_sizes * (half_sum / 2)
    product = gap * (1 - gap)
    curved = (product > 0) & (total * np.abs(2 * gap - 1) <= 2 * product)
    inside = np.where(curved, total, 0.0)
    return np.where(curved, np.sqrt(1 + inside * (inside / np.where(curved, product, 1.0))), plain)


def _rounded_up(constants: Floats) -> Floats:
    """Round up by two ulps, also of products taken from 1; 1 is exact, since it comes from curvature zero."""
    return np.where(constants == 1.0, 1.0, constants * (1 + 2.0**-51) + 2.0**-52)
