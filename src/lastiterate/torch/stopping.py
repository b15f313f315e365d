"""Where a budget ends a training: a step that is known before the first one."""

from __future__ import annotations

from dataclasses import dataclass

from lastiterate.accounting.calibrate import STEPS, calibrate
from lastiterate.accounting.releases import checked_releases
from lastiterate.algorithms.run import Run


@dataclass(frozen=True)
class StopAtBudget:
    """The training ends at the last step that (epsilon, delta) allows. It is computed before the first, from the run alone.

    `releases`: after how many steps something else will be charged. What is not planned here is refused when it comes.
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
            free=STEPS,
            most_steps=run.steps,
            releases=self.releases,
        )
        return found.steps
