"""A run as an event of dp-accounting."""

from __future__ import annotations

from typing import Any

import attr
import dp_accounting

from lastiterate.accounting.releases import releases_before
from lastiterate.runs.run import Run, checked_run


@attr.s(frozen=True, slots=True, auto_attribs=True)
class LastIterateDpEvent(dp_accounting.DpEvent):  # type: ignore[misc]
    """One execution of a run that releases only the last iterate and the checkpoints in `releases`.

    Its guarantee is that of `li.account(run, delta, releases)`, which holds for `run.adjacency` only.

    Attributes:
      run: The `li.Run` that was executed.
      releases: Steps after which the iterate is also released.
    """

    run: Run = attr.ib(converter=checked_run)
    releases: tuple[int, ...] = ()

    def __attrs_post_init__(self) -> None:
        given: Any = self.releases
        object.__setattr__(self, "releases", releases_before(self.run.steps, given))
