"""A trained model with the run that made it, and the account of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lastiterate.accounting.account import account
from lastiterate.accounting.forgotten import Forgetting
from lastiterate.accounting.report import Report
from lastiterate.algorithms.run import Run
from lastiterate.algorithms.shown import run_rows
from lastiterate.display import alerts, card, folded, headline, lines, summary, table
from lastiterate.numerics.arrays import Floats

SEEDED = "DO NOT RELEASE: the noise came from a seed, and anyone who knows the seed can subtract it"


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model: `weights` is the last iterate, `run` the run that was executed, including its arithmetic.

    `private` is False if the noise came from a seed. `released` holds the checkpoints in `releases`, by step. `shortened` is
    the number of rows longer than the run's `feature_norm`; it was computed from the data and is not private. After
    forgetting, `forgotten` is the guarantee for the `removed` records, and the report covers the remaining ones.
    """

    weights: Floats
    run: Run
    released: dict[int, Floats]
    private: bool
    shortened: int
    forgotten: Forgetting | None = None
    removed: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return summary(self, *self._caveats, f"weights of shape {self.weights.shape}", repr(self.run))

    def _repr_html_(self) -> str:
        count = f"{self.weights.size} weights of shape {self.weights.shape}, after {self.run.steps} steps"
        released = (
            f"Also released: the iterates after {', '.join(map(str, self.released))} steps" if self.released else ""
        )
        parts = lines([released] if released else []), folded("Run", table(run_rows(self.run)))
        return card(alerts(self._caveats), headline(count), *parts)

    @property
    def _caveats(self) -> tuple[str, ...]:
        return () if self.private else (SEEDED,)

    def report(self, delta: float) -> Report:
        """The privacy report of this training, including all released checkpoints."""
        return report_of(self.run, delta, self.released, self._caveats)


def report_of(run: Run, delta: float, releases: Iterable[int], caveats: tuple[str, ...]) -> Report:
    """The account, and what is wrong with this execution."""
    return replace(account(run, delta, releases), caveats=caveats)
