"""The best of several guarantees for one release: of all, of one for each δ, of two, or of a ladder that is searched."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency, common_adjacency
from lastiterate.curves.compose import checked_notions
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion, Wrapped
from lastiterate.curves.profile import Profile
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.bracketed import Bracketed, exactly, place_of_least
from lastiterate.numerics.rounding import up

# The least, or the largest, of several guarantees at every ε.


@dataclass(frozen=True, eq=False, repr=False)
class _Pointwise(Notion):
    """The extreme of what the members answer to the same question."""

    members: tuple[Notion, ...]
    adjacency: Adjacency
    extreme: ClassVar[Callable[..., Any]]

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, members=tuple(one.relabelled(adjacency) for one in self.members), adjacency=adjacency)

    def _asked(self) -> Iterator[Notion]:
        yield from self.members

    def log_delta(self, epsilons: Floats) -> Floats:
        return np.asarray(self.extreme([one.log_delta(epsilons) for one in self._asked()], axis=0))

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return np.asarray(self.extreme([one.epsilon_at_log(log_deltas) for one in self._asked()], axis=0))


class Worst(_Pointwise):
    """The guarantee of one of several releases, it is not said which: what holds for each of them."""

    extreme = staticmethod(np.max)

    def _rdp(self, orders: Floats) -> Floats:
        return np.asarray(np.max([member._rdp(orders) for member in self.members], axis=0))


class Least(_Pointwise):
    """Several guarantees that hold for one release. Unlike `Best` it looks for no convex function below them."""

    extreme = staticmethod(np.min)


_TABLED = 257  # points of a table that nobody gave
# Of them, one in so many is looked at where another member is better: chords between fewer lie higher, and still hold.
_EVERY = 8
_BEYOND = 2.0  # times the ε where the first is below every δ: chords that end farther off gain nothing


class Best(Least):
    """The pointwise minimum of valid profiles, and the greatest minorant of it that is convex in e^ε."""

    def _said(self) -> str:
        return f"of {len(self.members)} guarantees"

    def relabelled(self, adjacency: Adjacency) -> Notion:
        """Relabel the minimum; each member answers under its own adjacency."""
        return Notion.relabelled(self, adjacency)

    def _asked(self) -> Iterator[Notion]:
        yield from self.members
        yield self._minorant

    def _after(self, mu: float) -> Best:
        return Best(tuple(member.after(mu) for member in self.members), self.adjacency)

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        return np.asarray(np.max([one._tradeoff(type_i_errors) for one in (*self.members, self._minorant)], axis=0))

    @cached_property
    def _grid(self) -> Floats:
        """Every ε of the member that falls first, every few of the others', and all that somebody gave."""
        tables = sorted((member._table[0] for member in self.members), key=lambda table: float(table.max()))
        few = np.concatenate([table if len(table) > _TABLED else table[::_EVERY] for table in tables])
        return np.unique(np.append(tables[0], few[few <= _BEYOND * tables[0].max()]))

    @cached_property
    def _minorant(self) -> Profile:
        """The profile through a table of all members: any finite set of points gives a valid one."""
        epsilons = self._grid
        deltas = up(np.exp(np.min([member.log_delta(epsilons) for member in self.members], axis=0)), operations=50)
        return Profile(epsilons=epsilons, deltas=np.minimum(deltas, 1.0), adjacency=self.adjacency)


def best(guarantees: Iterable[Notion]) -> Notion:
    """One guarantee from several for the same release: the smallest δ of them at every ε."""
    members = tuple(checked_notions("best", guarantees))
    adjacency = common_adjacency(member.adjacency for member in members)
    return members[0] if len(members) == 1 else Best(members, adjacency)


def worst(notions: Sequence[Notion]) -> Notion:
    """Return the guarantee of a release that has one of these; of Gaussian ones, the largest mu is enough."""
    adjacency = common_adjacency(one.adjacency for one in notions)
    gaussians = [one.mu for one in notions if isinstance(one, GaussianDP)]
    others = [one for one in notions if not isinstance(one, GaussianDP)]
    members = [*([GaussianDP(max(gaussians), adjacency)] if gaussians else []), *dict.fromkeys(others)]
    return members[0] if len(members) == 1 else Worst(tuple(members), adjacency)


