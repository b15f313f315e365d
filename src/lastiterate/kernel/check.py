"""Whether a proof proves its claim: the entry to the kernel.

That the steps are those of a run, and the turns those of its batches, is for others to see: this is about the numbers. A
schedule is any function that says what is paid at the steps it is given; its answer is checked as floats of 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .certify import certify
from .gaussian import log_average, log_delta
from .hidden import HiddenPlaces, pair_mus
from .places import Places
from .prepaid import FACTS, Kept, Smooth, kept, prepaid_mu, prepaid_places, when_prepaid
from .steps import Floats, Refused, Steps

MOST_STEPS = 50_000_000  # so that no small file asks for hours
MOST_PAIRS = 1000  # the others are not looked at, for the same reason
_UP = 1 + 1e-15  # of a root, a product and a sum
_EXCHANGED = 3  # pushes of a record, its neighbour and one that changes places with either: of each two of them
_FAR = 16.0  # times the displacement: beyond it, what is computed and what is proved differ with probability 1e-56

# For each stretch between two releases, a function of its steps: (start, payments), as `certify` takes them; or, where
# noise may come before a turn, a function of its steps and of what they keep: the path, as `prepaid_mu` takes it.
Parts = Sequence[Callable[..., Any]]
Seen = TypeVar("Seen", Steps, Kept)
Price = Callable[[tuple[int, ...], Parts], list[float]]  # μ of each stretch, for a record at these places


@dataclass(frozen=True)
class ClaimedNumbers:
    """What is claimed: (ε, δ), and μ, where infinity is no claim."""

    epsilon: float
    delta: float
    mu: float


@dataclass(frozen=True, eq=False)
class Prepayment:
    """What paths that prepay assume of the gradients, but for a probability `slack`.

    No payment is larger than `largest`, and there are so many different pushes (`functions`).
    """

    smooth: Smooth
    largest: float
    slack: float
    functions: int


@dataclass(frozen=True, eq=False)
class Hiding:
    """A hidden place: the share of each place, and schedules for a record at one and its neighbour at another."""

    shares: Mapping[int, float]
    pairs: Sequence[tuple[tuple[int, int], Parts]]


@dataclass(frozen=True, eq=False)
class Proof:
    """The steps and the turns of a record, with schedules for a record at each place.

    What is computed is `displacement`-GDP away from what is proved, and what was released before training is prior_mu-GDP.
    """

    places: Places
    schedules: Mapping[int, Parts]
    displacement: float = 0.0
    prior_mu: float = 0.0
    prepayment: Prepayment | None = None
    hiding: Hiding | None = None


@dataclass(frozen=True)
class Proved:
    """μ of a record at each place that counts, with its probability; without one, the worst counts. It is that of training
    and of what was released before it, together.

    `hidden`: places may be compared with others. It holds but for a probability `slack`; what is computed is
    `displacement`-GDP away from it, on either data set.
    """

    mus: tuple[float, ...]
    weights: tuple[float, ...]
    averaged: bool
    hidden: HiddenPlaces | None = None
    slack: float = 0.0
    displacement: float = 0.0

    def log_delta(self, epsilon: float) -> float:
        """log δ at this ε, rounded up: δ'(ε + 2a) ≤ e^a·(δ(ε) + slack) + (1 + e^{a+ε})·θ_a(displacement)."""
        if not self.slack:
            return self._log_delta(epsilon)
        moved = _FAR * self.displacement
        if epsilon < 2 * moved:
            return 0.0
        before = epsilon - 2 * moved
        inner = float(np.logaddexp(self._log_delta(before), math.log(self.slack))) + moved
        if self.displacement:
            apart = float(log_delta(moved, np.array([self.displacement]))[0])
            inner = float(np.logaddexp(inner, apart + np.logaddexp(0.0, moved + before)))
        return min(inner + 1e-15 * (1 + abs(inner)), 0.0)

    def _log_delta(self, epsilon: float) -> float:
        mus, weights = np.array(self.mus), np.array(self.weights)
        if self.hidden is not None:
            return self.hidden.log_delta(epsilon, mus, weights)
        kept = mus > 0
        if self.averaged:
            return log_average(epsilon, mus[kept], weights[kept]) if kept.any() else -math.inf
        return float(log_delta(epsilon, mus.max(keepdims=True))[0]) if mus.any() else -math.inf

    def implies(self, epsilon: float, delta: float) -> bool:
        """Whether δ(ε) ≤ delta, whose logarithm is rounded down."""
        return epsilon == math.inf or self.log_delta(epsilon) <= math.log(delta) * (1 + 4 * 2.0**-52)


def check(proof: Proof, claim: ClaimedNumbers) -> None:
    """Return if the schedules prove this ε at this δ, and this μ; else raise `Refused`."""
    if not (claim.epsilon >= 0 and 0 < claim.delta < 1):
        raise Refused("epsilon must be >= 0, and delta inside (0, 1).")
    found = proved(proof)
    mu = math.inf if found.averaged or found.slack else max(found.mus)
    if not mu <= claim.mu:
        raise Refused(f"it claims mu = {claim.mu}, but proves {mu:.12g}")
    if not found.implies(claim.epsilon, claim.delta):
        named = f"delta = {claim.delta:.12g} at epsilon = {claim.epsilon:.12g}"
        raise Refused(f"it claims {named}, but proves delta = {math.exp(found.log_delta(claim.epsilon)):.12g}")


