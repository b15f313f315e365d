"""A run as an event of dp-accounting."""

from __future__ import annotations

from typing import Any

import attr
import dp_accounting

from lastiterate.accounting.releases import releases_before
from lastiterate.algorithms.run import Run, checked_run


@attr.s(frozen=True, slots=True, auto_attribs=True)
class LastIterateDpEvent(dp_accounting.DpEvent):  # type: ignore[misc]
    """Represents one execution of a run of which the last iterate is released, and nothing else.

    Its privacy is that of `li.account(run, delta, releases)`: under `run.adjacency`, and no other neighboring relation.

    Attributes:
      run: What was executed, a `li.Run`.
      releases: After how many steps an iterate is released as well.
    """

    run: Run = attr.ib(converter=checked_run)
    releases: tuple[int, ...] = ()

    def __attrs_post_init__(self) -> None:
        given: Any = self.releases
        object.__setattr__(self, "releases", releases_before(self.run.steps, given))
