"""A run as theorems see it: everything on the iterate, one entry per step, no step size and no convention left."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.display import summary
from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import Smooth
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import Batches
from lastiterate.runs.per_step import extremes, is_constant
from lastiterate.runs.updates import PLAIN_UPDATE, Update

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
        """For each step, how likely it is to see the record; for cyclic batches, a record that the last step sees."""
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
        """As long as no batch is of unusual size, which some batch is with at most this probability."""
        if self.usual is None or exception == 0:
            return replace(self, usual=None)
        return replace(self.usual(math.log(exception) - math.log(len(self))), releases=self.releases)

    @property
    def worst_alike(self) -> Process:
        """As many steps, each as bad as the worst of them in every respect."""
        steps = len(self)
        return self._each(lambda values, worst: np.broadcast_to(extremes(values)[worst], steps))

    def part(self, first: int, last: int) -> Process:
        """Steps `first` to `last`, the latter left out, by themselves."""
        return self._each(lambda values, _: values[first:last])

    def like_the_first(self, steps: int) -> Process:
        """So many steps, each like the first."""
        smooth = self.smooth if isinstance(self.smooth, Fact) else self.smooth.like_the_first(steps)
        return replace(self._each(lambda values, _: np.broadcast_to(values[0], steps)), smooth=smooth)

    def repeated(self, steps: int) -> Process:
        """So many steps, of which this is the first epoch: each as bad as the worst of it, the others by `inside`."""
        worst = self.worst_alike
        pushes, sampled, factor = (
            _share(float(getattr(self, name)[0]), float(getattr(worst, name)[0]))
            for name in ("sensitivity", "sampled", "lipschitz")
        )
        found = worst._each(lambda values, _: np.broadcast_to(values[0], steps))
        return replace(found, inside=(max(pushes, sampled), factor))

    def without_a_distant_start(self) -> Process:
        """The last steps of a very long run whose epochs are alike and contract, from a common state; else the run itself.

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
        """So many, whole epochs left out, from a common state; what is computed is this much farther from what is proved."""
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
        """`change` gets the quantities of all steps, and whether the least (0) or the greatest (1) of them is the worst."""
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
        """From one released iterate to the next."""
        ends = (0, *self.releases, len(self))
        return list(pairwise(ends))


def _share(one: float, worst: float) -> float:
    return min(up(one / worst, operations=2), 1.0) if 0 < worst < math.inf else 1.0


def _times(values: Floats, shares: Floats) -> Floats:
    """What is not smaller stays exactly as it is."""
    return np.where(shares == 1, values, up(values * shares, operations=2))


def _between(values: Floats) -> str:
    low, high = extremes(values)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
