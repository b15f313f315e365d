"""Where a budget ends a training: a step that is known before the first one."""

from __future__ import annotations

from dataclasses import dataclass

from lastiterate.accounting.calibrate import Free, calibrate
from lastiterate.accounting.releases import checked_releases
from lastiterate.runs.run import Run


@dataclass(frozen=True)
class StopAtBudget:
    """Ends the training at the last step within (epsilon, delta), computed from the run before training starts.

    `releases`: steps after which something else will be released. Any other release raises an error.
    """

    epsilon: float
    delta: float
    releases: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "releases", checked_releases(self.releases))

    def last_step(self, run: Run) -> int:
        found = calibrate(
            run,
            epsilon=self.epsilon,
            delta=self.delta,
            free=Free.STEPS,
            most_steps=run.steps,
            releases=self.releases,
        )
        return found.steps
