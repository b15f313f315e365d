"""Reading proofs and claims: what JSON holds, as the values that the kernel checks, or `Refused`.

Of what is read here the steps and the turns have to be believed: `verify` compares them with those of the run as they are
written. A schedule becomes payments, or a path, and the kernel takes any.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lastiterate.kernel.check import MOST_PAIRS, MOST_STEPS, ClaimedNumbers, Hiding, Parts, Prepayment, Proof
from lastiterate.kernel.places import NewOrders, Places
from lastiterate.kernel.prepaid import FACTS, Kept, Smooth
from lastiterate.kernel.steps import Refused, Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.shift.prepay import Segment, path_along


def read_claim(content: dict[str, Any]) -> ClaimedNumbers:
    """Return the ε, the δ and the μ that a certificate claims."""
    return ClaimedNumbers(read_number(content["epsilon"]), read_number(content["delta"]), read_number(content["mu"]))


def read_proof(content: dict[str, Any]) -> Proof:
    """Return the proof that a certificate holds; a schedule is expanded when the kernel says for which steps."""
    places = read_places(content["steps"], content["turns"])
    expanded = _path if "prepaid" in content else _payments
    return Proof(
        places,
        {_count(one["place"], -1): _parts(one["parts"], expanded, places) for one in content["schedules"]},
        read_number(content["displacement"]),
        read_number(content.get("prior_mu", 0.0)),
        _prepayment(content["prepaid"], len(places.steps)) if "prepaid" in content else None,
        _hiding(content["hidden"], expanded, places) if "hidden" in content else None,
    )


def read_places(steps: dict[str, Any], turns: dict[str, Any]) -> Places:
    """Return the steps of a run, and the places where a record may take its turns."""
    count = _count(steps["count"], 1, MOST_STEPS)
    sensitivity, noise, lipschitz = (read_values(steps[name], count) for name in ("sensitivity", "noise", "lipschitz"))
    if not isinstance(turns["averaged"], bool):
        raise Refused("averaged must be true or false.")
    releases = tuple(_count(release, 1, count - 1) for release in turns["releases"])
    usual, last = turns.get("sizes", (1, 1))
    return {"fixed": Places, "new each epoch": NewOrders}[turns["order"]](
        Steps(sensitivity, noise, lipschitz, read_number(steps["diameter"])),
        _count(turns["every"], 1),
        releases,
        turns["averaged"],
        (_count(usual, 1), _count(last, 1)),
        exchange=read_number(turns.get("exchange", 1.0)),
    )


def _prepayment(content: dict[str, Any], count: int) -> Prepayment:
    arrays = {name: read_values(content[name], count) for name in FACTS}
    rank, functions = _count(content["rank"], 1), _count(content["functions"], 1)
    turning, start, slack, largest = (read_number(content[name]) for name in ("turning", "start", "slack", "largest"))
    return Prepayment(Smooth(**arrays, turning=turning, rank=rank, start=start), largest, slack, functions)


def _hiding(content: dict[str, Any], expanded: Callable[..., Any], places: Places) -> Hiding:
    pairs = []
    for entry in content["pairs"][:MOST_PAIRS]:
        first, second = (_count(place, 0) for place in entry["places"])
        pairs.append(((first, second), _parts(entry["parts"], expanded, places)))
    return Hiding({_count(place, -1): read_number(share) for place, share in content["shares"]}, pairs)


def _parts(content: Any, expanded: Callable[..., Any], places: Places) -> Parts:
    enough = len(places.ends) + 1  # one too many, which the kernel refuses: nothing is made of a long list
    return [partial(expanded, part) for part in (content or ())[:enough]]


def _payments(part: dict[str, Any], steps: Steps) -> tuple[int, Floats]:
    start = _count(part["start"], 0)
    return start, read_payments(steps.part(start, len(steps)), part["blocks"])


def _path(part: dict[str, Any], steps: Steps, given: Kept) -> Floats:
    """A segment is [length, whether it pays off, its last r, whether nothing is left]."""
    listed: list[Segment] = []
    for length, paying_off, last, settled in part["segments"]:
        listed.append((_count(length, 1), bool(paying_off), read_number(last), bool(settled)))
    return path_along(steps, given, listed)


def read_payments(steps: Steps, blocks: list[list[Any]]) -> Floats:
    """Return the payments of blocks [length, wait, first payment, how often], one payment for each step.

    A block pays nothing for `wait` steps, then `first`, and at its end all that is left. Between, payments are in proportion
    to noise²·(product of the Lipschitz constants that follow).
    """
    with np.errstate(all="ignore"):
        ratios = np.append(1.0, np.square(steps.noise[1:] / steps.noise[:-1]) / steps.lipschitz[1:])
        due, at = np.zeros(len(steps)), 0
        for size, waiting, first, often in blocks:
            length, times = _count(size, 1), _count(often, 1)
            wait, end = _count(waiting, 0, length - 1), min(at + length * times, len(steps))
            for begin in range(at + wait, end if wait < length - 1 else 0, length):
                due[begin] = read_number(first)
                last = begin - wait + length - 1
                if last > begin + 1:
                    due[begin + 1 : last] = due[begin] * np.cumprod(ratios[begin + 1 : last])
            due[at + length - 1 : end : length] = math.inf
            at += length * times
    if at != len(steps):
        raise Refused(f"the blocks of a schedule must have {len(steps)} steps. Got {at}.")
    return due


def read_values(content: Any, length: int) -> Floats:
    """Return the numbers of [[value, how often], …], or of {"pattern": such a list}, which repeats.

    One number for all steps is stored once.
    """
    repeats = isinstance(content, dict)
    pairs = content["pattern"] if repeats else content
    values, counts = [read_number(value) for value, _ in pairs], [_count(count, 1, length) for _, count in pairs]
    if sum(counts) != length and not (repeats and 0 < sum(counts) < length):
        raise Refused(f"a packed list must have {length} entries. Got {sum(counts)}.")
    return np.broadcast_to(values[0], length) if len(values) == 1 else np.resize(np.repeat(values, counts), length)


def read_number(value: Any) -> float:
    """Return a number as a float; null stands for infinity, which JSON has not."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise Refused(f"a number must be a number. Got {value!r:.40}.")
    return math.inf if value is None else float(value)


def _count(value: Any, least: int, most: int = 1 << 53) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Refused(f"a count must be an integer from {least} to {most}. Got {value!r:.40}.")
    return value
