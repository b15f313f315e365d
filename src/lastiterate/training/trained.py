"""A trained model with the run that made it, and the account of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lastiterate.accounting.account import account
from lastiterate.accounting.forgotten import Forgetting
from lastiterate.accounting.report import Report
from lastiterate.algorithms.run import Run
from lastiterate.numerics.arrays import Floats

SEEDED = "DO NOT RELEASE: the noise came from a seed, so whoever knows the seed can take it off"


@dataclass(frozen=True, eq=False)
class Trained:
    """The last iterate, and the run that made it, its arithmetic included. `private` is False if the noise came from a seed.

    `released` are the iterates after so many steps that were asked for. `shortened` rows were longer than the run declares;
    that number was computed from the data, and is not private. `forgotten` says what is proved of the `removed` records; the
    report is about those that stayed.
    """

    weights: Floats
    run: Run
    released: dict[int, Floats]
    private: bool
    shortened: int
    forgotten: Forgetting | None = None
    removed: tuple[int, ...] = ()

    def report(self, delta: float) -> Report:
        """The account of what was run and of all that was released."""
        return report_of(self.run, delta, self.released, () if self.private else (SEEDED,))


def report_of(run: Run, delta: float, releases: Iterable[int], caveats: tuple[str, ...]) -> Report:
    """The account, and what is wrong with this execution."""
    return replace(account(run, delta, releases), caveats=caveats)