# Many guarantees for one release, of which those that matter for a question are made.


@dataclass(frozen=True, eq=False, repr=False)
class Lazy(Notion):
    """A guarantee for each index, all for one release, and each made when it is first needed."""

    _known: dict[int, Notion] = field(default_factory=dict, init=False, repr=False)

    @abstractmethod
    def _make(self, index: int) -> Notion:
        """Make the guarantee with this index."""

    def member(self, index: int) -> Notion:
        """Return the guarantee with this index, made once."""
        if index not in self._known:
            self._known[index] = self._make(index)
        return self._known[index]


# The exception of a member, or the depth of its table, is a power of ten below the δ that is asked about, so far below
# that what is left out costs little, and no farther: a guarantee gets only slowly worse with it.
_BELOW = 2.5
_EVERY_POWER = 2  # so few powers are tried: halfway between two, either is within a part in a thousand of the best
_LEAST, _MOST = 4, 300
_DEEPEST = -60.0  # no smaller log δ is worth a member of its own


class ForEachDepth(Lazy):
    """For each power of ten a guarantee that is made for δ a little above it: the one that fits the δ is asked."""

    @staticmethod
    def power(log_delta: float) -> int:
        """Return n such that 10^−n is some powers of ten below this δ."""
        wanted = -max(log_delta, -700.0) / math.log(10.0) + _BELOW
        return min(max(_EVERY_POWER * math.ceil(wanted / _EVERY_POWER), _LEAST), _MOST)

    @staticmethod
    def exception(power: int) -> float:
        """Return 10 to minus this power."""
        return 10.0**-power

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        powers = np.array([self.power(one) for one in log_deltas.tolist()])
        found = np.empty_like(log_deltas)
        for power in np.unique(powers).tolist():
            found[powers == power] = self.member(power).epsilon_at_log(log_deltas[powers == power])
        return found

    def log_delta(self, epsilons: Floats) -> Floats:
        """Ask the usual member, which tells what others are worth a look; smaller δ ask for smaller exceptions."""
        usual = self.power(math.log(1e-5))
        first = self.member(usual).log_delta(epsilons)
        worth = {self.power(float(one)) for one in np.quantile(np.maximum(first, _DEEPEST), [0.0, 0.5, 1.0])}
        others = sorted(worth - {usual})
        found = np.min([first, *(self.member(power).log_delta(epsilons) for power in others)], axis=0)
        while (deeper := self.power(max(float(found.min()), _DEEPEST))) > max(worth) and self._felt(max(worth), found):
            worth.add(deeper)
            found = np.minimum(found, self.member(deeper).log_delta(epsilons))
        return np.asarray(found)

    def _felt(self, power: int, found: Floats) -> bool:
        """Whether the least δ is hardly more than the exception."""
        return float(found.min()) < math.log(2 * self.exception(power))


# One of two guarantees for the same release, of which the second takes long: it is made when it is needed.


_TYPICAL_LOG_DELTA = math.log(1e-6)  # where the two are compared, by estimates: either is valid


@dataclass(frozen=True, eq=False, repr=False)
class Either(Wrapped):
    """`inner`, or what `slow` makes for the same release: `rough` is about as good as that, or better, and steers alone."""

    rough: Notion
    slow: Callable[[], Notion]

    @cached_property
    def chosen(self) -> Notion:
        """The better one, as far as estimates tell."""
        at = _TYPICAL_LOG_DELTA
        if self.inner.epsilon_estimate(at) <= self.rough.epsilon_estimate(at):
            return self.inner
        return min(self.inner, self.slow(), key=lambda one: one.epsilon_estimate(at))

    def epsilon_estimate(self, log_delta: float) -> float:
        return min(one.epsilon_estimate(log_delta) for one in self._estimated)

    def log_delta_estimate(self, epsilon: float) -> float:
        return min(one.log_delta_estimate(epsilon) for one in self._estimated)

    def epsilon_bracketed(self, log_delta: float) -> Bracketed:
        """Return the bracketed ε(δ) of the better one."""
        return self.chosen.epsilon_bracketed(log_delta)

    @property
    def _estimated(self) -> tuple[Notion, ...]:
        """The one that was chosen; before that, `inner` and `rough`."""
        return (self.chosen,) if "chosen" in self.__dict__ else (self.inner, self.rough)

    def _after(self, mu: float) -> Either:
        return Either(self.inner.after(mu), self.rough.after(mu), lambda: self.slow().after(mu))

    def log_delta(self, epsilons: Floats) -> Floats:
        return self.chosen.log_delta(epsilons)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return self.chosen.epsilon_at_log(log_deltas)


