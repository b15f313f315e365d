"""Searches of `li.calibrate`: the least noise of all steps by one factor, and what one of many trials may spend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TypeVar

from lastiterate.accounting.account import account_by
from lastiterate.accounting.report import Report
from lastiterate.certificate.claims import released
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.selected import largest_mu_per_trial
from lastiterate.curves.trials import Trials
from lastiterate.errors import InvalidInput, LastIterateError, Unavailable
from lastiterate.numerics.normal_gap import shift_below
from lastiterate.numerics.roots import decreasing_crossing
from lastiterate.runs.noise import EXACT
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.evidence import About
from lastiterate.theorems.theorem import Guarantee, Theorem, best_rung

_WIDEST = 60.0  # of the logarithm of the noise, either way
_MOST_ROUNDS = 5
_FAR = 1.0  # of the logarithm of the noise: there another theorem may be the best
_MOST_SECANTS = 6
_NEAR = 0.25  # of the logarithm of ε: there the best theorem and its best rung are all but found
_CLOSE = 1e-6  # of the logarithm of ε: from here on the root is bracketed
_LEAST_SQUARE = 1e-40  # of a μ: what is left for training is not 0 where rounding says so
_MEASURED = 10.0  # of the logarithm of ε: farther from the target, what was released before makes no difference
_STEEPNESS = 2.0  # log ε falls about this much faster than the logarithm of the noise
_CLOSE_TRIALS = 0.01  # below the target that the whole search may stay: closer takes more calibrations
_MOST = 10  # calibrations of a trial: mostly two or three do; sizes that jump never come close
_SMALLEST = 1e-6  # ε that a run is calibrated for

Made = TypeVar("Made")


@dataclass(frozen=True)
class _Target:
    """An ε at this log δ, of which what was released before training takes its part; `mu` is what is left for training."""

    epsilon: float
    log_delta: float
    prior_mu: float

    @property
    def mu(self) -> float:
        return self.left_of(float(shift_below(self.log_delta, self.epsilon)))

    def left_of(self, mu: float) -> float:
        """Return what the μ of everything leaves to training, for Gaussian guarantees proportional to 1/noise."""
        return math.sqrt(max((mu - self.prior_mu) * (mu + self.prior_mu), _LEAST_SQUARE))

    def excess(self, epsilon: float) -> float:
        """Return how far ε is above the target in logarithms, as if training were alone, so that it falls evenly."""
        above = math.log(max(epsilon, 1e-300) / self.epsilon)
        if not self.prior_mu or not -_MEASURED < above < _MEASURED:
            return above
        of_training = _STEEPNESS * math.log(self.left_of(float(shift_below(self.log_delta, epsilon))) / self.mu)
        return max(of_training, above) if above > 0 else min(of_training, above)


def least_noise(
    run: Run, target: float, delta: float, releases: tuple[int, ...], theorems: tuple[Theorem, ...] = CATALOGUE
) -> Run:
    """Return the run with the noise of all steps scaled by the least factor that meets the target."""
    aim = _Target(target, math.log(delta), run.user_records * run.prior_mu)

    def accounted(log_factor: float) -> Report:
        return account_by(theorems, run.with_noise(math.exp(log_factor)), delta, releases)

    def excess(theorem: Theorem, rung: int | None, log_factor: float) -> float:
        process = released(run.with_noise(math.exp(log_factor)).process, releases)
        return aim.excess(epsilon_by(theorem, process, delta, rung))

    def looked_up(log_factor: float, otherwise: Report) -> tuple[float, Report]:
        """Return a better guess if the best guarantee there is Gaussian, and the report there."""
        try:
            found = accounted(log_factor)
        except LastIterateError:
            return log_factor, otherwise
        return log_factor + (math.log(aim.left_of(found.mu) / aim.mu) if found.mu else 0.0), found

    report = account_by(theorems, run, delta, releases)
    # For Gaussian guarantees the first guess is the answer.
    guess = math.log(aim.left_of(report.mu) / aim.mu) if report.mu else _guess(aim, report.epsilon)
    if not report.mu and abs(guess) > _FAR:
        guess, report = looked_up(guess, report)
    # The theorem and the rung that are best for some noise are nearly so for other noise: the search over all of them is
    # left to the end. From far off, which rung is best nearby is looked up on the way.
    rung = best_rung(report.best, delta)
    if rung is not None and abs(math.log(max(report.epsilon, 1e-300) / target)) > _NEAR:
        guess, report = looked_up(_by_secants(partial(excess, report.best.theorem, rung), guess, _NEAR), report)

    for _ in range(_MOST_ROUNDS):
        best, gaussian = (report.best.theorem, best_rung(report.best, delta)), bool(report.mu)
        closeness = 1e-7 if gaussian else 4e-7  # bounds that are searched on grids do not move evenly
        if not gaussian:
            guess = _on_rung(partial(excess, *best), guess, closeness)
            report = accounted(guess)
        if gaussian or report.epsilon > target:
            first_step = 1e-7 if gaussian else 1e-3
            guess = _searched(partial(excess, best[0], None), guess + 1e-9, first_step, closeness)
            report = accounted(guess)
        if (report.best.theorem, best_rung(report.best, delta)) == best:
            break
    if report.epsilon > target:
        raise Unavailable("no_noise_meets", epsilon=target, widest=_WIDEST)
    return report.run


def _searched(excess: Callable[[float], float], start: float, step: float, closeness: float) -> float:
    return decreasing_crossing(excess, -_WIDEST, _WIDEST, start, step, closeness)


def _guess(aim: _Target, epsilon: float) -> float:
    """Guess by how much to change the logarithm of the noise."""
    return min(max(aim.excess(min(max(epsilon, 1e-12), 1e30)) / _STEEPNESS, -_WIDEST), _WIDEST)


def _on_rung(excess: Callable[[float], float], guess: float, closeness: float) -> float:
    known = lru_cache(maxsize=16)(excess)  # the search begins where secants end
    start = _by_secants(known, guess, _CLOSE)
    if -closeness <= known(start) <= 0:
        return start
    return _searched(known, start, _CLOSE, closeness)


def _by_secants(excess: Callable[[float], float], guess: float, close: float) -> float:
    """Return a point near where the excess vanishes, if a few secants lead there; else the guess itself."""
    value, slope, moved = excess(guess), -_STEEPNESS, guess
    for _ in range(_MOST_SECANTS):
        if not math.isfinite(value) or abs(value) < close or not -20 < slope < -0.05:
            break
        step = min(max(-value / slope, -1.0), 1.0)
        following = excess(moved + step)
        slope, value, moved = (following - value) / step, following, moved + step
    # A quarter of the closeness beyond the root: there the search ends.
    return moved - (value + 1e-7) / slope if abs(value) < 1 and -20 < slope < -0.05 else guess


def epsilon_by(theorem: Theorem, process: Process, delta: float, rung: int | None = None) -> float:
    """Return the ε that one theorem proves, by one of its rungs if given; infinity if it does not apply."""
    if rung is not None and not theorem.failures(process):
        try:
            return float(theorem.rebuilt(process, rung).epsilon(delta))
        except InvalidInput:  # with other noise there may be no such rung
            return math.inf
    answer = theorem.apply(process)
    return answer.epsilon(delta) if isinstance(answer, Guarantee) else math.inf


def as_executed(run: Run) -> Run:
    """Return the run with room for the rounding of a training, unless it states its arithmetic."""
    return replace(run, arithmetic=run.expected_arithmetic) if run.arithmetic == EXACT else run


class Meets:
    """A predicate of runs: whether some theorem proves that a run meets the target.

    Theorems about every iterate are quick and come first, but for the one that met the target last.
    """

    def __init__(
        self, epsilon: float, delta: float, releases: Iterable[int], theorems: tuple[Theorem, ...] = CATALOGUE
    ) -> None:
        self.epsilon, self.delta, self.releases, self.theorems = epsilon, delta, tuple(releases), theorems
        self._order = sorted(theorems, key=lambda theorem: theorem.about is not About.EVERY_ITERATE)

    def __call__(self, run: Run) -> bool:
        run = as_executed(run)
        process = released(run.process, [place for place in self.releases if place < run.steps])
        met = next((one for one in self._order if epsilon_by(one, process, self.delta) <= self.epsilon), None)
        if met is not None:
            self._order.sort(key=lambda theorem: theorem is not met)
        return met is not None


def largest_spending(
    made: Callable[[float], tuple[Made, float]], *, epsilon: float, delta: float, trials: Trials
) -> Made:
    """Return what `made` makes for the largest tried ε of one trial with which the whole search meets the target.

    `made(ε of one trial)` is what will be run, and ε of the whole search: that is computed, not assumed. Gaussian trials say
    where to begin.
    """
    mu = largest_mu_per_trial(epsilon=epsilon, delta=delta, trials=trials)
    low, high, found, tried = 0.0, math.inf, None, []
    spent = max(float(GaussianDP(mu).epsilon(delta)), _SMALLEST)
    for _ in range(_MOST):
        what, total = made(spent)
        if total <= epsilon:
            same, low, found = what == found, spent, what
            if same or total >= (1 - _CLOSE_TRIALS) * epsilon:
                break
        else:
            high = spent
        tried.append((spent, total))
        spent = _next(tried[-2:], (1 - _CLOSE_TRIALS / 2) * epsilon, low, high)
        if not (low < spent < high and spent >= _SMALLEST):
            break
    if found is None:
        raise Unavailable("no_trial_meets", field="epsilon", mean=trials.mean, epsilon=epsilon, delta=delta)
    return found


def _next(tried: list[tuple[float, float]], aim: float, low: float, high: float) -> float:
    """Guess the next ε of one trial by the secant of the last two in logarithms, between enough and too much."""
    (spent, total), before = tried[-1], tried[0]
    if not 0 < total < math.inf:
        guess = spent / 10 if total else 2 * spent
    else:
        slope = 1.0
        if before[0] != spent and 0 < before[1] < math.inf:
            slope = min(max(math.log(total / before[1]) / math.log(spent / before[0]), 0.2), 5.0)
        guess = spent * min(max(aim / total, 1e-3), 2.0) ** (1 / slope)
    if low < guess < high:
        return guess
    return math.sqrt(low * high) if low > 0 and math.isfinite(high) else guess
