"""Whether a proof proves its claim: the entry to the kernel. Both are what JSON holds; docs/accounting.md names the entries.

That the steps are those of a run, and the turns those of its batches, is for others to see: this is about the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .certify import certify
from .gaussian import log_average, log_delta
from .hidden import HiddenPlaces, pair_mus
from .places import Places
from .prepaid import Smooth, kept, prepaid_mu, prepaid_places, when_prepaid
from .read import count_of, number, read_payments, read_places, read_segments, read_smooth
from .steps import Refused

_MOST_PAIRS = 1000  # the others are not looked at: no small file asks for hours
_UP = 1 + 1e-15  # of a root, a product and a sum
_EXCHANGED = 3  # pushes of a record, its neighbour and one that changes places with either: of each two of them
_FAR = 16.0  # times the displacement: beyond it, what is computed and what is proved differ with probability 1e-56

Parts = list[Any]
Price = Callable[[tuple[int, ...], Parts], list[float]]  # μ of each stretch, for a record at these places


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


def check(proof: dict[str, Any], claim: dict[str, Any]) -> None:
    """Nothing, if the schedules prove this ε at this δ, and this μ; else `Refused`."""
    epsilon, delta = number(claim["epsilon"]), number(claim["delta"])
    if not (epsilon >= 0 and 0 < delta < 1):
        raise Refused("epsilon must be >= 0, and delta inside (0, 1).")
    found = proved(proof)
    mu = math.inf if found.averaged or found.slack else max(found.mus)
    if not mu <= number(claim["mu"]):  # null, that is infinity, is no claim
        raise Refused(f"it claims mu = {claim['mu']}, but proves {mu:.12g}")
    if not found.implies(epsilon, delta):
        least = math.exp(found.log_delta(epsilon))
        raise Refused(f"it claims delta = {delta:.12g} at epsilon = {epsilon:.12g}, but proves delta = {least:.12g}")


def proved(proof: dict[str, Any]) -> Proved:
    """What these schedules prove: every place that counts has to be there."""
    places = read_places(proof["steps"], proof["turns"])
    displacement, beforehand = number(proof["displacement"]), number(proof.get("prior_mu", 0.0))
    for name, value in (("displacement", displacement), ("prior_mu", beforehand)):
        if not 0 <= value < math.inf:
            raise Refused(f"{name} must be >= 0.")
    given = {count_of(entry["place"], -1): entry["parts"] for entry in proof["schedules"]}
    if "prepaid" in proof:
        smooth, slack = read_smooth(proof["prepaid"], len(places.steps)), number(proof["prepaid"]["slack"])
        largest = number(proof["prepaid"]["largest"])
        if "hidden" in proof and proof["prepaid"]["functions"] < _EXCHANGED:
            raise Refused(f"where two records change places there are {_EXCHANGED} different pushes.")
        places, times = when_prepaid(places, smooth), places.exchange if "hidden" in proof else 1.0
        wanted, price = prepaid_places(places, smooth, largest, times), _by_segments(places, smooth, proof["prepaid"])
    else:
        wanted, price, slack = places.wanted, _by_blocks(places, displacement), 0.0
    price = _with(beforehand, price)
    mus = {place: _mu(places, (place,), given.get(place), price) for place in wanted}
    hidden = _hidden(places, mus, proof["hidden"], price) if "hidden" in proof else None
    return Proved(tuple(mus.values()), tuple(wanted.values()), places.averaged, hidden, slack, displacement)


def _mu(places: Places, at: tuple[int, ...], parts: Parts | None, price: Price) -> float:
    """Everything released, together."""
    if parts is None or len(parts) != len(places.ends):
        named = " and ".join(map(str, at))
        raise Refused(f"there is no schedule for place {named}, or not one for each of {len(places.ends)} stretches.")
    return math.hypot(*price(at, parts)) * _UP


def _with(beforehand: float, price: Price) -> Price:
    """What was released before is a part of everything released, at every place and for every two of them."""
    return lambda at, parts: [*price(at, parts), beforehand]


def _by_blocks(places: Places, displacement: float) -> Price:
    """Payments after the turns. The computed iterates are a little away from those of the proof, on both data sets."""

    def price(at: tuple[int, ...], parts: Parts) -> list[float]:
        mus = []
        for steps, part in zip(places.stretches(*at), parts, strict=True):
            if steps is not None:
                start = count_of(part["start"], 0)
                mus.append(certify(steps, start, read_payments(steps.part(start, len(steps)), part["blocks"])))
        return [math.hypot(*mus) + 2 * displacement]

    return price


def _by_segments(places: Places, smooth: Smooth, content: dict[str, Any]) -> Price:
    """Paths that may prepay: all steps count, those before the first turn, too."""
    slack, largest, functions = number(content["slack"]), number(content["largest"]), count_of(content["functions"], 1)
    keeping = kept(smooth, places.steps.noise, largest, slack, functions)

    def price(at: tuple[int, ...], parts: Parts) -> list[float]:
        mus, facts = [0.0], smooth.pushed(places.exchange if len(at) > 1 else 1.0)
        for steps, ends, part in zip(places.dense(*at), places.ends, parts, strict=True):
            if steps.sensitivity.any():
                segments = read_segments(part["segments"])
                mus.append(prepaid_mu(steps, facts.part(*ends), keeping.part(*ends), segments, largest))
        return mus

    return price


def _hidden(places: Places, own: dict[int, float], content: Any, price: Price) -> HiddenPlaces:
    if not places.averaged:
        raise Refused("a place that is not random is not hidden.")
    shares = {count_of(place, -1): number(share) for place, share in content["shares"]}
    if list(shares) != list(own) or not all(0 <= share < math.inf for share in shares.values()):
        raise Refused("there must be a share of at least 0 for each place.")
    pairs = {}
    for entry in content["pairs"][:_MOST_PAIRS]:
        first, second = (count_of(place, 0, places.count - 1) for place in entry["places"])
        if not (first < second or (first > second and places.exchange != 1)):
            raise Refused(f"a pair must be of two places, in order. Got {first} and {second}.")
        pairs[first, second] = _mu(places, (first, second), entry["parts"], price)
    return HiddenPlaces(np.array(list(shares.values())), pair_mus(places, own, pairs))
