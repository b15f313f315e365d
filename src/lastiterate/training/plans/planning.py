"""`li.plan`: which batches, how many epochs, which step size and noise, for a target that is given beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, overload

from lastiterate.accounting.account import account
from lastiterate.accounting.calibrate import calibrate
from lastiterate.accounting.report import Report
from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.digits import above
from lastiterate.display import bullets, card, folded, headline, lines, summary, table
from lastiterate.errors import (
    INSIDE_UNIT,
    POSITIVE,
    InvalidInput,
    LastIterateError,
    Unavailable,
    checked_choice,
    checked_count,
    checked_number,
    must_be,
    shown,
    worded,
)
from lastiterate.plots import draw_frontier
from lastiterate.progress import tracked
from lastiterate.runs.batches import FixedSize
from lastiterate.runs.batches.poisson import drawn_otherwise
from lastiterate.runs.files import run_to_dict
from lastiterate.runs.losses import Loss
from lastiterate.runs.named import names_arguments
from lastiterate.runs.run import Run
from lastiterate.training.plans import composed, passes
from lastiterate.training.plans.goal import Goal, seconds_of
from lastiterate.training.plans.plan import MOST_PASSES, Plan, Way, Wishes, run_of
from lastiterate.training.plans.problem import Problem


@names_arguments
def plan(
    *,
    loss: Loss,
    records: int,
    features: int,
    epsilon: float,
    delta: float,
    adjacency: Adjacency = REPLACE_ONE,
    passes: int = MOST_PASSES,
    batches: int | None = None,
    epochs: int | None = None,
    step_size: float | None = None,
    user_records: int = 1,
) -> Plans:
    """Plans to train within (epsilon, delta), smallest expected error first, each with a run that is ready to train.

    Uses public numbers only: the number of `records`, the number of `features` per row, and a `loss` such as
    `li.losses.logistic(feature_norm=1.0)`. Every plan makes at most `passes` over the data. `batches` per epoch, `epochs`,
    `step_size` and the L2 term of the loss are chosen unless you set them. The expected error is computed on a quadratic
    reference problem whose curvatures decay like 1/j over the features: use it to compare plans, not to predict the error
    on your data.
    With `user_records`, the target is for a whole user, who has at most this many records.
    """
    if not isinstance(loss, Loss):
        raise InvalidInput("plan_without_loss", field="loss", got=f"{shown(loss):.60}")
    goal = Goal(
        loss=loss,
        records=checked_count("records", records),
        features=checked_count("features", features),
        epsilon=checked_number("epsilon", epsilon, POSITIVE),
        delta=checked_number("delta", delta, INSIDE_UNIT),
        adjacency=checked_choice("adjacency", adjacency, Adjacency),
        wishes=Wishes(
            _count_or_none("batches", batches),
            _count_or_none("epochs", epochs),
            None if step_size is None else checked_number("step_size", step_size, POSITIVE),
            loss.l2 or None,
            checked_count("passes", passes),
        ),
        user_records=_checked_user(user_records, records),
    )
    settings = several_plans(goal.problem, goal.wishes)
    found = [_planned(goal, one) for one in tracked(settings, "planning")]
    return Plans(goal, tuple(sorted(found, key=lambda one: preference(one.settings))))


def _checked_user(user_records: Any, records: int) -> int:
    if checked_count("user_records", user_records) > records:
        raise must_be("user_records", f"at most records = {records}", f"{user_records}")
    return int(user_records)


def _count_or_none(name: str, value: Any) -> int | None:
    return None if value is None else checked_count(name, value)


def _planned(goal: Goal, settings: Plan) -> PlannedRun:
    """Return the run of a plan with the noise that the target asks for, and its error."""
    run = calibrate(run_of(settings, goal.setting(settings)), epsilon=goal.epsilon, delta=goal.delta)
    noise = float(run.process.noise[0]) / settings.step_size
    known = replace(settings, noise=noise, error=error_with(goal.problem, goal.wishes, settings, noise))
    halved, doubled = (steadiness(goal.problem, known, factor) for factor in (0.5, 2.0))
    return PlannedRun(known, account(run, goal.delta), seconds_of(goal.problem, known), halved, doubled)


# Tables of plans.


_FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # of ε, along the frontier


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A plan with calibrated noise. `expected_error`: excess loss on the reference problem. `seconds`: approximate training
    time on one core. `halved`, `doubled`: the factor on the expected error with half and with twice the step size."""

    settings: Plan
    report: Report
    seconds: float
    halved: float
    doubled: float

    @property
    def run(self) -> Run:
        """The calibrated run, ready for `li.train`."""
        return self.report.run

    @property
    def way(self) -> str:
        return str(self.settings.way)

    @property
    def expected_error(self) -> float:
        return self.settings.error

    @property
    def epsilon(self) -> float:
        return self.report.epsilon

    @property
    def composed_epsilon(self) -> float:
        """Epsilon if every iterate were released."""
        return self.report.epsilon_all_released

    def __repr__(self) -> str:
        settings = self.settings
        return summary(
            self,
            settings.way.called,
            settings.length,
            f"step size {settings.step_size:.3g}",
            f"expected error {self.expected_error:.2g}",
            f"epsilon={above(self.epsilon)}",
            f"delta={self.report.delta:g}",
        )

    def _repr_html_(self) -> str:
        return card(headline(str(self.settings)), table(zip(_HEADS[1:], _row(0, self)[1:], strict=True)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "way": self.settings.way.value,
            "batches": self.settings.batches,
            "epochs": self.settings.epochs,
            "step_size": self.settings.step_size,
            "l2": self.settings.l2,
            "noise": getattr(self.run.noise, self.run.noise.size),
            "noise_is": self.run.noise.size,
            "expected_error": self.expected_error,
            "error_with_half_the_step_size": self.halved,
            "error_with_twice_the_step_size": self.doubled,
            "epsilon": self.epsilon,
            "composed_epsilon": self.composed_epsilon,
            "theorem": self.report.best.theorem.name,
            "seconds": self.seconds,
            "run": run_to_dict(self.run),
        }


@dataclass(frozen=True, eq=False)
class Plans(Sequence[PlannedRun]):
    """Plans that meet one target, smallest expected error first."""

    goal: Goal
    planned: tuple[PlannedRun, ...]

    def __len__(self) -> int:
        return len(self.planned)

    @overload
    def __getitem__(self, place: int) -> PlannedRun: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[PlannedRun, ...]: ...
    def __getitem__(self, place: int | slice) -> PlannedRun | tuple[PlannedRun, ...]:
        return self.planned[place]

    def __iter__(self) -> Iterator[PlannedRun]:
        return iter(self.planned)

    @property
    def best(self) -> PlannedRun:
        return self.planned[0]

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """Changes that would reduce the noise or the expected error, one sentence each."""
        return advice(self.goal, [(one.settings, one.run) for one in self.planned])

    def frontier(self, epsilons: Sequence[float] | None = None) -> tuple[tuple[float, float], ...]:
        """Pairs (ε, expected error of the best plan), for these `epsilons`, or for values around the target."""
        wanted = [self.goal.epsilon * factor for factor in _FACTORS] if epsilons is None else epsilons
        goals = [replace(self.goal, epsilon=checked_number("epsilons", one, POSITIVE)) for one in wanted]
        return tuple((one.epsilon, chosen_plan(one.problem, one.wishes).error) for one in goals)

    def to_dict(self) -> dict[str, Any]:
        return {
            "epsilon": self.goal.epsilon,
            "delta": self.goal.delta,
            "adjacency": self.goal.adjacency.name.lower(),
            "user_records": self.goal.user_records,
            "plans": [one.to_dict() for one in self.planned],
            "frontier": [{"epsilon": epsilon, "expected_error": error} for epsilon, error in self.frontier()],
            "advice": list(self.advice),
        }

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Any:
        """Plot expected error against ε, with the plans of the table. Returns matplotlib axes.

        Drawn on `ax`, or on a new figure; written to `path` if given.
        """
        points = [(one.expected_error, one.settings.way.called) for one in self.planned]
        return draw_frontier(self.frontier(), self.goal.epsilon, points, self.goal.delta, path, ax)

    def __repr__(self) -> str:
        return summary(self, f"{len(self)} plans", self.goal.described)

    def _repr_html_(self) -> str:
        rows = table([_row(place, one) for place, one in enumerate(self.planned, 1)], _HEADS)
        helps = (folded("What would help", bullets(self.advice)),) if self.advice else ()
        return card(
            headline(f"Plans for {self.goal.described}"),
            rows,
            lines([worded("plans_legend").replace("\n", " ")]),
            *helps,
        )

    def __str__(self) -> str:
        helps = ["", "What would help:", *(f"  {line}" for line in self.advice)] if self.advice else []
        return "\n".join([f"Plans for {self.goal.described}:", "", *_table(self.planned), *helps])


_HEADS = (
    "",
    "training",
    "batches",
    "epochs",
    "step size",
    "noise",
    "expected error",
    "½, 2 × step",
    "all released",
    "time",
)


def _table(planned: Sequence[PlannedRun]) -> list[str]:
    rows = [_HEADS, *(_row(place, one) for place, one in enumerate(planned, 1))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    told = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [*told, "", worded("plans_legend")]


def _row(place: int, one: PlannedRun) -> tuple[str, ...]:
    noise = one.run.noise
    return (
        str(place),
        one.settings.way.called,
        str(one.settings.batches),
        str(one.settings.epochs),
        f"{one.settings.step_size:.3g}",
        f"{noise.size} {getattr(noise, noise.size):.4g}",
        f"{one.expected_error:.2g}",
        f"× {one.halved:.2g}, {one.doubled:.2g}",
        f"{one.composed_epsilon:.3g}",
        f"{one.seconds:.2g} s",
    )


# Choice of a plan.


_WAYS = (composed.full_batches, passes.hidden_passes, composed.sampled_batches)
_NO_WISHES = Wishes()
_CLEARLY = 1.1  # times: the problem is a guess, and full batches are the quickest to account for
_FEWER = (1, 5, 25)  # times fewer passes than one may have: what haste costs


@lru_cache(maxsize=64)
def chosen_plan(problem: Problem, wishes: Wishes = _NO_WISHES) -> Plan:
    """Choose a plan from public numbers alone."""
    best, *others = sorted(_of_every_way(problem, wishes), key=preference)
    return replace(best, others=tuple((plan.way, plan.error) for plan in others))


def several_plans(problem: Problem, wishes: Wishes) -> list[Plan]:
    """Return the best plan of each way, with all passes and with fewer, unless another is better and quicker."""
    limits = dict.fromkeys(max(1, wishes.most_epochs // fewer) for fewer in _FEWER)
    every = [plan for most in limits for plan in _of_every_way(problem, replace(wishes, passes=most))]
    firsts = {plan.way: plan for plan in sorted(every, key=preference, reverse=True)}
    kept = [plan for plan in every if plan in firsts.values() or not any(_beats(other, plan) for other in every)]
    return sorted(dict.fromkeys(kept), key=preference)


def _beats(plan: Plan, other: Plan) -> bool:
    """Whether a plan has less error with no more passes over the data."""
    return plan.error < other.error and plan.epochs <= other.epochs


def error_with(problem: Problem, wishes: Wishes, plan: Plan, noise: float) -> float:
    """Expected error of the plan with this noise on the mean gradient."""
    if plan.way is Way.PASSES:
        return passes.error_with(problem, plan, noise)
    return composed.error_with(problem, plan, noise, composed.factors_of(wishes))


def steadiness(problem: Problem, plan: Plan, factor: float) -> float:
    """Factor on the expected error if the step size is multiplied by `factor`, with the same noise."""
    error = passes.error_with if plan.way is Way.PASSES else composed.error_with
    return error(problem, plan, plan.noise, (factor,)) / error(problem, plan, plan.noise, (1.0,))


def _of_every_way(problem: Problem, wishes: Wishes) -> list[Plan]:
    plans = [plan for way in _WAYS if (plan := way(problem, wishes)) is not None]
    if not plans:
        raise Unavailable("no_plan")
    return plans


def preference(plan: Plan) -> float:
    """Key by which plans are sorted: the least is best."""
    return plan.error * (1.0 if plan.way is Way.FULL else _CLEARLY)


# Advice: what would help, each with its effect in percent.


_WORTH_A_LINE = 0.05  # of the noise or of the error


def advice(goal: Goal, planned: Sequence[tuple[Plan, Run]]) -> tuple[str, ...]:
    """Suggest batches drawn otherwise, for the plan with the smallest, and more of whatever limits the best."""
    in_passes = [(place, run) for place, (_, run) in enumerate(planned, 1) if run.batches.passes]
    smallest = max(in_passes, key=lambda one: one[1].batches.per_epoch, default=None)
    batches = list(_drawn_otherwise(goal, *smallest)) if smallest else []
    return (*batches, *_more_of_something(goal))


def _drawn_otherwise(goal: Goal, place: int, run: Run) -> Iterator[str]:
    """Suggest batches of the same mean size that are drawn otherwise and need less noise."""
    for batches in drawn_otherwise(run.batches):
        if isinstance(batches, FixedSize):  # about as good as Poisson batches, and slow to calibrate
            continue
        try:
            changed = calibrate(replace(run, batches=batches, steps=run.steps), epsilon=goal.epsilon, delta=goal.delta)
        except LastIterateError:
            continue
        change = float(changed.process.noise[0] / run.process.noise[0]) - 1
        if change < -_WORTH_A_LINE:
            drawn = {"batches": batches.called, "instead_of": run.batches.called}
            yield worded("plan_batches_otherwise", plan=place, **drawn, percent=-100 * change)


def _more_of_something(goal: Goal) -> Iterator[str]:
    """Suggest more records, passes or ε where the reference problem's error falls."""
    before = chosen_plan(goal.problem, goal.wishes).error
    wishes = goal.wishes
    more = {
        "records": replace(goal, records=2 * goal.records),
        "passes": replace(goal, wishes=replace(wishes, passes=2 * wishes.most_epochs)),
        "epsilon": replace(goal, epsilon=2 * goal.epsilon),
    }
    for what, other in more.items():
        change = chosen_plan(other.problem, other.wishes).error / before - 1
        if change < -_WORTH_A_LINE:
            now = {"passes": other.wishes.most_epochs, "epsilon": other.epsilon}
            yield worded("plan_with_more", of=what, **now, percent=-100 * change)
