"""Compositions of Gaussian mechanisms, plain or on random batches, with certified brackets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lastiterate.curves.adjacency import (
    ADD_OR_REMOVE_ONE,
    FIXED_SIZE,
    POISSON,
    REPLACE_ONE,
    Adjacency,
    Sampling,
)
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.sampled_steps import LARGEST_MU, SampledStep
from lastiterate.errors import (
    INSIDE_UNIT,
    NEGATIVE,
    NON_NEGATIVE,
    Incompatible,
    InvalidInput,
    checked_array,
    checked_choice,
    checked_count,
    checked_number,
    must_be,
    shown,
)
from lastiterate.numerics.arrays import Floats, like_input
from lastiterate.numerics.bracketed import Bracketed
from lastiterate.numerics.discretise import MixedRatio, Ratio
from lastiterate.numerics.mixture_ratio import (
    MIXTURE_OVER_MIRROR,
    MIXTURE_OVER_NORMAL,
    NORMAL_OVER_MIXTURE,
    SYMMETRISED,
    Shape,
)
from lastiterate.numerics.normal_gap import log_gap_above, threshold_above
from lastiterate.numerics.ratio_sum import RatioSum, shared_sum
from lastiterate.numerics.roots import decreasing_root
from lastiterate.numerics.rounding import down, up

# Ten times what docs/numerics.md shows with a bracket below 1e-8; a step's errors are multiplied by it. Of more steps,
# sampling is left out, which is an upper bound and has no such errors.
_MOST_STEPS = 10**10
_FEW_STEPS = 30  # a guess: with more, basic composition loses too much to be worth its evaluation
_MANY_STEPS = 300  # up to here a lattice is quicker than contours
# Then ε is about half of it, which nobody claims; it is well inside the range that is searched, 1e15.
_LARGEST_VARIANCE = 1e12
_MOST_ANSWERED = 64  # questions that are remembered
_FEW_QUESTIONS = 3  # are answered one by one, each by what is sharpest for it
_FAR = 12.0  # standard deviations: δ is within 1e-32 of 1, and no float tells that from 1
# So many are answered from a curve where a sensitivity is drawn, and each would take long; down to so small a δ it is sharp.
_MANY_QUESTIONS, _LOG_DEEP = 40, -45.0
_LOG_SMALLEST = -800.0  # far below the log of the smallest float


@dataclass(frozen=True, repr=False)
class SubsampledGaussians(Notion):
    """Each step `count` times; at inclusion 1 a step is the plain Gaussian mechanism."""

    steps: tuple[tuple[SampledStep, int], ...]
    adjacency: Adjacency

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _checked_steps(self.steps))
        object.__setattr__(self, "adjacency", checked_choice("adjacency", self.adjacency, Adjacency))
        if self.adjacency is ADD_OR_REMOVE_ONE and any(step.sampling is FIXED_SIZE for step, _ in self.steps):
            raise InvalidInput("fixed_size_add_or_remove", field="adjacency")

    def _said(self) -> str:
        return f"{sum(count for _, count in self.steps)} steps"

    def relabelled(self, adjacency: Adjacency) -> Notion:
        """Relabel where the law of sampling stays the same: it depends on what the neighbour has instead of the record."""
        sampled = any(step.inclusion < 1 and step.sampling is POISSON for step, _ in self.steps)
        if sampled and adjacency.replaces != self.adjacency.replaces:
            raise Incompatible("sampled_adjacencies_differ", first=self.adjacency, other=adjacency)
        return replace(self, adjacency=adjacency)

    @cached_property
    def _mu_without_sampling(self) -> float:
        return up(math.sqrt(math.fsum(count * step.mu**2 for step, count in self.steps)), operations=5)

    @cached_property
    def _is_clamped(self) -> bool:
        """Whether lower ends are given up, so that what is computed is an upper bound only."""
        return self._is_swamped or any(step.clamped() != step for step, _ in self.steps)

    @property
    def is_mixed(self) -> bool:
        """Whether the sensitivity of some step is drawn at random."""
        return any(step.mixed for step, _ in self.steps)

    @cached_property
    def _is_swamped(self) -> bool:
        """Whether plain steps make ε astronomical, whatever sampling saves, or the steps are too many for its errors."""
        too_many = sum(count for _, count in self.steps) > _MOST_STEPS
        return too_many or self._orders[0].variance > _LARGEST_VARIANCE

    @cached_property
    def _orders(self) -> tuple[RatioSum, ...]:
        """The privacy loss in each order of the two data sets (one where they mirror each other)."""
        orders: tuple[Shape, ...] = (MIXTURE_OVER_NORMAL, NORMAL_OVER_MIXTURE)
        if self.adjacency.replaces or all(step.sampling is FIXED_SIZE for step, _ in self.steps):
            orders = (MIXTURE_OVER_MIRROR,)
        return tuple(self._ratio_sum({POISSON: shape, FIXED_SIZE: SYMMETRISED}) for shape in orders)

    def _ratio_sum(self, shapes: dict[Sampling, Shape]) -> RatioSum:
        variance: list[float] = [0.0]
        ratios: list[tuple[Ratio | MixedRatio, int]] = []
        for step, count in ((step.clamped(), count) for step, count in self.steps):
            if step.inclusion == 1:
                variance.append(count * step.mu**2)
            else:
                ratios.append((step.ratio(shapes[step.sampling]), count))
        return shared_sum(tuple(ratios), math.fsum(variance))

    @property
    def _single(self) -> SampledStep | None:
        """The step, if there is just one, and its profile is a formula."""
        (step, count), *others = self.steps
        mirrored = self.adjacency is REPLACE_ONE and step.sampling is POISSON
        return step if count == 1 and not others and not mirrored and not self._is_clamped else None

    def log_delta(self, epsilons: Floats) -> Floats:
        """Return log δ as computed, or as asked before where a smaller ε was found for it, if that is less."""
        found = self._computed_log_delta(epsilons)
        for log_delta, epsilon in self._answered.items():
            found = np.where(epsilons >= epsilon, np.minimum(found, log_delta), found)
        return found

    @cached_property
    def _answered(self) -> dict[float, float]:
        """The answered ε by log δ: the search for ε may have ended on a sharper bound than is drawn for that ε."""
        return {}

    def _computed_log_delta(self, epsilons: Floats) -> Floats:
        if self._single is not None:
            return self._single.log_delta_above(epsilons)
        if epsilons.size > _MANY_QUESTIONS and self.is_mixed and not self._is_swamped:
            logs = self._orders[0].log_upper_curve(epsilons, _LOG_DEEP)
            return np.minimum(logs, log_gap_above(epsilons, self._mu_without_sampling))
        if len(self._orders) > 1 or epsilons.size <= _FEW_QUESTIONS:
            return np.array([self._log_delta_at(x) for x in epsilons.tolist()])
        found, sampled = self._without_sampling_at(epsilons)
        found[sampled] = self._orders[0].log_upper_many(epsilons[sampled])
        return found

    def _log_delta_at(self, epsilon: float) -> float:
        """Ask the usual worst order first, so that Chernoff's bound may settle the other."""
        without_sampling, sampled = self._without_sampling_at(np.array([epsilon]))
        if not sampled[0]:
            return float(without_sampling[0])
        first, *others = self._orders
        worst = first.log_upper(epsilon)
        for order in others:
            if order.log_chernoff(epsilon, worst) > worst:
                worst = max(worst, order.log_upper(epsilon))
        return worst

    def _without_sampling_at(self, epsilons: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return log δ as if every batch had the record, and where sampling is worth its work."""
        without_sampling = log_gap_above(epsilons, self._mu_without_sampling)
        variance = self._orders[0].variance
        hopeless = variance / 2 > epsilons + _FAR * math.sqrt(variance)  # the plain steps alone make δ all but 1
        return without_sampling, ~((without_sampling < _LOG_SMALLEST) | self._is_swamped | hopeless)

    @property
    def without_sampling(self) -> GaussianDP:
        """The guarantee as if every batch had the record: never better than this one."""
        return GaussianDP(self._mu_without_sampling, self.adjacency)

    @property
    def is_a_formula(self) -> bool:
        """Whether many questions are as quick as one."""
        return self._single is not None

    @property
    def is_slow(self) -> bool:
        """Whether the steps are so few that they leave atoms and kinks, which take a lattice."""
        return sum(count for _, count in self.steps) <= _MANY_STEPS

    def delta_curve(self, epsilons: Floats, log_smallest: float) -> Floats:
        """Return upper bounds on δ at many ε, down to about this log δ: much quicker than `delta`, and nearly as sharp."""
        epsilons = np.atleast_1d(checked_array("epsilons", epsilons, NON_NEGATIVE))
        if self._is_swamped:
            return np.asarray(self.delta(epsilons))
        logs = np.max([order.log_upper_curve(epsilons, log_smallest) for order in self._orders], axis=0)
        return up(np.exp(np.minimum(logs, log_gap_above(epsilons, self._mu_without_sampling))))

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        if self._single is not None:
            return super().epsilon_at_log(log_deltas)
        found = np.array([self._epsilon_at(x) for x in log_deltas.tolist()])
        self._answered.update(zip(log_deltas.tolist(), found.tolist(), strict=True))
        for oldest in list(self._answered)[:-_MOST_ANSWERED]:
            self._answered.pop(oldest, None)
        return found

    def epsilon_bracketed(self, log_delta: float) -> Bracketed:
        """Return ε(δ) between bounds of the usual worst order, if Chernoff's bound settles the other order there."""
        if self._single is not None or self._is_swamped:
            return super().epsilon_bracketed(log_delta)
        first, *others = self._orders
        rough = first.threshold_bracketed(log_delta)
        if rough.low == rough.high or any(one.log_chernoff(rough.high, log_delta) > log_delta for one in others):
            return super().epsilon_bracketed(log_delta)
        return Bracketed(rough.low, rough.high, lambda: float(self.epsilon_at_log(np.array([log_delta]))[0]))

    def _epsilon_at(self, log_delta: float) -> float:
        if self._is_swamped:
            return float(threshold_above(log_delta, self._mu_without_sampling))
        first, *others = self._orders
        worst = first.threshold_upper(log_delta)
        for order in others:
            if order.log_chernoff(worst, log_delta) > log_delta:
                worst = max(worst, order.threshold_upper(log_delta))
        return min(worst, self._by_basic_composition(log_delta))

    def _by_basic_composition(self, log_delta: float) -> float:
        """Return Σ ε_i at δ/steps each: for a few steps deep in the tail this may beat a lattice."""
        total = sum(count for _, count in self.steps)
        if not 1 < total <= _FEW_STEPS or self.adjacency is REPLACE_ONE or self._is_clamped:
            return math.inf
        share = np.array([log_delta - math.log(total) - 1e-12])
        alone = [SubsampledGaussians(((step, 1),), self.adjacency).epsilon_at_log(share)[0] for step, _ in self.steps]
        return up(sum(count * float(e) for e, (_, count) in zip(alone, self.steps, strict=True)), operations=50)

    def bracket(self, delta: ArrayLike) -> tuple[Any, Any]:
        """Return (lower, upper) bounds on the exact ε of this composition; `epsilon` is the upper one."""
        log_deltas = np.log(checked_array("delta", delta, INSIDE_UNIT)).ravel()
        upper = self.epsilon_at_log(log_deltas)
        return like_input(np.minimum(self._epsilon_lower(log_deltas, upper), upper), delta), like_input(upper, delta)

    def _epsilon_lower(self, log_deltas: Floats, upper: Floats) -> Floats:
        step = self._single
        if self._is_clamped:
            return np.zeros_like(upper)
        if step is None:
            composed = [max(order.threshold_lower(x) for order in self._orders) for x in log_deltas.tolist()]
            return np.maximum(composed, self._lower_of_largest(log_deltas))
        return abs(decreasing_root(lambda x: log_deltas - step.log_delta_below(-x), -upper, np.zeros_like(upper)))

    def _lower_of_largest(self, log_deltas: Floats) -> Floats:
        """Return the ε that the largest step alone costs at least, as all steps together do."""
        largest = max((step for step, _ in self.steps), key=lambda step: (step.inclusion, step.mu))
        alone = SubsampledGaussians(((largest, 1),), self.adjacency)
        if alone._single is None or largest.inclusion == 1:
            return np.zeros_like(log_deltas)
        return alone._epsilon_lower(log_deltas, alone.epsilon_at_log(log_deltas))

    def delta_bracket(self, epsilon: ArrayLike) -> tuple[Any, Any]:
        """Return (lower, upper) bounds on the exact δ; `delta` is the upper one."""
        epsilons = checked_array("epsilon", epsilon, NON_NEGATIVE).ravel()
        upper = np.asarray(self.delta(epsilons))
        logs = self._log_delta_lower(epsilons)
        return like_input(np.minimum(down(np.exp(logs)), upper), epsilon), like_input(upper, epsilon)

    def _log_delta_lower(self, epsilons: Floats) -> Floats:
        if self._is_clamped:
            return np.full_like(epsilons, -np.inf)
        if self._single is not None:
            return self._single.log_delta_below(epsilons)
        return np.array([max(order.log_lower(x) for order in self._orders) for x in epsilons.tolist()])

    def log_delta_upper(self, epsilon: float) -> float:
        """Return log of the certified upper bound on δ(ε)."""
        return float(self.log_delta(np.array([checked_number("epsilon", epsilon, NON_NEGATIVE)]))[0])

    def epsilon_estimate(self, log_delta: float) -> float:
        """A quick ESTIMATE of ε(δ), by the saddle point: to place a grid, never to report."""
        if self._is_swamped:
            return float(threshold_above(log_delta, self._mu_without_sampling))
        return max(self._orders[0].cumulant.saddle_for(checked_number("log_delta", log_delta, NEGATIVE))[1], 0.0)

    def log_delta_estimate(self, epsilon: float) -> float:
        """A quick ESTIMATE of log δ(ε), by the saddle point of the usual worst order: to steer a search, never to report."""
        return self._orders[0].log_estimate(checked_number("epsilon", epsilon, NON_NEGATIVE))

    def _after(self, mu: float) -> SubsampledGaussians:
        """Compose with one more step, which sees every record."""
        return merged(
            [(self, 1), (SubsampledGaussians(((SampledStep(mu, 1.0, POISSON), 1),), self.adjacency), 1)], self.adjacency
        )

    def _rdp(self, orders: Floats) -> Floats:
        if sum(count for _, count in self.steps) > _MOST_STEPS:
            return np.asarray(self.without_sampling._rdp(orders))
        return np.array([max(total.renyi_upper(order) for total in self._orders) for order in orders.tolist()])


def subsampled_gaussian(
    *,
    mu: float,
    inclusion: float,
    sampling: Sampling = POISSON,
    adjacency: Adjacency = ADD_OR_REMOVE_ONE,
) -> SubsampledGaussians | GaussianDP:
    """One Gaussian mechanism on a random batch; `.compose(steps)` for many. At inclusion 1 it is `GaussianDP(mu)`.

    mu: sensitivity of the sum over the batch (to what `adjacency` changes in it), divided by the noise. With gradients
        clipped at C and noise z·C, that is 1/z under add-or-remove and 2/z under replace-one.
    inclusion: the probability that a record is in the batch; b/n for batches of fixed size.

    Poisson under add-or-remove: N(0, 1) against (1 − q)·N(0, 1) + q·N(μ, 1), in both orders. Poisson under replace-one:
    (1 − q)·N(0, 1) + q·N(±μ/2, 1), which assumes that a record contributes at most half the sensitivity, as clipping
    ensures (docs/proofs.md). Fixed size under replace-one: C_p(G(μ)), Bok2024 Definition 4.7 and Proposition D.4; under
    zero-out the same, with the same mu: another record takes the place in the batch, so that nothing is halved.
    """
    step = SampledStep(mu, inclusion, sampling)
    adjacency = checked_choice("adjacency", adjacency, Adjacency)
    if step.sampling is FIXED_SIZE and adjacency is ADD_OR_REMOVE_ONE:
        raise InvalidInput("fixed_size_add_or_remove", field="adjacency")
    return GaussianDP(step.mu, adjacency) if step.inclusion == 1 else SubsampledGaussians(((step, 1),), adjacency)


def _checked_steps(steps: Any) -> tuple[tuple[SampledStep, int], ...]:
    try:
        pairs = tuple((step, checked_count("count", count)) for step, count in steps)
    except (TypeError, ValueError) as error:
        raise must_be("steps", "pairs of a step and its count", f"{shown(steps):.60}") from error
    if not pairs or not all(isinstance(step, SampledStep) for step, _ in pairs):
        raise must_be("steps", "steps of li.notions.subsampled_gaussian", f"{shown(steps):.60}")
    return pairs


def merged(parts: list[tuple[SubsampledGaussians, int]], adjacency: Adjacency) -> SubsampledGaussians:
    """The composition of all parts, equal steps counted together."""
    counts: Counter[SampledStep] = Counter()
    for part, times in parts:
        for step, count in part.steps:
            counts[step] += count * times
    return SubsampledGaussians(tuple(counts.items()), adjacency)


# One Gaussian mechanism on a random batch, with a sensitivity that is drawn at random.


_SMALLEST_LOG = -1e300  # stands for −∞, which minus itself would be NaN


@dataclass(frozen=True)
class MixedStep(SampledStep):
    """The sensitivity is drawn, and not from the data: (share of mu, probability), decreasing.

    The first share is 1. It may be known which was drawn (docs/proofs.md, "Means over the actual size").
    """

    levels: tuple[tuple[float, float], ...]
    mixed: ClassVar[bool] = True

    @property
    def drawn(self) -> list[tuple[SampledStep, float]]:
        """Each step that may be drawn, with its probability."""
        steps = ((SampledStep(up(share * self.mu), self.inclusion, self.sampling), one) for share, one in self.levels)
        return [(step.clamped(), one) for step, one in steps]

    def ratio(self, shape: Shape) -> MixedRatio:
        """Return the ratios of all steps that may be drawn: it is known which was."""
        steps, shares = zip(*self.drawn, strict=True)
        return MixedRatio(tuple(one.plain_ratio(shape) for one in steps), shares)

    def log_delta_above(self, epsilons: Floats) -> Floats:
        """Return log of the mean over what is drawn, rounded up."""
        total, doubt = self._mean(lambda one: one.log_delta_above(epsilons))
        return np.minimum(total + doubt, 0.0)

    def log_delta_below(self, epsilons: Floats) -> Floats:
        """Return log of the mean over what is drawn, rounded down."""
        total, doubt = self._mean(lambda one: one.log_delta_below(epsilons))
        return total - doubt

    def _mean(self, log_delta: Callable[[SampledStep], Floats]) -> tuple[Floats, Floats]:
        """Return log Σ probability·δ, and what rounding may have moved it by."""
        logs = [log_delta(one) + math.log(share) for one, share in self.drawn]
        total = np.maximum(np.logaddexp.reduce(logs, axis=0), _SMALLEST_LOG)
        return total, 1e-14 * (1 + np.abs(total))


def mixed_subsampled_gaussian(
    *, mu: float, inclusion: float, levels: tuple[tuple[float, float], ...], adjacency: Adjacency = REPLACE_ONE
) -> SubsampledGaussians | GaussianDP:
    """One Gaussian mechanism on a random batch whose sensitivity is share·mu with this probability, for each of `levels`."""
    if len(levels) == 1 or inclusion == 1 or mu > LARGEST_MU:
        return subsampled_gaussian(mu=mu, inclusion=inclusion, sampling=FIXED_SIZE, adjacency=adjacency)
    return SubsampledGaussians(((MixedStep(mu, inclusion, FIXED_SIZE, levels), 1),), adjacency)