def proved(proof: Proof) -> Proved:
    """Return what these schedules prove: every place that counts has to be there."""
    places, prepayment, hiding = proof.places, proof.prepayment, proof.hiding
    _refuse_impossible(places)
    for name, value in (("displacement", proof.displacement), ("prior_mu", proof.prior_mu)):
        if not 0 <= value < math.inf:
            raise Refused(f"{name} must be >= 0.")
    if prepayment is None:
        wanted, price, slack = places.wanted, _by_blocks(places, proof.displacement), 0.0
    else:
        if hiding is not None and prepayment.functions < _EXCHANGED:
            raise Refused(f"where two records change places there are {_EXCHANGED} different pushes.")
        _refuse_below_zero(prepayment.smooth, len(places.steps))
        places, times = when_prepaid(places, prepayment.smooth), 1.0 if hiding is None else places.exchange
        wanted = prepaid_places(places, prepayment.smooth, prepayment.largest, times)
        price, slack = _by_paths(places, prepayment), prepayment.slack
    price = _with(proof.prior_mu, price)
    mus = {place: _mu(places, (place,), proof.schedules.get(place), price) for place in wanted}
    hidden = None if hiding is None else _hidden(places, mus, hiding, price)
    return Proved(tuple(mus.values()), tuple(wanted.values()), places.averaged, hidden, slack, proof.displacement)


def _refuse_impossible(places: Places) -> None:
    """Refuse steps and turns that no run has."""
    steps, count = places.steps, len(places.steps)
    if not (1 <= count <= MOST_STEPS and len(steps.sensitivity) == len(steps.lipschitz) == count):
        raise Refused(f"there must be from 1 to {MOST_STEPS} steps, each with a sensitivity, a noise and a factor.")
    fine = (steps.sensitivity >= 0) & (steps.noise > 0) & (steps.noise < math.inf) & (steps.lipschitz >= 0)
    if not fine.all() or not steps.diameter > 0:
        raise Refused("sensitivity and lipschitz must be >= 0, noise and diameter > 0.")
    if list(places.releases) != sorted({at for at in places.releases if 1 <= at < count}):
        raise Refused("releases must be in order, each after a step and before the last.")
    if not (places.every >= 1 and 1 <= places.sizes[1] <= places.sizes[0]):
        raise Refused("an epoch must have batches, the last of them no larger than the others.")
    if not 1 <= places.exchange < math.inf:
        raise Refused("a record must push at least as far beside others as beside its neighbour.")


def _refuse_below_zero(smooth: Smooth, count: int) -> None:
    """Refuse facts about gradients that cannot be; `kept` refuses others."""
    arrays: list[Floats] = [getattr(smooth, name) for name in FACTS]
    if not all(len(values) == count and (values >= 0).all() for values in arrays):
        raise Refused("what is known of the gradients must be >= 0.")


def _mu(places: Places, at: tuple[int, ...], parts: Parts | None, price: Price) -> float:
    """Return μ of everything released, for a record at this place, or at the first and its neighbour at the second."""
    if parts is None or len(parts) != len(places.ends):
        named = " and ".join(map(str, at))
        raise Refused(f"there is no schedule for place {named}, or not one for each of {len(places.ends)} stretches.")
    return math.hypot(*price(at, parts)) * _UP


def _with(prior_mu: float, price: Price) -> Price:
    """Return `price` with what was released before, which is a part of everything released at every place."""
    return lambda at, parts: [*price(at, parts), prior_mu]


def _by_blocks(places: Places, displacement: float) -> Price:
    """Price payments after the turns. Computed iterates are a little away from those of the proof, on both data sets."""

    def price(at: tuple[int, ...], parts: Parts) -> list[float]:
        mus = []
        for steps, pay in zip(places.stretches(*at), parts, strict=True):
            if steps is not None:
                start, due = pay(_read_only(steps))
                mus.append(certify(steps, start, np.array(due, dtype=np.float64)))
        return [math.hypot(*mus) + 2 * displacement]

    return price


def _by_paths(places: Places, prepayment: Prepayment) -> Price:
    """Price paths that may prepay: all steps count, those before the first turn, too."""
    keeping = kept(prepayment.smooth, places.steps.noise, prepayment.largest, prepayment.slack, prepayment.functions)

    def price(at: tuple[int, ...], parts: Parts) -> list[float]:
        mus, facts = [0.0], prepayment.smooth.pushed(places.exchange if len(at) > 1 else 1.0)
        for steps, ends, path in zip(places.dense(*at), places.ends, parts, strict=True):
            if steps.sensitivity.any():
                given = _read_only(keeping.part(*ends))
                shown = np.array(path(_read_only(steps), given), dtype=np.float64)
                mus.append(prepaid_mu(steps, facts.part(*ends), given, shown, prepayment.largest))
        return mus

    return price


def _read_only(given: Seen) -> Seen:
    """Return the steps, or what they keep, as a schedule may see them: by accident it changes nothing of them."""
    for values in vars(given).values():
        if isinstance(values, np.ndarray):
            values.flags.writeable = False
    return given


def _hidden(places: Places, own: dict[int, float], hiding: Hiding, price: Price) -> HiddenPlaces:
    if not places.averaged:
        raise Refused("a place that is not random is not hidden.")
    shares = hiding.shares
    if list(shares) != list(own) or not all(0 <= share < math.inf for share in shares.values()):
        raise Refused("there must be a share of at least 0 for each place.")
    pairs = {}
    for (first, second), parts in hiding.pairs[:MOST_PAIRS]:
        in_order = first < second or (first > second and places.exchange != 1)
        if not in_order or not 0 <= min(first, second) <= max(first, second) < places.count:
            raise Refused(f"a pair must be of two places, in order. Got {first} and {second}.")
        pairs[first, second] = _mu(places, (first, second), parts, price)
    return HiddenPlaces(np.array(list(shares.values())), pair_mus(places, own, pairs))
