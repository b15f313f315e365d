"""The noise, the steps, the batch size or the step size that meets a target."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from lastiterate.accounting.account import account
from lastiterate.accounting.least_noise import Meets, as_executed, largest_spending, least_noise
from lastiterate.certificate.claims import checked_releases
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.selected import checked_trials
from lastiterate.curves.trials import Trials
from lastiterate.errors import (
    INSIDE_UNIT,
    POSITIVE,
    InvalidInput,
    PublicEnum,
    Unavailable,
    checked_choice,
    checked_count,
    checked_number,
    must_be,
)
from lastiterate.progress import as_one
from lastiterate.runs.named import names_arguments
from lastiterate.runs.per_step import times
from lastiterate.runs.run import Run, checked_run
from lastiterate.theorems.catalogue import checked_theorems
from lastiterate.theorems.theorem import Theorem

_LEAST_TARGET, _MOST_TARGET = 1e-6, 1e9
_MOST_TRIES, _CLOSER = 4, 1e-6  # to meet the target without room for rounding as well
_FINENESS = 1e-6  # of the logarithm of a step size
_FIRST_STRIDE = 1 << 16  # of finenesses: a few percent
_FARTHEST = 1 << 24  # of finenesses: a factor of ten million, either way

At = Callable[[int], bool]


class Free(PublicEnum):
    """What `calibrate` may change."""

    NOISE = "noise"  # all steps by one factor
    STEPS = "steps"  # in whole epochs for batches in passes
    BATCH_SIZE = "batch_size"  # with as many epochs
    STEP_SIZE = "step_size"  # all steps by one factor


NOISE = Free.NOISE


@names_arguments
def calibrate(
    run: Run,
    *,
    epsilon: float,
    delta: float,
    free: Free | str = NOISE,
    most_steps: int = 1_000_000,
    releases: Iterable[int] = (),
    trials: Trials | None = None,
    theorems: Iterable[Theorem] | None = None,
) -> Run:
    """The run, changed in one respect so that `li.account` proves at most `epsilon` at `delta`.

    `free` names what may change: li.NOISE or "noise", and so on.

    - li.NOISE: the noise of all steps is scaled by one factor, to the least that meets the target.
    - "steps": the run is as long as the target allows. If ε stops growing below the target, any number of steps works and
      `most_steps` (default 1,000,000) is returned.
    - "batch_size": the number of epochs stays. The largest batch that meets the target if the noise is on the gradient sum,
      the smallest otherwise.
    - "step_size": the largest step size that meets the target. If the given one is too large, the nearest smaller one, or
      else a larger one.

    `releases`: the steps after which a checkpoint is released as well, as far as the run reaches them. The result includes a
    margin for floating-point rounding, usually below 0.1%, so that a run executed by `li.train` still meets the target;
    there is no margin if the run states its arithmetic.

    With `trials`, such as `li.trials.Geometric(mean=10)`, the run is one trial of a search that releases only the best one,
    and the whole search meets the target: ε of `li.select(li.account(run, delta), trials=trials)`, usually within 1%.
    `theorems`: those to give to `li.account` as well, such as [*li.theorems.CATALOGUE, MINE] with a theorem of your own.
    """
    checked_run(run)
    target = checked_number("epsilon", epsilon, POSITIVE)
    if not _LEAST_TARGET <= target <= _MOST_TARGET:
        raise must_be("epsilon", f"from {_LEAST_TARGET:g} to {_MOST_TARGET:g} for a search", f"{target:g}")
    delta = checked_number("delta", delta, INSIDE_UNIT)
    free, places = checked_choice("free", free, Free), checked_releases(releases)
    if trials is not None:
        if theorems is not None:
            raise InvalidInput("theorems_with_trials", field="theorems")
        return _calibrated_trial(run, target, delta, checked_trials(trials), free, most_steps, places)
    longest = most_steps if free is not Free.STEPS else checked_count("most_steps", most_steps)
    before = GaussianDP(run.user_records * run.prior_mu)  # no noise makes up for what was released before training
    if (spent := before.epsilon(delta)) >= target:
        raise Unavailable("spent_beforehand", field="prior_mu", mu=before.mu, spent=spent, epsilon=target, delta=delta)
    asked, proofs = target, checked_theorems(theorems)
    with as_one("calibrating"):
        for _ in range(_MOST_TRIES):
            found = replace(_found(run, free, Meets(asked, delta, places, proofs), longest), arithmetic=run.arithmetic)
            # The search had room for rounding, and bounds that are searched on grids may be larger without it.
            report = account(found, delta, [place for place in places if place < found.steps], theorems=proofs)
            if report.epsilon <= target:
                return found
            asked *= target / report.epsilon * (1 - _CLOSER)
    raise Unavailable("no_run_meets", epsilon=target, nearest=report.epsilon)


def _calibrated_trial(
    run: Run, epsilon: float, delta: float, trials: Trials, free: Free, most_steps: int, releases: tuple[int, ...]
) -> Run:
    """Return one trial of a search that meets the target, also when it is executed by `li.train`."""

    def total(trial: Run) -> float:
        from lastiterate.selection.select import select

        report = account(trial, delta, [one for one in releases if one < trial.steps])
        return float(select(report, trials=trials).epsilon(delta))

    def made(spent: float) -> tuple[Run, float]:
        trial = calibrate(run, epsilon=spent, delta=delta, free=free, most_steps=most_steps, releases=releases)
        return trial, max(total(one) for one in {trial, as_executed(trial)})

    return largest_spending(made, epsilon=epsilon, delta=delta, trials=trials)


def _found(run: Run, free: Free, meets: Meets, longest: int) -> Run:
    """Search the run that meets the target, with a margin for the rounding of a training."""
    if free is Free.BATCH_SIZE:
        return run_of_nearest_batch_size(run, meets)
    if free is Free.STEP_SIZE:
        return run_of_nearest_step_size(run, meets)
    if free is Free.STEPS:
        return longest_run(run, meets, longest)
    return least_noise(as_executed(run), meets.epsilon, meets.delta, meets.releases, meets.theorems)


def longest_run(run: Run, meets_target: Meets, most_steps: int) -> Run:
    """Return the longest run that meets the target, in whole epochs for batches in passes."""
    unit = run.batches.per_epoch if run.batches.passes else 1
    per_step = [run.step_size, getattr(run.noise, run.noise.size), run.clip]  # one entry per step: no longer than that
    longest = min([most_steps, *(len(value) for value in per_step if isinstance(value, tuple))])

    def meets(count: int) -> bool:
        return meets_target(run.first(count * unit))

    if longest < unit:
        raise Unavailable("most_steps_below_epoch", field="most_steps", per_epoch=unit, got=f"{longest}")
    if not meets(1):
        raise Unavailable("no_steps_meet", steps=unit, epsilon=meets_target.epsilon)
    low, high = 1, 2
    while high * unit <= longest and meets(high):
        low, high = high, 2 * high
    high = min(high, longest // unit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return run.first(low * unit)


def run_of_nearest_batch_size(run: Run, meets: Meets) -> Run:
    """Return the run with the nearest batch size that meets the target and no farther, with as many epochs.

    Next to a noise multiplier large batches cost most; next to noise on the mean, small ones.
    """
    sizes = run.batches.other_sizes
    if len(sizes) < 2:
        raise Unavailable("no_batch_size", field="free", batches=run.batches.called, records=run.batches.records)
    start = min(bisect_left(sizes, round(run.batches.divisor)), len(sizes) - 1)
    costly, cheap = (len(sizes) - 1, 0) if run.noise.on_sum else (0, len(sizes) - 1)

    def met_at(place: int) -> bool:
        return meets(_of_size(run, sizes[place]))

    if met_at(start):
        return _of_size(run, sizes[_last_that_meets(met_at, start, costly, 1)])
    found = _first_that_meets(met_at, start, (cheap, costly), 1)
    if found is None:
        raise Unavailable("no_batch_size_meets", field="free", least=sizes[0], most=sizes[-1], epsilon=meets.epsilon)
    return _of_size(run, sizes[found])


def run_of_nearest_step_size(run: Run, meets: Meets) -> Run:
    """Return the run with the largest step size from the present one on, if that meets the target; else with the nearest
    shorter one that does, or longer.
    """

    def at(place: int) -> Run:
        return replace(run, step_size=times(run.step_size, math.exp(place * _FINENESS)))

    def met_at(place: int) -> bool:
        return meets(at(place))

    if met_at(0):
        longest = _last_that_meets(met_at, 0, _FARTHEST, _FIRST_STRIDE)
        if longest == _FARTHEST:
            raise Unavailable("every_step_size_meets", field="free", epsilon=meets.epsilon)
        return at(longest)
    found = _first_that_meets(met_at, 0, (-_FARTHEST, _FARTHEST), _FIRST_STRIDE)
    if found is None:
        raise Unavailable("no_step_size_meets", field="free", epsilon=meets.epsilon)
    return at(found)


def _of_size(run: Run, size: int) -> Run:
    """Return the run with batches of this size and as many passes over the data."""
    batches = run.batches.resized(size)
    if run.length.epochs is not None:
        return replace(run, batches=batches)
    return replace(run, batches=batches, steps=max(1, round(run.steps * batches.per_epoch / run.batches.per_epoch)))


def _last_that_meets(met_at: At, start: int, end: int, stride: int) -> int:
    """Return the last place towards `end` that meets, from a start that does."""
    met = start
    for place in _outward(start, end, stride):
        if not met_at(place):
            return _border(met_at, met, place)
        met = place
    return met


def _first_that_meets(met_at: At, start: int, ends: tuple[int, int], stride: int) -> int | None:
    """Return the first place that meets, from a start that does not: towards the first end, else the second; else None."""
    for end in ends:
        missed = start
        for place in _outward(start, end, stride):
            if met_at(place):
                return _border(met_at, place, missed)
            missed = place
    return None


def _outward(start: int, end: int, stride: int) -> Iterator[int]:
    """Yield places farther and farther away, up to the end."""
    sign = 1 if end > start else -1
    while stride < abs(end - start):
        yield start + sign * stride
        stride *= 2
    if end != start:
        yield end


def _border(met_at: At, met: int, missed: int) -> int:
    while abs(met - missed) > 1:
        middle = (met + missed) // 2
        met, missed = (middle, missed) if met_at(middle) else (met, middle)
    return met