# A ladder of guarantees for one release, of which the best is sought when something is asked.


_FEW = 3  # so many values are worth a search each; of more, three are searched for
# Times the best: an estimate above it stands for the answer; less could pass over the best rung, more is slower.
_HOPELESS = 2.0
_HOPELESS_LOG = 0.3  # times the best log δ
_LARGE = 12.0  # an ε above which estimates are near enough to tell
_RATIO = 1.3  # between rungs: around the best ε is flat, so that closer rungs gain little; a choice of effort

_NEAR = 0.3  # of an estimate: two that differ by less may be in the other order
_BUMP = 3e-4  # of the answer: a rung may be worse by what its rounding costs, and the next one better
_FOLLOWED = 2  # if so many rungs one way are better and better, the other way is not looked at
_SPOTS = [0.1, 0.5, 0.9]


@dataclass(frozen=True, eq=False, repr=False)
class Ladder(Lazy):
    """One guarantee per rung; every rung is valid, so where the search ends is a matter of tightness only.

    Along the rungs guarantees get better and then worse: the search narrows an interval of them, and asks few; where they
    have estimates, these say which.
    """

    rungs: tuple[int, ...]
    climb: Callable[[int], Notion]
    adjacency: Adjacency = REPLACE_ONE
    _best: dict[tuple[float, Question], int] = field(default_factory=dict, init=False, repr=False)

    def _make(self, index: int) -> Notion:
        return self.climb(self.rungs[index])

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return self._least(log_deltas, _EPSILON)

    def epsilon_estimate(self, log_delta: float) -> float:
        """Return the least estimate of the rungs; 0 if one has none."""
        return min(self.member(index).epsilon_estimate(log_delta) for index in range(len(self.rungs)))

    def log_delta(self, epsilons: Floats) -> Floats:
        return self._least(epsilons, _LOG_DELTA)

    def log_delta_estimate(self, epsilon: float) -> float:
        """Return the least estimate of the rungs; nan if one has none."""
        return float(np.min([self.member(index).log_delta_estimate(epsilon) for index in range(len(self.rungs))]))

    def best_rung(self, log_delta: float) -> int:
        """The rung that gives the least ε, as far as the search goes."""
        return self.rungs[self._search(log_delta, _EPSILON)]

    def _after(self, mu: float) -> Ladder:
        return replace(self, climb=lambda rung: self.climb(rung).after(mu))

    def _least(self, values: Floats, question: Question) -> Floats:
        """Return the least answer of the rungs that are best for each of a few values, or for some of many."""
        if not values.size:
            return values.copy()
        spots = values if values.size <= _FEW else _rounded(np.quantile(values, _SPOTS))
        chosen = {self._search(spot, question) for spot in spots.tolist()}
        return np.asarray(np.min([question.ask(self.member(index), values) for index in sorted(chosen)], axis=0))

    def _search(self, value: float, question: Question) -> int:
        """Return the index of the best rung for this value; estimates, if there are any, say where to ask first."""
        known = (float(f"{value:.4g}"), question)  # nearly the same question has the same answer
        if known not in self._best:
            starts = self._promising(value, question)
            found = {} if starts else self._asked(value, question)
            for start in starts:
                found |= self._climbed(start, value, question)
            self._best[known] = place_of_least(found)
        return self._best[known]

    def _promising(self, value: float, question: Question) -> list[int]:
        """Return the best by its estimate, and the last rung, or the best but for it, if that may be as good; or none."""
        last = len(self.rungs) - 1
        if question.unknown(question.estimate(self.member(last), value)):
            return []
        estimated = self._narrowed(lambda index, _: question.estimate(self.member(index), value))
        if any(map(question.unknown, estimated.values())):
            return []
        best = min(estimated, key=lambda index: (estimated[index], index))
        others = [index for index in estimated if index != last]
        other = last if best != last else min(others, key=estimated.__getitem__, default=last)
        near = abs(estimated[other] - estimated[best]) < _NEAR * abs(estimated[best])
        return [best, other] if near and other != best else [best]

    def _climbed(self, start: int, value: float, question: Question) -> dict[int, Bracketed]:
        """Ask from rung to rung, both ways, as long as the next one is better, or next to no worse."""
        found = {start: question.bracketed(self.member(start), value)}
        for towards in (-1, 1):
            index = start + towards
            while 0 <= index < len(self.rungs):
                before, guess = found[index - towards], question.estimate(self.member(index), value)
                if question.hopeless(guess, before.low) and question.hopeless(guess, before.value):
                    break
                found[index] = question.bracketed(self.member(index), value)
                if not found[index] < before.through(lambda one: one + _BUMP * abs(one)):
                    break
                index += towards
            if len(found) > _FOLLOWED:
                break
        return found

    def _asked(self, value: float, question: Question) -> dict[int, Bracketed]:
        """Ask the rungs that a narrowing search looks at, but for hopeless ones, for which their estimates stand."""

        def at(index: int, found: dict[int, float]) -> float:
            guess = question.estimate(self.member(index), value) if found else 0.0
            hopeless = question.hopeless(guess, min(found.values(), default=math.inf))
            return guess if hopeless else question.of_one(self.member(index), value)

        return {index: exactly(one) for index, one in self._narrowed(at).items()}

    def _narrowed(self, at: Callable[[int, dict[int, float]], float]) -> dict[int, float]:
        """Return what `at` says of each rung that a golden-section search looks at; it is shown what was found before."""
        found: dict[int, float] = {}

        def known(index: int) -> float:
            if index not in found:
                found[index] = at(index, found)
            return found[index]

        low, high = 0, len(self.rungs) - 1
        known(high), known(low)  # often bounds of another kind: no window, one block; every step by itself
        while high - low > 2:
            left, right = low + round(0.382 * (high - low)), low + round(0.618 * (high - low))
            if left == right:
                right += 1
            low, high = (low, right) if known(left) <= known(right) else (left, high)
        for index in range(low, high + 1):
            known(index)
        return found


