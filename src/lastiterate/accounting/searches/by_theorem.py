"""What one theorem says of a process, and whether any of them meets a target."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from lastiterate.accounting.releases import released
from lastiterate.errors import InvalidInput
from lastiterate.runs.arithmetic import EXACT
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.evidence import About
from lastiterate.theorems.theorem import Guarantee, Theorem


def epsilon_by(theorem: Theorem, process: Process, delta: float, rung: int | None = None) -> float:
    if rung is not None and not theorem.failures(process):
        try:
            return float(theorem.rebuilt(process, rung).epsilon(delta))
        except InvalidInput:  # with other noise there may be no such rung
            return math.inf
    answer = theorem.apply(process)
    return answer.epsilon(delta) if isinstance(answer, Guarantee) else math.inf


def as_executed(run: Run) -> Run:
    """With room for the rounding of a training, unless the run states its own."""
    return replace(run, arithmetic=run.expected_arithmetic) if run.arithmetic == EXACT else run


class Meets:
    """Whether some theorem proves a run to meet the target. Composition is quick, and the one that met last comes first."""

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
