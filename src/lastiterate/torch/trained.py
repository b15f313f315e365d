"""A model as it was trained: what is released, the run that made it, and the account of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lastiterate.accounting.account import account_by
from lastiterate.accounting.report import Report
from lastiterate.display import alerts, card, folded, headline, summary, table
from lastiterate.facts import Basis, Fact, fact
from lastiterate.runs.run import Run
from lastiterate.runs.shown import run_rows
from lastiterate.theorems.catalogue import CATALOGUE, OF_EVERY_ITERATE
from lastiterate.torch.releases import Releases
from lastiterate.training.trained import SEEDED

BASIS = (
    *(
        (code, Basis.ENFORCED)
        for code in ("noise", "clipped", "projected", "l2_in_full", "optimizer_sees_noisy_gradients")
    ),
    *((code, Basis.CHECKED) for code in ("batches", "smaller_batch_divisor", "no_batch_statistics")),
)
"""What a training with PyTorch stands for, by the code of the assumption."""
ASSUMED = (fact("record_gradients_separate").on(Basis.CHECKED),)


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained PyTorch model. `released` holds the parameters after the steps in `releases`, by step.

    `run` is the run as it was executed, including its arithmetic. `private` is False if the noise came from a seed.
    `releases` records what else was written, shown or logged. `every`: every iterate is accounted as released. `caveats`:
    what else voids the guarantee.
    """

    model: Any
    run: Run
    released: dict[int, dict[str, Any]]
    private: bool
    releases: Releases
    assumed: tuple[Fact, ...] = ()
    every: bool = False
    caveats: tuple[Fact, ...] = ()

    def __repr__(self) -> str:
        return summary(self, *map(str, self._caveats), type(self.model).__name__, repr(self.run))

    def _repr_html_(self) -> str:
        model = f"{type(self.model).__name__}, after {self.run.steps} steps"
        return card(alerts(map(str, self._caveats)), headline(model), folded("Run", table(run_rows(self.run))))

    @property
    def _caveats(self) -> tuple[Fact, ...]:
        return (*(() if self.private else (SEEDED,)), *self.caveats, *self.releases.caveats)

    def report(self, delta: float) -> Report:
        """The privacy report of this training and of everything released."""
        places = (*self.released, *self.releases.steps)
        every = self.every or self.releases.show_iterates_of(self.run)
        found = account_by(OF_EVERY_ITERATE if every else CATALOGUE, self.run, delta, places)
        assumed = (*ASSUMED, *self.assumed, *self.releases.kept)
        return replace(found, caveats=self._caveats, also_assumed=assumed, basis=() if self._caveats else BASIS)
