"""A run as theorems see it: everything on the iterate, one entry per step, no step size and no convention left."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.display import summary
from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import Smooth
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import Batches
from lastiterate.runs.optimizers import LAST, PLAIN, Optimizer, Released
from lastiterate.runs.per_step import each, extremes, is_constant

if TYPE_CHECKING:
    from lastiterate.runs.quantities import Quantities
    from lastiterate.runs.run import Run


# The update: optimiser and release, as theorems see them.


_LONGEST = (
    8.0  # half of step size times Hessians: to carry a push over one step costs far more than to pay for it at once
)
_ROUNDED = 2.0**-49  # of numbers around 1: what a middle, or the centre and the radius of a ball, may be off by


_PLAIN_STEPS = fact("plain_steps")


@dataclass(frozen=True)
class Update:
    """The optimiser and what is released.

    `curvature`: step size times Hessian, decay included, lies within the second number of the first; or why that
    is not known, or why the optimiser is no linear filter.
    """

    optimizer: Optimizer = PLAIN
    released: Released = LAST
    curvature: tuple[float, float] | Fact = _PLAIN_STEPS

    @property
    def plain(self) -> bool:
        """Whether each step is a gradient step with noise, and the last iterate is what is released."""
        return self.optimizer.plain and self.released.plain

    @property
    def described(self) -> str:
        return f"{self.optimizer.described}, with {self.released.called} released"


PLAIN_UPDATE = Update()


def update_of(given: Quantities) -> Update:
    """Return the update that each step of a run makes, as theorems see it."""
    run = given.run
    if run.optimizer.plain and run.released.plain:
        return PLAIN_UPDATE
    return Update(run.optimizer, run.released, _curvature(given))


def _curvature(given: Quantities) -> tuple[float, float] | Fact:
    run = given.run
    if run.optimizer.linear is None:
        return fact("optimizer_not_linear", optimizer=run.optimizer.fact)
    if (reason := not_smooth(run)) is not None:
        return reason
    if not is_constant(given.step_sizes):
        return fact("step_size_changes")
    lowest, highest, _ = hessians(given)
    low, high = extremes(lowest)[0], extremes(highest)[1]
    size = float(given.step_sizes[0])
    middle, half = size * (run.decay + (low + high) / 2), size * (high - low) / 2
    if half > _LONGEST:
        return fact("step_size_gains_nothing", product=2 * half)
    return middle, up(half + _ROUNDED * (abs(middle) + half))


# The process.


LONG = 30_000_000  # steps: what theorems go through one by one; of longer runs that contract, the last are enough
_FORGOTTEN = 1e-18  # of a μ: added for what came before them, far below an ulp of any ε
_PUSH_UNKNOWN, _START_FORGOTTEN = fact("push_unknown"), fact("start_forgotten")


@dataclass(frozen=True, eq=False)
class Process:
    """X_t = Π(φ_t(X_{t−1}) + N(0, noise_t²)); the neighbour runs φ'_t.

    `sensitivity` bounds ‖φ_t − φ'_t‖ at a step that sees the record, `lipschitz` is a Lipschitz constant of both maps, and
    ‖φ_t(x) − φ'_t(y)‖ ≤ retain·‖x − y‖ + drift whatever the curvature (∞ where gradients are not bounded). On a random
    batch, `sampled` is the sensitivity that the law of sampling takes: share·sampled, with the probabilities of `levels`. A
    contracting proximal map is counted into its own step: it scales all of these. `releases`: the steps
    after which the iterate is released, without the last.

    `smooth`: how fast a record's gradient changes as the iterate moves; or why that is unknown.

    `reason`: where the largest Lipschitz constant comes from, or why it is unknown; in a process that is made by hand,
    `lastiterate.facts.own` with a text.

    `displacement`: what is computed differs from all this by a Gaussian mechanism with this mu.

    `prior_mu`: what was released before, about the same records, is mu-GDP with this mu; all of the above may depend on
    its outcome, and holds for each.

    `group`: so many records, anywhere in the data, may differ, of which `sensitivity` is about one, and all of the above
    holds for each data set between two neighbours; 1 where `sensitivity` is about all of them together. `members`: how many
    of them are at each place of an epoch, where that is known.

    `update`: what is made of the steps, and of the iterates; all of the above is about plain steps, whose noise and
    sensitivity are those of each noisy gradient, whatever is made of it.

    `usual`: where batches are of random size, the same run as long as none is of unusual size; a batch is, with at most the
    probability whose logarithm is given.

    `proximal`, `decays`: whether a step has a proximal map, and whether it shrinks the weights; both are counted in above.

    `adjacency`: what the neighbour's data set has instead of the record; `lipschitz` is about both data sets.

    `inside`: in a very long run with a smaller last batch, quantities are stored once, as the worst of an epoch; all steps
    but the last of each epoch have at most these times `sensitivity` and `sampled`, and `lipschitz`.
    """

    batches: Batches
    sensitivity: Floats
    noise: Floats
    lipschitz: Floats
    drift: Floats
    retain: Floats
    sampled: Floats
    diameter: float
    reason: Fact
    releases: tuple[int, ...] = ()
    dimension: int | None = None
    displacement: float = 0.0
    prior_mu: float = 0.0
    smooth: Smooth | Fact = _PUSH_UNKNOWN
    usual: Callable[[float], Process] | None = None
    levels: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    adjacency: Adjacency = REPLACE_ONE
    update: Update = PLAIN_UPDATE
    group: int = 1
    members: tuple[int, ...] = ()
    proximal: bool = False
    decays: bool = False
    inside: tuple[float, float] = (1.0, 1.0)

    def __repr__(self) -> str:
        sizes = {"sensitivity": self.sensitivity, "noise": self.noise, "lipschitz": self.lipschitz}
        said = (f"{name} {_between(values)}" for name, values in sizes.items())
        return summary(self, f"{len(self)} steps", self.batches.described, *said)

    def __len__(self) -> int:
        return len(self.noise)

    @property
    def inclusion(self) -> Floats:
        """Probability of a record's being used at each step; in a fixed order, for a record that the last step uses."""
        return self.batches.inclusion(len(self))

    @property
    def constant(self) -> bool:
        """Whether all steps are alike."""
        return all(is_constant(values) for values in (self.sensitivity, self.noise, self.lipschitz))

    @property
    def step_mu(self) -> float:
        """sensitivity/noise of the first step, and of every other where all are alike."""
        return float(self.sensitivity[0]) / float(self.noise[0])

    @property
    def contraction(self) -> float:
        """The largest Lipschitz constant."""
        return extremes(self.lipschitz)[1]

    def but_for(self, exception: float) -> Process:
        """Return the process as long as no batch has an unusual size; some batch has with at most this probability."""
        if self.usual is None or exception == 0:
            return replace(self, usual=None)
        return replace(self.usual(math.log(exception) - math.log(len(self))), releases=self.releases)

    @property
    def worst_alike(self) -> Process:
        """The process of as many steps, each as bad as the worst in every respect."""
        steps = len(self)
        return self._each(lambda values, worst: np.broadcast_to(extremes(values)[worst], steps))

    def part(self, first: int, last: int) -> Process:
        """Steps `first` to `last`, the latter left out, by themselves."""
        return self._each(lambda values, _: values[first:last])

    def like_the_first(self, steps: int) -> Process:
        """Return the process of `steps` steps that are all like the first."""
        smooth = self.smooth if isinstance(self.smooth, Fact) else self.smooth.like_the_first(steps)
        return replace(self._each(lambda values, _: np.broadcast_to(values[0], steps)), smooth=smooth)

    def repeated(self, steps: int) -> Process:
        """Return `steps` steps from this first epoch: each as bad as its worst, inner ones scaled by `inside`."""
        worst = self.worst_alike
        pushes, sampled, factor = (
            _share(float(getattr(self, name)[0]), float(getattr(worst, name)[0]))
            for name in ("sensitivity", "sampled", "lipschitz")
        )
        found = worst._each(lambda values, _: np.broadcast_to(values[0], steps))
        return replace(found, inside=(max(pushes, sampled), factor))

    def without_a_distant_start(self) -> Process:
        """The last steps, from a common state, of a very long run with contracting equal epochs; else the run itself.

        Where only the last iterate is released, the first steps leave two runs at most 8·k·e·s/(1 − p) apart, also if two
        records change places, for e steps and a Lipschitz constant p of an epoch and k records of a user; the last n epochs
        shrink that by p^n. The noise of the last step hides the rest, which is added to `displacement`; n is such that it is
        below 1e-18. Whole epochs are left out. Proof: docs/proofs.md.
        """
        if len(self) <= LONG or not self.update.plain or self.releases or not self.constant:
            return self
        epoch, user = self.batches.per_epoch, max(self.group, sum(self.members))
        inside = self.inside[1]
        whole = 1 if inside == 1 else epoch
        factor = up(self.contraction * (inside * self.contraction) ** (whole - 1), operations=2 * whole)
        if not factor < 1:
            return self
        grown = max(self.contraction, 1.0)  # the last step of an epoch alone may move iterates apart
        push = whole * user * max(extremes(self.sensitivity)[1], extremes(self.sampled)[1])
        apart = 8 * push * grown**2 / (1 - factor) / float(self.noise[0])
        needed = 1 if not factor else math.ceil(max(math.log(apart / _FORGOTTEN), 1.0) / -math.log(factor)) + 1
        steps = -(-needed * whole // epoch) * epoch + len(self) % epoch
        return self.last_steps(steps, _FORGOTTEN) if steps <= LONG else self

    def last_steps(self, steps: int, displacement: float) -> Process:
        """Return the last `steps` steps from a common state; whole epochs are left out, which displaces by so much."""
        kept = replace(self.like_the_first(steps), displacement=up(self.displacement + displacement, operations=2))
        if not isinstance(kept.smooth, Fact) and extremes(kept.smooth.decay)[1]:
            kept = replace(kept, smooth=_START_FORGOTTEN)
        if self.inside == (1.0, 1.0):
            return kept
        pushes, factors = (self.batches.pattern(one, 1.0, steps) for one in self.inside)
        return replace(
            kept,
            sensitivity=_times(kept.sensitivity, pushes),
            sampled=_times(kept.sampled, pushes),
            lipschitz=_times(kept.lipschitz, factors),
        )

    def _each(self, change: Callable[[Floats, int], Floats]) -> Process:
        """Apply `change` to each quantity, with 0 if its least value is the worst and 1 if its greatest is."""
        return replace(
            self,
            sensitivity=change(self.sensitivity, 1),
            noise=change(self.noise, 0),
            lipschitz=change(self.lipschitz, 1),
            drift=change(self.drift, 1),
            retain=change(self.retain, 1),
            sampled=change(self.sampled, 1),
            releases=(),
            smooth=fact("steps_count_as_worst"),
            usual=None,
            inside=(1.0, 1.0),
        )

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """Pairs of steps between which nothing is released."""
        ends = (0, *self.releases, len(self))
        return list(pairwise(ends))


def _share(one: float, worst: float) -> float:
    return min(up(one / worst, operations=2), 1.0) if 0 < worst < math.inf else 1.0


def _times(values: Floats, shares: Floats) -> Floats:
    """Return `values` times `shares`, rounded up; entries whose share is 1 stay exact."""
    return np.where(shares == 1, values, up(values * shares, operations=2))


def _between(values: Floats) -> str:
    low, high = extremes(values)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


# How a record's push turns as the iterate moves, which prepayment needs, or why it is not known.
#
# At a turn the two runs differ by s·U(x). For smooth losses U is Lipschitz, and it sees the iterate through few
# directions if the loss is one of scores that are linear in the weights: those of the record and of its neighbour.


_UNCOUNTED = fact("dimension_unknown")


def smooth_push(given: Quantities) -> Smooth | Fact:
    """Return the facts on smoothness that prepayment needs, or the reason why there are none."""
    rank = _rank(given)
    reason = _missing(given, rank)
    if reason is not None or rank is None:
        return reason or _UNCOUNTED
    run = given.run
    low, high, turning = hessians(given)
    change, eta, decay = extremes(np.asarray(given.gradient_change))[0], given.step_sizes, given.run.decay
    middle, half = each(lambda a, b: (a + b) / 2, low, high), each(lambda a, b: (b - a) / 2, low, high)
    factor, share = run.arithmetic.factor, given.shares[1]
    return Smooth(
        center=each(lambda size, m: 1 - size * decay - size * m, eta, middle),
        radius=each(lambda size, m, h: size * h + _ROUNDED * (1 + size * (decay + abs(m) + h)), eta, middle, half),
        movement=each(lambda size, g, part: up(size * g * part * factor), eta, given.gradient_bound, share),
        decay=each(lambda size: np.minimum(up(size * decay), 1.0), eta),
        rough=each(lambda s: up(s * (factor - 1)), given.sensitivity),
        turning=up(turning / change),
        rank=rank,
        start=run.start_norm if decay else 0.0,
    )


def not_smooth(run: Run) -> Fact | None:
    """Return why a step is not known to be a smooth map of the iterate before, or None if it is."""
    if math.isfinite(run.domain.diameter):
        return fact("run_projects")
    if run.prox is not None:
        return fact("run_has_prox")
    if not math.isfinite(run.loss.smoothness):
        return fact("loss_not_smooth")
    return None


def _missing(given: Quantities, rank: int | None) -> Fact | None:
    run = given.run
    if (reason := not_smooth(run)) is not None:
        return reason
    if not math.isfinite(extremes(np.asarray(given.gradient_bound))[1]):
        return fact("gradients_unbounded")
    if run.clip is not None and not isinstance(run.clip, float):
        return fact("clip_changes")
    if rank is None:
        return _UNCOUNTED
    low, high, _ = hessians(given)
    largest = extremes(given.step_sizes)[1]
    if not largest * run.decay <= 1:
        return fact("decay_above_one", product=largest * run.decay)
    if not extremes(each(lambda a, b: 1 - largest * (run.decay + (a + b) / 2), low, high))[0] > 0:
        return fact("step_size_too_large", step_size=largest)
    return None


def hessians(given: Quantities) -> tuple[Floats, Floats, float]:
    """Bounds on a batch's Hessian, without decay, and the largest rate at which a record's part may turn."""
    loss, clipped, (least, most) = given.run.loss, given.run.clip is not None, given.shares
    steepest, replaced = max(abs(loss.curvature), loss.smoothness), given.run.adjacency.replaces
    if clipped and not loss.keeps_convexity:
        ends = [each(np.multiply, most, side * steepest) for side in (-1, 1)]
        return ends[0], ends[1], 2 * steepest if replaced else steepest
    low = 0.0 if clipped else loss.curvature
    ends = [each(np.multiply, share, bound) for bound in (low, loss.smoothness) for share in (least, most)]
    lowest, highest = each(np.minimum, ends[0], ends[1]), each(np.maximum, ends[2], ends[3])
    return lowest, highest, loss.smoothness - low if replaced else steepest


def _rank(given: Quantities) -> int | None:
    """Number of directions that the push may have: those of the records' scores, or all parameters."""
    model = given.run.loss.model
    directions = None if model is None else model.directions
    records = 2 if given.run.adjacency.replaces else 1
    return given.run.domain.dimension if directions is None else records * directions
