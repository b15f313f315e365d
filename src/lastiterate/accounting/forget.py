"""How many further steps make a model forget some of its records."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lastiterate.accounting.forgetting import Requests, check_covered
from lastiterate.accounting.forgetting_adaptive import check_adaptive
from lastiterate.accounting.forgetting_proofs import forgotten
from lastiterate.accounting.forgotten import Forgetting
from lastiterate.accounting.releases import checked_releases
from lastiterate.accounting.searches.by_theorem import as_executed
from lastiterate.errors import (
    INSIDE_UNIT,
    POSITIVE,
    InvalidInput,
    Unavailable,
    checked_count,
    checked_number,
    must_be,
    shown,
)
from lastiterate.facts import Fact
from lastiterate.progress import as_one
from lastiterate.runs.named import names_arguments
from lastiterate.runs.run import Run, checked_run


@names_arguments
def forget(
    run: Run,
    *,
    epsilon: float,
    delta: float,
    removals: int | Iterable[int] = 1,
    releases: Iterable[int] = (),
    release_each: bool = False,
    adaptive: bool = False,
    most_steps: int = 1_000_000,
) -> Forgetting:
    """The fewest further steps without the removed records after which the model of `run` is (epsilon, delta)-
    indistinguishable from that of a run of as many steps that never had them.

    `removals`: how many records are removed at once; or a list with one number for each request, of which each comes when
    the steps of the one before are done. After each, the claim is about all records removed so far. With li.ZERO_OUT a
    removed record contributes nothing; with li.REPLACE_ONE another record takes its place. Further steps have the settings
    of the last step of training; with batches in passes they are whole epochs.

    If you also released the iterates after `releases` steps, counted from the start of training, the claim is about them and
    the model together, and further steps cannot take back what they reveal. `release_each`: the model after each request is
    released, too; the claim after a request is then about its own records. `adaptive`: requests may depend on everything
    that was computed before them. The claim is then about the model given all of that, and needs a bounded domain.

    As in `li.calibrate`, room is left for the rounding of a training, unless the run states its arithmetic.
    """
    checked_run(run)
    target, delta = checked_number("epsilon", epsilon, POSITIVE), checked_number("delta", delta, INSIDE_UNIT)
    asked, most = _checked_removals(removals), checked_count("most_steps", most_steps)
    places, each = checked_releases(releases), _checked_flag("release_each", release_each)
    if _checked_flag("adaptive", adaptive) and (places or each):
        raise InvalidInput("adaptive_with_releases", field="releases")
    (check_adaptive if adaptive else check_covered)(run, Requests(asked, (), places, adaptive, each))
    found, executed = Requests((), (), places, adaptive, each), as_executed(run)
    with as_one("forgetting"):
        for count in asked:
            found = replace(found, removals=(*found.removals, count))
            found = replace(found, steps=(*found.steps, _least_steps(executed, found, (target, delta), most)))
            if each:
                found = replace(found, releases=checked_releases({*found.releases, *found.ends(run.steps)}))
        return forgetting_of(run, target, delta, found)


def forgetting_of(
    run: Run, target: float, delta: float, requests: Requests, caveats: tuple[Fact, ...] = ()
) -> Forgetting:
    """What is proved of these requests, whatever the target."""
    counts = range(1, len(requests.removals) + 1)
    found = tuple(forgotten(run, requests.first(one), delta) for one in counts)
    about = requests.removals, requests.steps, requests.releases
    return Forgetting(run, target, delta, *about, found, caveats, requests.adaptive, requests.separate)


def _least_steps(run: Run, requests: Requests, goal: tuple[float, float], most: int) -> int:
    """More steps hide more, so a least number that is enough is found by doubling and halving."""
    target, delta = goal
    unit = run.batches.per_epoch if run.batches.passes else 1
    released = _next_release(run, requests)
    most = min(most, released) if released is not None else most

    def epsilon(count: int) -> float:
        if requests.adaptive and not count:
            return math.inf
        return forgotten(run, replace(requests, steps=(*requests.steps, count * unit)), delta).epsilon(delta)

    low, high, found = -1, 0, epsilon(0)
    while found > target:
        if high * unit >= most:
            raise _not_enough(run, high * unit, found, goal, released is not None)
        low, high = high, min(max(2 * high, 1), -(-most // unit))
        found = epsilon(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if epsilon(middle) > target else (low, middle)
    return high * unit


def _next_release(run: Run, requests: Requests) -> int | None:
    """So many steps after the last request an iterate is released; from then on nothing is forgotten any more."""
    now = run.steps + sum(requests.steps)
    return next((place - now for place in requests.releases if place >= now), None)


def _not_enough(run: Run, steps: int, epsilon: float, goal: tuple[float, float], released: bool) -> Unavailable:
    target, delta = goal
    if released:
        return Unavailable("released_not_forgotten", field="releases", target=target, epsilon=epsilon, delta=delta)
    apart = run.process.contraction > 1
    return Unavailable("steps_not_enough", field="epsilon", steps=steps, epsilon=epsilon, delta=delta, apart=apart)


def _checked_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise must_be(name, "True or False", f"{shown(value):.60}")
    return value


def _checked_removals(removals: Any) -> tuple[int, ...]:
    if isinstance(removals, str) or not isinstance(removals, Iterable):
        return (checked_count("removals", removals),)
    found = tuple(checked_count("removals", one) for one in removals)
    if not found:
        raise InvalidInput("no_removals", field="removals", got="none")
    return found
