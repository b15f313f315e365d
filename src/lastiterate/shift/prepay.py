"""The best path with prepayment: the payments noise²·r, where r are the slopes of the linear chain that shows a record best.

Nothing here has to be trusted: whatever comes out is a path, and the kernel prices it.
"""

from __future__ import annotations

import math

import numpy as np

from lastiterate.kernel.prepaid import Kept, Segment
from lastiterate.kernel.steps import Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.geometric import geometric_sum
from lastiterate.runs.per_step import is_constant
from lastiterate.shift.slopes import best_slopes

_TIED = 1e-11  # in parts of r: neighbours in proportion to a bound, up to rounding
_ROOM = 100.0  # times the longest gap: r at the last turn, over what it can be where nothing pulls it up
_FEW, _GAPS = 8, 2  # turns that are worth no shortcut, and so many gaps more at both ends: to be near the best


@np.errstate(all="ignore")
def best_path(steps: Steps, given: Kept) -> list[Segment]:
    """For all steps between two releases, the pushes of one record among them."""
    ends = _ends(steps, given)
    if ends is None:
        slopes = best_slopes(steps.sensitivity, steps.noise, given.least, np.maximum(steps.lipschitz, given.least))
        return _segments(slopes, steps.lipschitz, given.least)
    return _around_a_middle(steps, float(given.least[-1]), *ends)


def _ends(steps: Steps, given: Kept) -> tuple[int, int] | None:
    """With all steps alike that bring nothing apart, r grows by the Lipschitz constant alone from the first of these on.

    The first turns are cheaper, and the last pull r up before them, by 1/(what is kept) a step at most; when that has faded
    there is no other reason to rise. None where the steps in between are too few to be worth it.
    """
    turns = np.flatnonzero(steps.sensitivity)
    alike = all(is_constant(values) for values in (steps.noise, steps.lipschitz, given.center)) and given.constant
    highest, least = float(steps.lipschitz[0]), float(given.least[-1])
    if not alike or highest > 1 or not 0 < least < highest or len(turns) < _FEW:
        return None
    gap = float(np.diff(turns, append=len(steps)).max())
    fading = math.ceil(math.log(_ROOM * gap) / math.log(highest / least) + _GAPS * gap)
    begin, end = int(turns[0]) + fading, len(steps) - fading
    return (begin, end) if end - begin > fading else None


def _around_a_middle(steps: Steps, least: float, begin: int, end: int) -> list[Segment]:
    """The steps from `begin` to `end` as one, whose push and noise are theirs together."""
    highest, count = float(steps.lipschitz[0]), end - begin
    inside = np.flatnonzero(steps.sensitivity[begin:end])
    push = float(np.sum(steps.sensitivity[begin + inside] * highest ** (count - 1.0 - inside)))
    together = float(steps.noise[0]) * math.sqrt(geometric_sum(highest * highest, count))
    pushes = np.concatenate([steps.sensitivity[:begin], [push], steps.sensitivity[end:]])
    noise = np.concatenate([steps.noise[:begin], [together], steps.noise[end:]])
    lowest, most = np.full(len(pushes), least), np.full(len(pushes), highest)
    lowest[begin], most[begin] = least * highest ** (count - 1.0), highest**count
    slopes = best_slopes(pushes, noise, lowest, most)
    before, after = (_segments(slopes[cut], most[cut], lowest[cut]) for cut in (slice(begin), slice(begin + 1, None)))
    tied = slopes[begin - 1] >= (1 - _TIED) * most[begin] * slopes[begin]
    before[-1] = (*before[-1][:3], not tied)
    last = float(slopes[begin])
    settled = highest * slopes[begin + 1] - last > _TIED * last
    return [*before, (count, True, last, bool(settled)), *after]


def _segments(slopes: Floats, highest: Floats, lowest: Floats) -> list[Segment]:
    """Stretches along which r is in proportion to one of its bounds; where it is to neither, nothing is left."""
    before, after = slopes[:-1], slopes[1:]
    room = _TIED * np.maximum(before, after)
    by_high, by_low = (np.abs(before - bound[1:] * after) <= room for bound in (highest, lowest))
    links = [*np.where(by_high, 1, np.where(by_low, 0, -1)).tolist(), -1]
    found: list[Segment] = []
    start = 0
    while start < len(slopes):
        kind, end = links[start], start
        while kind >= 0 and links[end] == kind:
            end += 1
        found.append((end - start + 1, kind != 0, float(slopes[end]), links[end] < 0))
        start = end + 1
    return found


def paid_at_once(steps: Steps) -> list[Segment]:
    """Every push where it comes: whatever the factors, nothing is left that they could enlarge."""
    found: list[Segment] = []
    before = 0
    for turn in np.flatnonzero(steps.sensitivity).tolist():
        if turn > before:
            found.append((turn - before, True, 0.0, True))
        found.append((1, True, float(steps.sensitivity[turn]) / float(steps.noise[turn]) ** 2, True))
        before = turn + 1
    return [*found, (len(steps) - before, True, 0.0, True)] if before < len(steps) else found