@dataclass(frozen=True)
class Question:
    """A question to a guarantee, for ε or for log δ, and how its answer is estimated; `none` stands for no estimate."""

    ask: Callable[[Notion, Floats], Floats]
    estimate: Callable[[Notion, float], float]
    none: float
    bracketed: Callable[[Notion, float], Bracketed]

    def unknown(self, guess: float) -> bool:
        """Whether this is no estimate."""
        return guess == self.none or math.isnan(guess)

    @staticmethod
    def hopeless(guess: float, best: float) -> bool:
        """Whether an estimate of ε, or of log δ, which is negative, is too far from the best for a sharp bound to pay."""
        return guess > (_HOPELESS_LOG * best if best < 0 else max(_LARGE, _HOPELESS * best))

    def of_one(self, notion: Notion, value: float) -> float:
        """Return the answer of this guarantee for one value."""
        return float(self.ask(notion, np.array([value]))[0])


_EPSILON = Question(
    lambda notion, values: notion.epsilon_at_log(values),
    lambda notion, one: notion.epsilon_estimate(one),
    0.0,
    lambda notion, one: notion.epsilon_bracketed(one),
)
_LOG_DELTA = Question(
    lambda notion, values: notion.log_delta(values),
    lambda notion, one: notion.log_delta_estimate(one),
    math.nan,
    lambda notion, one: exactly(float(notion.log_delta(np.array([one]))[0])),
)


def _rounded(spots: Floats) -> Floats:
    """Round to half a power of two, so that many questions of much the same range have one search."""
    with np.errstate(divide="ignore"):
        return np.sign(spots) * 2.0 ** (np.round(2 * np.log2(np.abs(spots))) / 2)


def rungs(most: int, ratio: float = _RATIO, least: int = 1) -> tuple[int, ...]:
    """Return whole numbers from `least` to `most`, each about `ratio` times the one before."""
    found = [min(least, most)]
    while found[-1] < most:
        found.append(min(max(found[-1] + 1, round(found[-1] * ratio)), most))
    return tuple(found)
