"""The best path with prepayment: the payments noise²·r, where r are the slopes of the linear chain that shows a record best.

Nothing here has to be trusted: whatever comes out is a path, and the kernel prices it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from lastiterate.kernel.prepaid import Kept
from lastiterate.kernel.steps import Refused, Steps, greatest
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import geometric_sum
from lastiterate.runs.per_step import is_constant

Segment = tuple[int, bool, float, bool]  # length, whether it pays off or prepays, its last r, whether nothing is left

_LOST = 2.0**-48  # of what may be prepaid: more than the kernel allows its sums to have lost
_CHUNK = 1 << 16
_TIED = 1e-11  # in parts of r: neighbours in proportion to a bound, up to rounding
_ROOM = 100.0  # times the longest gap: r at the last turn, over what it can be where nothing pulls it up
_FEW, _GAPS = 8, 2  # turns that are worth no shortcut, and so many gaps more at both ends: to be near the best


@np.errstate(all="ignore")
def best_path(steps: Steps, given: Kept) -> list[Segment]:
    """Return the best path through all steps between two releases, the pushes of one record among them."""
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
    alike = all(is_constant(values) for values in (steps.noise, steps.lipschitz, given.center))
    alike = alike and bool((given.lost[1:] == given.lost[-1]).all())
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


# The path along which a schedule pays.


@np.errstate(all="ignore")  # what leaves the range of floats is infinite or no number, and priced or refused as such
def path_along(steps: Steps, given: Kept, segments: Iterable[Segment]) -> Floats:
    """The path of these segments: −b where something is prepaid and ρ where something is left; noise²·r is paid.

    From the end of each segment backwards r falls by L or by what is kept.
    """
    least, left, at, path = given.least, 0.0, 0, np.zeros(len(steps))
    for length, paying_off, last, settled in segments:
        if at + length > len(steps):
            break
        rates = (steps.lipschitz if paying_off else least)[at : at + length]
        due = np.cumprod(np.append(last, rates[:0:-1]))[::-1] * np.square(steps.noise[at : at + length])
        if settled and paying_off and greatest(rates) > 1:  # rounding would grow on its way: from the end backwards
            path[at : at + length] = _left_backwards(steps.part(at, at + length), due)
        else:
            left = _left_onwards(
                steps.part(at, at + length), least[at : at + length], due, left, path[at : at + length]
            )
        at += length
        if settled:
            path[at - 1] = left = 0.0
    if at != len(steps):
        raise Refused(f"segments must have {len(steps)} steps.")
    return _kept_until_the_turn(steps, given, path)


def _left_onwards(steps: Steps, least: Floats, due: Floats, left: float, path: Floats) -> float:
    """Write what is left after each of these steps into `path`, and return what is left after the last."""
    for first in range(0, len(steps), _CHUNK):
        cut = slice(first, first + _CHUNK)
        rows = (steps.sensitivity[cut], due[cut], steps.lipschitz[cut], least[cut])
        found = []
        for push, payment, up, down in zip(*(row.tolist() for row in rows), strict=True):
            left = (up if left > 0 else down) * left + push - payment if left else push - payment
            found.append(left)
        path[cut] = found
    return left


def _left_backwards(steps: Steps, due: Floats) -> list[float]:
    """Return what is left after each of these steps if nothing is left after the last."""
    left, found = 0.0, [0.0]
    rows = (steps.sensitivity[:0:-1], due[:0:-1], steps.lipschitz[:0:-1])
    for push, payment, up in zip(*(row.tolist() for row in rows), strict=True):
        left = max((left + payment - push) / up, 0.0) if up else 0.0
        found.append(left)
    return found[::-1]


def _kept_until_the_turn(steps: Steps, given: Kept, path: Floats) -> Floats:
    """Return the path with less prepaid, so that b_t ≥ c·b_{t−1} − s, and b = 0 where the next step keeps nothing."""
    path[-1] = 0.0
    path[:-1][(given.least[1:] <= 0) & (path[:-1] < 0)] = 0.0
    prepaid = np.maximum(-path, 0.0)
    most = (prepaid[1:] + steps.sensitivity[1:]) / given.center[1:]
    if (prepaid[:-1] <= most * (1 - _LOST)).all():
        return path
    rows = list(zip(prepaid.tolist(), steps.sensitivity.tolist(), given.center.tolist(), strict=True))
    found, after = [0.0], 0.0
    for (before, _, _), (_, push, center) in zip(rows[-2::-1], rows[:0:-1], strict=True):
        after = min(before, (after + push) / center * (1 - _LOST))
        found.append(after)
    return np.where(path < 0, -np.array(found[::-1]), path)


# How steep the steps are of the linear chain that shows a record best, if each slope may be chosen within bounds.
#
# A chain x ← λ_t·x + noise_t·N(0, 1) whose neighbour is pushed by `pushes` keeps r_t, up to a constant, of what step t
# adds,
# if λ_t = r_{t−1}/r_t. The best r maximises Σ 2·push_t·r_t − noise_t²·r_t²; its value is μ², and noise²·r are the
# payments of
# the best schedule that may pay before a push as well as after it.
#
# Dynamic programming, forwards: of the best value f_t of the steps so far, as a function of r_t, the derivative is kept.
# It is
# continuous, piecewise linear and falls from f_t'(0) ≥ 0. A step stretches what lies left of its root by the highest
# slope,
# what lies right of it by the lowest, puts 0 in between, and adds 2·push − 2·noise²·r. Nothing is ever subtracted.


Piece = tuple[float, float, float]  # from where on, slope, constant: slope·r + constant

# In units of the largest push over the square of the largest noise. Slopes below it cost a part 1e-200 of what counts, so
# there they need not shrink any further, and factors stay within the range of floats.
_NOTHING = 1e-100
_MOST = 1e120
_LEAST = 1e-250
_CROWDED = 1000


def best_slopes(pushes: Floats, noise: Floats, lowest: Floats, highest: Floats) -> Floats:
    """The r ≥ 0 with lowest_t·r_t ≤ r_{t−1} ≤ highest_t·r_t for every step but the first that maximises Σ 2·s·r − ν²·r².

    One number for each step; noise > 0 and 0 ≤ lowest ≤ highest, the first of which are not used. Takes about 3 µs a step,
    and longer if `lowest` nears `highest` without meeting it: 8 µs at 0.99 beside 1, 40 at 0.9999. Slopes that `highest`
    lets shrink to a part 1e-100 of the largest shrink no further.
    """
    length, push = float(np.max(noise)), float(np.max(pushes))
    if push == 0:
        return np.zeros(len(pushes))
    gains, costs = (pushes / push * 2).tolist(), (np.square(noise / length) * -2).tolist()
    beyond = 4 * math.sqrt(float(np.sum(np.square(pushes / push / (noise / length))))) / float(np.min(noise) / length)
    roots, frozen = _roots(gains, costs, lowest.tolist(), highest.tolist(), beyond)
    most = np.where(frozen, np.maximum(lowest[1:], np.minimum(highest[1:], 1.0)), highest[1:])
    return _backwards(roots, lowest[1:].tolist(), most.tolist()) * (push / length**2)


def _roots(
    gains: list[float], costs: list[float], lowest: list[float], highest: list[float], beyond: float
) -> tuple[list[float], list[bool]]:
    """The best r_t for the steps up to t alone, for every t; and at which steps, but the first, slopes are negligible."""
    left, right = _Pieces(), _Pieces()
    root, cut = _split(left, right, (0.0, costs[0], gains[0]))
    roots, frozen, crowd = [root], [], _CROWDED
    for gain, cost, low, high in zip(gains[1:], costs[1:], lowest[1:], highest[1:], strict=True):
        negligible = root < _NOTHING
        if negligible:
            high = max(low, min(high, 1.0))
        left.undergo(high, cost, gain)
        right.undergo(low, cost, gain)
        if low < high or not left.entries:
            between = (root / high if high > 0 else 0.0, cost, gain)
        else:  # nothing comes between the two halves of a piece that was cut: it is whole again
            between = left.pop()
            if cut:
                right.drop()
        root, cut = _split(left, right, between)
        roots.append(root)
        frozen.append(negligible)
        if len(right.entries) > crowd:
            crowd = 2 * right.forget(beyond) + _CROWDED
    return roots, frozen


def _backwards(roots: list[float], lowest: list[float], highest: list[float]) -> Floats:
    """Given r_t, the best r_{t−1} is as near to the root of step t − 1 as the bounds let it."""
    found = [roots[-1]]
    r = roots[-1]
    for root, low, high in zip(roots[-2::-1], lowest[::-1], highest[::-1], strict=True):
        least, most = low * r, high * r
        r = least if root < least else most if root > most else root
        found.append(r)
    return np.array(found[::-1])


def _split(left: _Pieces, right: _Pieces, between: Piece) -> tuple[float, bool]:
    """Moves pieces, in one direction only, until left ones end and right ones begin at the root; and whether it cuts one."""
    start, slope, constant = between
    if slope * start + constant > 0:
        left.push(between)
        end = math.inf
        while right.entries:
            following = right.top()
            if following[1] * following[0] + following[2] <= 0:
                end = following[0]
                break
            right.drop()
            left.push(following)
            start, slope, constant = following
    else:
        while True:
            right.push((start, slope, constant))
            end = start
            if not left.entries:
                return end, False
            start, slope, constant = left.top()
            if slope * start + constant > 0:
                break
            left.drop()
    root = constant / -slope
    if root <= start:
        left.drop()
        root = start
    if root >= end:
        return end, False
    right.push((root, slope, constant))
    return root, root > start


class _Pieces:
    """Pieces on one side of the root, the nearest on top.

    What all have yet to undergo (start/factor, slope·factor² + slope, constant·factor + constant) is kept once, and what
    only those below a piece have, beside it: so it is composed and applied, but never undone.
    """

    __slots__ = ("constant", "entries", "factor", "slope")

    def __init__(self) -> None:
        self.entries: list[tuple[Piece, float, float, float]] = []
        self.factor, self.slope, self.constant = 1.0, 0.0, 0.0

    def undergo(self, factor: float, slope: float, constant: float) -> None:
        """Apply a step to all pieces; a factor 0 takes them out of sight."""
        if factor == 0:
            self.entries.clear()
            self.factor, self.slope, self.constant = 1.0, 0.0, 0.0
            return
        total = self.factor * factor
        self.factor = _LEAST if total < _LEAST else _MOST if total > _MOST else total
        self.slope = self.slope * factor * factor + slope
        self.constant = self.constant * factor + constant

    def push(self, piece: Piece) -> None:
        self.entries.append((piece, self.factor, self.slope, self.constant))
        self.factor, self.slope, self.constant = 1.0, 0.0, 0.0

    def top(self) -> Piece:
        piece = self.entries[-1][0]
        if not self.slope:  # every step has a cost, so without one nothing is pending
            return piece
        start, slope, constant = piece
        factor = self.factor
        return start / factor, slope * factor * factor + self.slope, constant * factor + self.constant

    def drop(self) -> None:
        _, below, below_slope, below_constant = self.entries.pop()
        if not self.slope:
            self.factor, self.slope, self.constant = below, below_slope, below_constant
        elif below_slope:
            factor = self.factor
            total = below * factor
            self.factor = _LEAST if total < _LEAST else _MOST if total > _MOST else total
            self.slope += below_slope * factor * factor
            self.constant += below_constant * factor

    def pop(self) -> Piece:
        piece = self.top()
        self.drop()
        return piece

    def forget(self, beyond: float) -> int:
        """Drops the pieces from there on; how many are left."""
        factor = self.factor
        for index in range(len(self.entries) - 1, -1, -1):
            (start, _, _), below, _, _ = self.entries[index]
            if start / factor > beyond:
                del self.entries[:index]
                break
            factor = min(max(below * factor, _LEAST), _MOST)
        return len(self.entries)
