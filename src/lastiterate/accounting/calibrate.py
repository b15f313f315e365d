"""The noise, the steps, the batch size or the step size that meets a target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lastiterate.accounting.account import account
from lastiterate.accounting.releases import checked_releases
from lastiterate.accounting.searches.by_theorem import Meets, as_executed
from lastiterate.accounting.searches.least_noise import least_noise
from lastiterate.accounting.searches.most_steps import longest_run
from lastiterate.accounting.searches.nearest import run_of_nearest_batch_size, run_of_nearest_step_size
from lastiterate.accounting.searches.per_trial import largest_spending
from lastiterate.accounting.select import select
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.per_trial import checked_trials
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
from lastiterate.runs.run import Run, checked_run
from lastiterate.theorems.own import checked_theorems
from lastiterate.theorems.theorem import Theorem

_LEAST_TARGET, _MOST_TARGET = 1e-6, 1e9
_MOST_TRIES, _CLOSER = 4, 1e-6  # to meet the target without room for rounding as well


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
    target, delta = _checked_target(epsilon), checked_number("delta", delta, INSIDE_UNIT)
    free, places = checked_choice("free", free, Free), checked_releases(releases)
    if trials is not None:
        if theorems is not None:
            raise InvalidInput("theorems_with_trials", field="theorems")
        return _calibrated_trial(run, target, delta, checked_trials(trials), free, most_steps, places)
    longest = most_steps if free is not Free.STEPS else checked_count("most_steps", most_steps)
    _check_beforehand(run.user_records * run.prior_mu, target, delta)
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
    """One trial of a search that meets the target; executed by `li.train`, it still does."""

    def total(trial: Run) -> float:
        report = account(trial, delta, [one for one in releases if one < trial.steps])
        return float(select(report, trials=trials).epsilon(delta))

    def made(spent: float) -> tuple[Run, float]:
        trial = calibrate(run, epsilon=spent, delta=delta, free=free, most_steps=most_steps, releases=releases)
        return trial, max(total(one) for one in {trial, as_executed(trial)})

    return largest_spending(made, epsilon=epsilon, delta=delta, trials=trials)


def _found(run: Run, free: Free, meets: Meets, longest: int) -> Run:
    """With a margin for the rounding of a training."""
    if free is Free.BATCH_SIZE:
        return run_of_nearest_batch_size(run, meets)
    if free is Free.STEP_SIZE:
        return run_of_nearest_step_size(run, meets)
    if free is Free.STEPS:
        return longest_run(run, meets, longest)
    return least_noise(as_executed(run), meets.epsilon, meets.delta, meets.releases, meets.theorems)


def _checked_target(epsilon: float) -> float:
    target = checked_number("epsilon", epsilon, POSITIVE)
    if not _LEAST_TARGET <= target <= _MOST_TARGET:
        raise must_be("epsilon", f"from {_LEAST_TARGET:g} to {_MOST_TARGET:g} for a search", f"{target:g}")
    return target


def _check_beforehand(mu: float, target: float, delta: float) -> None:
    """No noise makes up for what was released before training."""
    spent = GaussianDP(mu).epsilon(delta)
    if spent >= target:
        raise Unavailable("spent_beforehand", field="prior_mu", mu=mu, spent=spent, epsilon=target, delta=delta)
