"""Plans side by side, the best first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from lastiterate.accounting.report import Report
from lastiterate.digits import above
from lastiterate.display import bullets, card, folded, headline, lines, summary, table
from lastiterate.errors import POSITIVE, checked_number, worded
from lastiterate.plots import draw_frontier
from lastiterate.runs.encode import run_to_dict
from lastiterate.runs.run import Run
from lastiterate.training.plans.advice import advice
from lastiterate.training.plans.choose import chosen_plan
from lastiterate.training.plans.goal import Goal
from lastiterate.training.plans.plan import Plan

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
