"""Whether a proof proves its claim: the entry to the kernel. Both are what JSON holds; docs/accounting.md names the entries.

That the steps are those of a run, and the turns those of its batches, is for others to see: this is about the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .certify import certify
from .gaussian import log_average, log_delta
from .hidden import HiddenPlaces, pair_mus
from .places import NewOrders, Places
from .steps import Floats, Refused, Steps

_MOST_STEPS = 50_000_000  # so that no small file asks for hours
_MOST_PAIRS = 1000  # the others are not looked at
_UP = 1 + 1e-15  # of a root, a product and a sum


@dataclass(frozen=True)
class Proved:
    """μ of a record at each place that counts, with its probability; without one, the worst counts."""

    mus: tuple[float, ...]
    weights: tuple[float, ...]
    averaged: bool
    hidden: HiddenPlaces | None = None

    def log_delta(self, epsilon: float) -> float:
        """log δ at this ε, rounded up."""
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
    epsilon, delta = _number(claim["epsilon"]), _number(claim["delta"])
    if not (epsilon >= 0 and 0 < delta < 1):
        raise Refused("epsilon must be >= 0, and delta inside (0, 1).")
    found = proved(proof)
    mu = math.inf if found.averaged else max(found.mus)
    if not mu <= _number(claim["mu"]):  # null, that is infinity, is no claim
        raise Refused(f"it claims mu = {claim['mu']}, but proves {mu:.12g}")
    if not found.implies(epsilon, delta):
        least = math.exp(found.log_delta(epsilon))
        raise Refused(f"it claims delta = {delta:.12g} at epsilon = {epsilon:.12g}, but proves delta = {least:.12g}")


def proved(proof: dict[str, Any]) -> Proved:
    """What these schedules prove: every place that counts has to be there."""
    places = _places(proof["steps"], proof["turns"])
    if not 0 <= (displacement := _number(proof["displacement"])) < math.inf:
        raise Refused("displacement must be >= 0.")
    moved = partial(_as_computed, displacement=displacement)
    given = {_count(entry["place"], -1): entry["parts"] for entry in proof["schedules"]}
    mus = {place: moved(_mu(places.stretches(place), given.get(place), place)) for place in places.wanted}
    hidden = _hidden(places, mus, proof["hidden"], moved) if "hidden" in proof else None
    return Proved(tuple(mus.values()), tuple(places.wanted.values()), places.averaged, hidden)


def _as_computed(mu: float, displacement: float) -> float:
    """The computed iterates are this far from those of the proof, on both data sets."""
    return (mu + 2 * displacement) * _UP if displacement else mu


def _hidden(places: Places, own: dict[int, float], content: Any, moved: Callable[[float], float]) -> HiddenPlaces:
    if not places.averaged:
        raise Refused("a place that is not random is not hidden.")
    shares = {_count(place, -1): _number(share) for place, share in content["shares"]}
    if list(shares) != list(own) or not all(0 <= share < math.inf for share in shares.values()):
        raise Refused("there must be a share of at least 0 for each place.")
    pairs = {}
    for entry in content["pairs"][:_MOST_PAIRS]:
        first, second = (_count(place, 0, places.count - 1) for place in entry["places"])
        if not first < second:
            raise Refused(f"a pair must be of two places, in order. Got {first} and {second}.")
        pairs[first, second] = moved(_mu(places.stretches(first, second), entry["parts"], f"{first} and {second}"))
    return HiddenPlaces(np.array(list(shares.values())), pair_mus(places, own, pairs))


def _mu(stretches: list[Steps | None], schedules: list[Any] | None, place: object) -> float:
    """Everything released, together."""
    if schedules is None or len(schedules) != len(stretches):
        raise Refused(f"there is no schedule for place {place}, or not one for each of {len(stretches)} stretches.")
    mus = [0.0]
    for steps, schedule in zip(stretches, schedules, strict=True):
        if steps is not None:
            start = _count(schedule["start"], 0)
            mus.append(certify(steps, start, payments(steps.part(start, len(steps)), schedule["blocks"])))
    return math.hypot(*mus) * _UP


def payments(steps: Steps, blocks: list[list[Any]]) -> Floats:
    """[length, wait, first, how often] is a block: nothing for `wait` steps, then `first`, at its end all that is left.

    Between, payments are in proportion to noise²·(product of the Lipschitz constants that follow). Any payments are valid.
    """
    with np.errstate(all="ignore"):
        ratios = np.append(1.0, np.square(steps.noise[1:] / steps.noise[:-1]) / steps.lipschitz[1:])
        due, at = np.zeros(len(steps)), 0
        for size, waiting, first, often in blocks:
            length, times = _count(size, 1), _count(often, 1)
            wait, end = _count(waiting, 0, length - 1), min(at + length * times, len(steps))
            for begin in range(at + wait, end if wait < length - 1 else 0, length):
                due[begin] = _number(first)
                last = begin - wait + length - 1
                if last > begin + 1:
                    due[begin + 1 : last] = due[begin] * np.cumprod(ratios[begin + 1 : last])
            due[at + length - 1 : end : length] = math.inf
            at += length * times
    if at != len(steps):
        raise Refused(f"the blocks of a schedule must have {len(steps)} steps. Got {at}.")
    return due


def _places(steps: dict[str, Any], turns: dict[str, Any]) -> Places:
    count = _count(steps["count"], 1, _MOST_STEPS)
    sensitivity, noise, lipschitz = (_values(steps[name], count) for name in ("sensitivity", "noise", "lipschitz"))
    diameter = _number(steps["diameter"])
    if not ((sensitivity >= 0) & (noise > 0) & (noise < math.inf) & (lipschitz >= 0)).all() or not diameter > 0:
        raise Refused("sensitivity and lipschitz must be >= 0, noise and diameter > 0.")
    releases = tuple(_count(release, 1, count - 1) for release in turns["releases"])
    if list(releases) != sorted(set(releases)) or not isinstance(turns["averaged"], bool):
        raise Refused("releases must be in order, and averaged true or false.")
    kind = {"fixed": Places, "new each epoch": NewOrders}[turns["order"]]
    return kind(Steps(sensitivity, noise, lipschitz, diameter), _count(turns["every"], 1), releases, turns["averaged"])


def _values(content: Any, length: int) -> Floats:
    """[[value, how often], …]; or {"pattern": such a list}, which repeats."""
    repeats = isinstance(content, dict)
    pairs = content["pattern"] if repeats else content
    values, counts = [_number(value) for value, _ in pairs], [_count(count, 1, length) for _, count in pairs]
    if sum(counts) != length and not (repeats and 0 < sum(counts) < length):
        raise Refused(f"a packed list must have {length} entries. Got {sum(counts)}.")
    return np.broadcast_to(values[0], length) if len(values) == 1 else np.resize(np.repeat(values, counts), length)


def _number(value: Any) -> float:
    """JSON has no infinity; null stands for it."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise Refused(f"a number must be a number. Got {value!r:.40}.")
    return math.inf if value is None else float(value)


def _count(value: Any, least: int, most: int = 1 << 53) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Refused(f"a count must be an integer from {least} to {most}. Got {value!r:.40}.")
    return value
