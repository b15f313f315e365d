"""A model as it was trained: what is released, the run that made it, and the account of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lastiterate.accounting.account import account_by
from lastiterate.accounting.report import Report
from lastiterate.algorithms.run import Run
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.evidence import About
from lastiterate.torch.releases import Releases
from lastiterate.training.train import SEEDED, report_of

ASSUMED = (
    "The gradient of a record, as PyTorch computes it, does not depend on the other records of its batch: some were "
    "compared with gradients of single records, at the first step and after 1, 2, 4, 8, … of them.",
)


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """`model` holds what is released; `released` are the trained parameters after so many steps that were asked for.

    `run` is the run as it was executed, its arithmetic included. `private` is False if the noise came from a seed.
    `releases` is what else was written, shown or logged. `every`: only bounds on every iterate cover what is released.
    """

    model: Any
    run: Run
    released: dict[int, dict[str, Any]]
    private: bool
    releases: Releases
    assumed: tuple[str, ...] = ()
    every: bool = False

    def report(self, delta: float) -> Report:
        """The account of what was run and of all that was released."""
        caveats = (*(() if self.private else (SEEDED,)), *self.releases.caveats)
        places = (*self.released, *self.releases.steps)
        if self.every or (self.releases.charged and not self.run.released.plain):
            every = [theorem for theorem in CATALOGUE if theorem.about is About.EVERY_ITERATE]
            found = replace(account_by(every, self.run, delta, places), caveats=caveats)
        else:
            found = report_of(self.run, delta, places, caveats)
        return replace(found, also_assumed=(*ASSUMED, *self.assumed, *self.releases.kept))
