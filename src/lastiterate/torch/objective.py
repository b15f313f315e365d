"""The objective of a network: clipped gradients of a loader's batch, added up over all processes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lastiterate.errors import InvalidInput
from lastiterate.runs.noise import Arithmetic, Sums, lost_by_networks
from lastiterate.runs.run import Run
from lastiterate.torch.agreement import agreeing, check_agreement
from lastiterate.torch.clipped import NotFinite
from lastiterate.torch.gradients import ByVmap, Gradients
from lastiterate.torch.network import Network, NotByRecord, count_of, moved, pieces, tensors_of
from lastiterate.torch.team import ALONE, Team
from lastiterate.torch.tensors import Tensors
from lastiterate.training.objectives import Objective, acceptable_arithmetic, bound_of_gradients

_BYTES = 1 << 26  # of gradients that are formed at once
_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of `count` records in all processes; `parts` yields those of this process, some at a time."""

    count: int
    parts: Iterable[tuple[Any, Any]]

    def __len__(self) -> int:
        return self.count


class NetworkObjective(Objective):
    """Gradients are computed in the precision of the model, and added up in double precision."""

    def __init__(self, network: Network, run: Run, at_once: int | None = None, team: Team = ALONE) -> None:
        self.network, self.run, self.team, self.vectors = network, run, team, Tensors(team)
        self.at_once = at_once or _AT_ONCE
        self.gradients: Gradients | None = None
        self.taken = 0
        self._last_checked = -1
        self._total: Any = None
        self._count = 0

    @property
    def precision(self) -> Any:
        return self.network.dtype

    def gradient_sum(self, weights: Any, chosen: Any, clip: float | None) -> Any:
        """Return the clipped gradient sum over a batch and the records added since the last step, in all processes."""
        self.network.put(weights)
        try:
            count, total = self.team.total(lambda: self._added(chosen, clip)), self._total
        finally:  # what is left of a step that failed is in no other
            self._total, self._count = None, 0
        self.taken += 1
        self._check_count(count, len(chosen))
        return self.team.sum(self.network.spare.zeros() if total is None else total)

    def _added(self, chosen: Batch, clip: float | None) -> int:
        """Add the records of this process to the batch, and return how many of them it now has."""
        for inputs, targets in chosen.parts:
            self.add(inputs, targets, clip)
        self.network.check_buffers()
        return self._count

    def add(self, inputs: Any, targets: Any, clip: float | None) -> None:
        """Add records to the batch of the next step."""
        most = min(self.run.loss.gradient_bound, math.inf if clip is None else clip)
        if self._total is not None:
            self.network.forget()
        else:
            self.network.renew()
        if not (count := count_of((inputs, targets))):
            return
        self._count += count
        inputs, targets = self._moved(inputs), self._moved(targets)
        try:
            self._add(inputs, targets, most)
        except (NotFinite, NotByRecord) as error:  # a record that is not finite is like no other
            self._total, self._count = None, 0
            if all(bool(one.isfinite().all()) for one in tensors_of((inputs, targets))):
                raise
            raise InvalidInput("records_not_finite", field="dataset") from error
        except BaseException:  # some of these records may have been added: the batch begins again
            self._total, self._count = None, 0
            raise

    def arithmetic(self, run: Run, parameters: int) -> Arithmetic:
        """Rounding of sums in double precision, of terms that cancel, and of one addition for each process.

        Records that are looked at at once may be as few as one: then there is an addition for every record.
        """
        if not math.isfinite(bound_of_gradients(run)):
            raise InvalidInput("network_not_clipped", field="clip")
        sums = Sums(min(self.at_once, run.batches.largest), 2.0**-53)
        found = acceptable_arithmetic(run, sums, lost_by_networks(run.batches.largest, self.team.size))
        return Arithmetic(found.factor, self.vectors.straying)

    def _moved(self, part: Any) -> Any:
        return moved(part, self.network.device, self.network.dtype)

    def _add(self, inputs: Any, targets: Any, most: float) -> None:
        """Add clipped gradients to the sum, which takes the memory that the comparison has left."""
        gradients = self._checked(*next(pieces(inputs, targets, self.at_once)), most)
        if self._total is None:
            self._total = self.network.spare.zeros()
        totals = self.network.views(self._total)
        at_once = max(1, min(self.at_once, _BYTES // max(1, gradients.formed)))
        for place, piece in enumerate(pieces(inputs, targets, at_once)):
            if place and not isinstance(gradients, ByVmap):  # which has a copy of its own
                self.network.forget()
            gradients.add(*piece, totals, most)

    def _checked(self, inputs: Any, targets: Any, most: float) -> Gradients:
        """Return the gradients, compared with single records before the first step and after 1, 2, 4, 8, … steps."""
        if self.gradients is None:
            self.gradients = agreeing(self.network, inputs, targets, most)
        elif self.taken & (self.taken - 1) == 0 and self._last_checked != self.taken:
            check_agreement(self.gradients, inputs, targets, most)
        else:
            return self.gradients
        self._last_checked = self.taken
        self.network.forget()
        return self.gradients

    def _check_count(self, count: int, expected: int) -> None:
        if count != expected:
            raise InvalidInput("records_missing", field="dataset", count=count, drawn=expected)
