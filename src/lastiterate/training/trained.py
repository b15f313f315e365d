"""A trained model with the run that made it, and the account of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lastiterate.accounting.account import account
from lastiterate.accounting.forgotten import Forgetting
from lastiterate.accounting.report import Report
from lastiterate.display import alerts, card, folded, headline, lines, summary, table
from lastiterate.errors import worded
from lastiterate.facts import Basis, Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.run import Run
from lastiterate.runs.shown import run_rows

EXECUTED = (
    *("batches", "smaller_batch_divisor", "batches_not_adaptive", "noise", "clipped", "projected", "l2_in_full"),
    *("start_norm", "optimizer_sees_noisy_gradients"),
)
"""The codes of assumptions that `li.train` stands for, whatever the gradients."""
OF_LINEAR_MODELS = (
    *("feature_norm", "pull_limit", "gradient_change", "gradient_norm", "gradients_bounded_everywhere"),
    *("record_unchanged", "no_batch_statistics"),
)
"""Those that it stands for where it computes the gradients itself, on rows that it shortens to the feature norm."""
SEEDED = fact("noise_seeded", generator="lastiterate")


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model: `weights` is the last iterate, `run` the run that was executed, including its arithmetic.

    `private` is False if the noise came from a seed. `released` holds the checkpoints in `releases`, by step. `shortened` is
    the number of rows longer than the run's `feature_norm`; it was computed from the data and is not private. After
    forgetting, `forgotten` is the guarantee for the `removed` records, and the report covers the remaining ones. `enforced`:
    the codes of assumptions that this execution stands for.
    """

    weights: Floats
    run: Run
    released: dict[int, Floats]
    private: bool
    shortened: int
    forgotten: Forgetting | None = None
    removed: tuple[int, ...] = ()
    enforced: tuple[str, ...] = EXECUTED

    def __repr__(self) -> str:
        return summary(self, *map(str, self._caveats), f"weights of shape {self.weights.shape}", repr(self.run))

    def _repr_html_(self) -> str:
        size, shape = self.weights.size, self.weights.shape
        count = worded("trained_weights", size=size, shape=shape, steps=self.run.steps)
        released = [worded("trained_released", steps=[*self.released])] if self.released else []
        parts = lines(released), folded("Run", table(run_rows(self.run)))
        return card(alerts(map(str, self._caveats)), headline(count), *parts)

    @property
    def _caveats(self) -> tuple[Fact, ...]:
        return () if self.private else (SEEDED,)

    def report(self, delta: float) -> Report:
        """The privacy report of this training, including all released checkpoints."""
        return report_of(self.run, delta, self.released, self._caveats, self.enforced)


def report_of(
    run: Run, delta: float, releases: Iterable[int], caveats: tuple[Fact, ...], enforced: Iterable[str] = EXECUTED
) -> Report:
    """The account, what is wrong with this execution, and what it stands for."""
    basis = tuple((code, Basis.ENFORCED) for code in enforced if code != "noise" or not caveats)
    return replace(account(run, delta, releases), caveats=caveats, basis=basis)
