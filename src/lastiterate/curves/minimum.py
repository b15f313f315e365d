"""The best of several guarantees for one release: of two, of some, or of a ladder that is searched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency, common_adjacency
from lastiterate.curves.compose import checked_notions
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.bracketed import Bracketed, exactly, place_of_least
from lastiterate.numerics.rounding import up

# The best of several guarantees for the same release.


_TABLED = 257  # points of a table that nobody gave
# Of them, one in so many is looked at where another member is better: chords between fewer lie higher, and still hold.
_EVERY = 8
_BEYOND = 2.0  # times the ε where the first is below every δ: chords that end farther off gain nothing


@dataclass(frozen=True, eq=False, repr=False)
class Best(Notion):
    """The pointwise minimum of valid profiles, and the greatest minorant of it that is convex in e^ε."""

    members: tuple[Notion, ...]
    adjacency: Adjacency

    def _said(self) -> str:
        return f"of {len(self.members)} guarantees"

    def _log_delta(self, epsilons: Floats) -> Floats:
        least = np.min([member._log_delta(epsilons) for member in self.members], axis=0)
        return np.minimum(least, self._minorant._log_delta(epsilons))

    def _epsilon(self, log_deltas: Floats) -> Floats:
        least = np.min([member._epsilon(log_deltas) for member in self.members], axis=0)
        return np.minimum(least, self._minorant._epsilon(log_deltas))

    def _after(self, mu: float) -> Best:
        return Best(tuple(member.after(mu) for member in self.members), self.adjacency)

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        members = [member._tradeoff(type_i_errors) for member in (*self.members, self._minorant)]
        return np.max(members, axis=0)

    @cached_property
    def _grid(self) -> Floats:
        """Every point of the member that falls first, every few of the others, and all that somebody gave."""
        tables = sorted((member._table[0] for member in self.members), key=lambda table: float(table.max()))
        few = np.concatenate([table if len(table) > _TABLED else table[::_EVERY] for table in tables])
        return np.unique(np.append(tables[0], few[few <= _BEYOND * tables[0].max()]))

    @cached_property
    def _minorant(self) -> Profile:
        """From a table of all members: any finite set of points gives a valid profile."""
        epsilons = self._grid
        deltas = up(np.exp(np.min([member._log_delta(epsilons) for member in self.members], axis=0)), operations=50)
        return Profile(epsilons=epsilons, deltas=np.minimum(deltas, 1.0), adjacency=self.adjacency)


def best(guarantees: Iterable[Notion]) -> Notion:
    """One guarantee from several for the same release: the smallest δ of them at every ε."""
    members = tuple(checked_notions("best", guarantees))
    adjacency = common_adjacency(member.adjacency for member in members)
    return members[0] if len(members) == 1 else Best(members, adjacency)


# One of two guarantees for the same release, of which the second takes long: it is made when it is needed.


_TYPICAL_LOG_DELTA = math.log(1e-6)  # where the two are compared, by estimates: either is valid


@dataclass(frozen=True, eq=False, repr=False)
class Either(Notion):
    """`rough` is about what `slow` would be, or better, and steers searches alone."""

    quick: Notion
    rough: Notion
    slow: Callable[[], Notion]

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.quick.adjacency

    @cached_property
    def chosen(self) -> Notion:
        """The better one, as far as estimates tell."""
        at = _TYPICAL_LOG_DELTA
        if self.quick.epsilon_estimate(at) <= self.rough.epsilon_estimate(at):
            return self.quick
        return min(self.quick, self.slow(), key=lambda one: one.epsilon_estimate(at))

    def epsilon_estimate(self, log_delta: float) -> float:
        return min(one.epsilon_estimate(log_delta) for one in self._estimated)

    def log_delta_estimate(self, epsilon: float) -> float:
        return min(one.log_delta_estimate(epsilon) for one in self._estimated)

    def epsilon_bracketed(self, log_delta: float) -> Bracketed:
        """Return the bracketed ε(δ) of the better one."""
        return self.chosen.epsilon_bracketed(log_delta)

    @property
    def _estimated(self) -> tuple[Notion, ...]:
        """What is known already, or both."""
        return (self.chosen,) if "chosen" in self.__dict__ else (self.quick, self.rough)

    def _after(self, mu: float) -> Either:
        return Either(self.quick.after(mu), self.rough.after(mu), lambda: self.slow().after(mu))

    def _log_delta(self, epsilons: Floats) -> Floats:
        return self.chosen._log_delta(epsilons)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return self.chosen._epsilon(log_deltas)


# Many guarantees for one release, of which the best is sought when something is asked.


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
class Ladder(Notion):
    """One guarantee per rung; every rung is valid, so where the search ends is a matter of tightness only.

    Along the rungs a guarantee gets better and then worse: the search halves intervals, and looks at few rungs; at their
    estimates, where they have some.
    """

    rungs: tuple[int, ...]
    climb: Callable[[int], Notion]
    adjacency: Adjacency = REPLACE_ONE
    _known: dict[int, Notion] = field(default_factory=dict, init=False, repr=False)
    _best: dict[tuple[float, Question], int] = field(default_factory=dict, init=False, repr=False)

    def member(self, index: int) -> Notion:
        """The guarantee of this rung, made once."""
        if index not in self._known:
            self._known[index] = self.climb(self.rungs[index])
        return self._known[index]

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return self._least(log_deltas, _EPSILON)

    def epsilon_estimate(self, log_delta: float) -> float:
        """About the least ε, if every rung has an estimate; else 0."""
        return min(self.member(index).epsilon_estimate(log_delta) for index in range(len(self.rungs)))

    def _log_delta(self, epsilons: Floats) -> Floats:
        return self._least(epsilons, _LOG_DELTA)

    def log_delta_estimate(self, epsilon: float) -> float:
        """About the least log δ, if every rung has an estimate; else nan."""
        return float(np.min([self.member(index).log_delta_estimate(epsilon) for index in range(len(self.rungs))]))

    def best_rung(self, log_delta: float) -> int:
        """The rung that gives the least ε, as far as the search goes."""
        return self.rungs[self._search(log_delta, _EPSILON)]

    def _after(self, mu: float) -> Ladder:
        return replace(self, climb=lambda rung: self.climb(rung).after(mu))

    def _least(self, values: Floats, question: Question) -> Floats:
        """A few values one by one; for many, the rungs that are best for some of them."""
        if not values.size:
            return values.copy()
        spots = values if values.size <= _FEW else _rounded(np.quantile(values, _SPOTS))
        chosen = {self._search(spot, question) for spot in spots.tolist()}
        return np.asarray(np.min([question.ask(self.member(index), values) for index in sorted(chosen)], axis=0))

    def _search(self, value: float, question: Question) -> int:
        """Where every rung that is looked at has an estimate, these say where to ask first."""
        known = (float(f"{value:.4g}"), question)  # nearly the same question has the same answer
        if known not in self._best:
            starts = self._promising(value, question)
            found = {} if starts else self._asked(value, question)
            for start in starts:
                found |= self._climbed(start, value, question)
            self._best[known] = place_of_least(found)
        return self._best[known]

    def _promising(self, value: float, question: Question) -> list[int]:
        """The best by its estimate, and the last if it may be as good, or the best but for it; none without estimates."""
        last = len(self.rungs) - 1
        if question.unknown(question.estimate(self.member(last), value)):
            return []
        estimated = self._narrowed(lambda index: question.estimate(self.member(index), value))
        if any(map(question.unknown, estimated.values())):
            return []
        best = min(estimated, key=lambda index: (estimated[index], index))
        other = (
            last if best != last else min((i for i in estimated if i != last), key=estimated.__getitem__, default=last)
        )
        near = abs(estimated[other] - estimated[best]) < _NEAR * abs(estimated[best])
        return [best, other] if near and other != best else [best]

    def _climbed(self, start: int, value: float, question: Question) -> dict[int, Bracketed]:
        """From rung to rung, as long as the next one is better, or next to no worse."""
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
        found: dict[int, float] = {}

        def at(index: int) -> float:
            guess = question.estimate(self.member(index), value) if found else 0.0
            hopeless = question.hopeless(guess, min(found.values(), default=math.inf))
            found[index] = guess if hopeless else question.of_one(self.member(index), value)
            return found[index]

        return {index: exactly(one) for index, one in self._narrowed(at).items()}

    def _narrowed(self, at: Callable[[int], float]) -> dict[int, float]:
        """What `at` says of the rungs that a search by halving looks at."""
        found: dict[int, float] = {}

        def known(index: int) -> float:
            if index not in found:
                found[index] = at(index)
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
    """What is asked of a guarantee, and how its answer is estimated."""

    ask: Callable[[Notion, Floats], Floats]
    estimate: Callable[[Notion, float], float]
    none: float
    bracketed: Callable[[Notion, float], Bracketed]

    def unknown(self, guess: float) -> bool:
        """Whether this estimate is none."""
        return guess == self.none or math.isnan(guess)

    @staticmethod
    def hopeless(guess: float, best: float) -> bool:
        """What is far from the best so far is not worth the work of a sharp bound: ε, or log δ, which is negative."""
        return guess > (_HOPELESS_LOG * best if best < 0 else max(_LARGE, _HOPELESS * best))

    def of_one(self, notion: Notion, value: float) -> float:
        return float(self.ask(notion, np.array([value]))[0])


_EPSILON = Question(
    lambda notion, values: notion._epsilon(values),
    lambda notion, one: notion.epsilon_estimate(one),
    0.0,
    lambda notion, one: notion.epsilon_bracketed(one),
)
_LOG_DELTA = Question(
    lambda notion, values: notion._log_delta(values),
    lambda notion, one: notion.log_delta_estimate(one),
    math.nan,
    lambda notion, one: exactly(float(notion._log_delta(np.array([one]))[0])),
)


def _rounded(spots: Floats) -> Floats:
    """To half a power of two, so that many questions of much the same range have one search."""
    with np.errstate(divide="ignore"):
        return np.sign(spots) * 2.0 ** (np.round(2 * np.log2(np.abs(spots))) / 2)


def rungs(most: int, ratio: float = _RATIO, least: int = 1) -> tuple[int, ...]:
    """Whole numbers from `least` to `most`, each about `ratio` times the one before."""
    found = [min(least, most)]
    while found[-1] < most:
        found.append(min(max(found[-1] + 1, round(found[-1] * ratio)), most))
    return tuple(found)


# The largest, or the least, of several profiles at each ε.


@dataclass(frozen=True, eq=False, repr=False)
class Worst(Notion):
    """One of several releases, it is not said which: what holds for each of them."""

    members: tuple[Notion, ...]
    adjacency: Adjacency

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, members=tuple(one.relabelled(adjacency) for one in self.members), adjacency=adjacency)

    def _log_delta(self, epsilons: Floats) -> Floats:
        return np.asarray(np.max([member._log_delta(epsilons) for member in self.members], axis=0))

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return np.asarray(np.max([member._epsilon(log_deltas) for member in self.members], axis=0))

    def _rdp(self, orders: Floats) -> Floats:
        return np.asarray(np.max([member._rdp(orders) for member in self.members], axis=0))


@dataclass(frozen=True, eq=False, repr=False)
class Least(Notion):
    """All of these hold for one release. Unlike `best` it looks for no convex function below them, which takes a while."""

    members: tuple[Notion, ...]
    adjacency: Adjacency

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, members=tuple(one.relabelled(adjacency) for one in self.members), adjacency=adjacency)

    def _log_delta(self, epsilons: Floats) -> Floats:
        return np.asarray(np.min([member._log_delta(epsilons) for member in self.members], axis=0))

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return np.asarray(np.min([member._epsilon(log_deltas) for member in self.members], axis=0))


def worst(notions: Sequence[Notion]) -> Notion:
    """Of Gaussians, the one with the largest mu."""
    adjacency = common_adjacency(one.adjacency for one in notions)
    gaussians = [one.mu for one in notions if isinstance(one, GaussianDP)]
    others = [one for one in notions if not isinstance(one, GaussianDP)]
    members = [*([GaussianDP(max(gaussians), adjacency)] if gaussians else []), *dict.fromkeys(others)]
    return members[0] if len(members) == 1 else Worst(tuple(members), adjacency)
