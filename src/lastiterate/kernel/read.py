"""What JSON holds, as numbers that make sense: or it is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .places import NewOrders, Places
from .prepaid import FACTS, Segment, Smooth
from .steps import Floats, Refused, Steps

_MOST_STEPS = 50_000_000  # so that no small file asks for hours


def read_smooth(content: dict[str, Any], count: int) -> Smooth:
    arrays = {name: _values(content[name], count) for name in FACTS}
    if not all((values >= 0).all() for values in arrays.values()):
        raise Refused("what is known of the gradients must be >= 0.")
    turning, start = number(content["turning"]), number(content["start"])
    return Smooth(**arrays, turning=turning, rank=count_of(content["rank"], 1), start=start)


def read_segments(content: list[Any]) -> list[Segment]:
    """Of a schedule that may prepay: [length, whether it pays off, its last r, whether nothing is left]."""
    return [(count_of(size, 1), bool(off), number(last), bool(done)) for size, off, last, done in content]


def read_payments(steps: Steps, blocks: list[list[Any]]) -> Floats:
    """[length, wait, first, how often] is a block: nothing for `wait` steps, then `first`, at its end all that is left.

    Between, payments are in proportion to noise²·(product of the Lipschitz constants that follow). Any payments are valid.
    """
    with np.errstate(all="ignore"):
        ratios = np.append(1.0, np.square(steps.noise[1:] / steps.noise[:-1]) / steps.lipschitz[1:])
        due, at = np.zeros(len(steps)), 0
        for size, waiting, first, often in blocks:
            length, times = count_of(size, 1), count_of(often, 1)
            wait, end = count_of(waiting, 0, length - 1), min(at + length * times, len(steps))
            for begin in range(at + wait, end if wait < length - 1 else 0, length):
                due[begin] = number(first)
                last = begin - wait + length - 1
                if last > begin + 1:
                    due[begin + 1 : last] = due[begin] * np.cumprod(ratios[begin + 1 : last])
            due[at + length - 1 : end : length] = math.inf
            at += length * times
    if at != len(steps):
        raise Refused(f"the blocks of a schedule must have {len(steps)} steps. Got {at}.")
    return due


def read_places(steps: dict[str, Any], turns: dict[str, Any]) -> Places:
    count = count_of(steps["count"], 1, _MOST_STEPS)
    sensitivity, noise, lipschitz = (_values(steps[name], count) for name in ("sensitivity", "noise", "lipschitz"))
    diameter = number(steps["diameter"])
    if not ((sensitivity >= 0) & (noise > 0) & (noise < math.inf) & (lipschitz >= 0)).all() or not diameter > 0:
        raise Refused("sensitivity and lipschitz must be >= 0, noise and diameter > 0.")
    releases = tuple(count_of(release, 1, count - 1) for release in turns["releases"])
    if list(releases) != sorted(set(releases)) or not isinstance(turns["averaged"], bool):
        raise Refused("releases must be in order, and averaged true or false.")
    if not 1 <= (exchange := number(turns.get("exchange", 1.0))) < math.inf:
        raise Refused("a record must push at least as far beside others as beside its neighbour.")
    kind = {"fixed": Places, "new each epoch": NewOrders}[turns["order"]]
    usual, last = turns.get("sizes", (1, 1))
    sizes = count_of(usual, 1), count_of(last, 1, usual)
    given, every = Steps(sensitivity, noise, lipschitz, diameter), count_of(turns["every"], 1)
    return kind(given, every, releases, turns["averaged"], sizes, exchange=exchange)


def _values(content: Any, length: int) -> Floats:
    """[[value, how often], …]; or {"pattern": such a list}, which repeats."""
    repeats = isinstance(content, dict)
    pairs = content["pattern"] if repeats else content
    values, counts = [number(value) for value, _ in pairs], [count_of(count, 1, length) for _, count in pairs]
    if sum(counts) != length and not (repeats and 0 < sum(counts) < length):
        raise Refused(f"a packed list must have {length} entries. Got {sum(counts)}.")
    return np.broadcast_to(values[0], length) if len(values) == 1 else np.resize(np.repeat(values, counts), length)


def number(value: Any) -> float:
    """JSON has no infinity; null stands for it."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise Refused(f"a number must be a number. Got {value!r:.40}.")
    return math.inf if value is None else float(value)


def count_of(value: Any, least: int, most: int = 1 << 53) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Refused(f"a count must be an integer from {least} to {most}. Got {value!r:.40}.")
    return value
