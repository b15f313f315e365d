"""A model as it was trained: what is released, the run that made it, and the account of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lastiterate.accounting.account import account_by
from lastiterate.accounting.report import Report
from lastiterate.algorithms.run import Run
from lastiterate.theorems.catalogue import CATALOGUE, OF_EVERY_ITERATE
from lastiterate.torch.releases import Releases
from lastiterate.training.trained import SEEDED

ASSUMED = (
    "The gradient of a record, as PyTorch computes it, does not depend on the other records of its batch: some were "
    "compared with gradients of single records, at the first step and after 1, 2, 4, 8, … of them.",
)


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """`model` holds what is released; `released` are the trained parameters after so many steps that were asked for.

    `run` is the run as it was executed, its arithmetic included. `private` is False if the noise came from a seed.
    `releases` is what else was written, shown or logged. `every`: only bounds on every iterate cover what is released.
    `caveats`: what else is wrong with this execution.
    """

    model: Any
    run: Run
    released: dict[int, dict[str, Any]]
    private: bool
    releases: Releases
    assumed: tuple[str, ...] = ()
    every: bool = False
    caveats: tuple[str, ...] = ()

    def report(self, delta: float) -> Report:
        """The account of what was run and of all that was released."""
        caveats = (*(() if self.private else (SEEDED,)), *self.caveats, *self.releases.caveats)
        places = (*self.released, *self.releases.steps)
        every = self.every or self.releases.show_iterates_of(self.run)
        found = account_by(OF_EVERY_ITERATE if every else CATALOGUE, self.run, delta, places)
        return replace(found, caveats=caveats, also_assumed=(*ASSUMED, *self.assumed, *self.releases.kept))
