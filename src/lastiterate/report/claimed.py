"""The claim of a certificate, read off the certificate alone, so that a page can claim nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lastiterate.accounting.certificate import proved_by
from lastiterate.accounting.groups import at_their_places
from lastiterate.accounting.releases import released
from lastiterate.curves.notion import Notion
from lastiterate.digits import above
from lastiterate.facts import Fact, facts_from_json
from lastiterate.report import english
from lastiterate.report.run_text import described
from lastiterate.report.text import refusals
from lastiterate.runs.encode import run_from_dict
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import ALL

THEOREMS = {theorem.name: theorem for theorem in ALL}


@dataclass(frozen=True, eq=False)
class Claimed:
    """A certificate and its claim; `verify` checks that it proves it."""

    certificate: dict[str, Any]

    @cached_property
    def run(self) -> Run:
        return run_from_dict(self.certificate["run"])

    @property
    def epsilon(self) -> float:
        value = self.certificate["claim"]["epsilon"]
        return math.inf if value is None else float(value)

    @property
    def delta(self) -> float:
        return float(self.certificate["claim"]["delta"])

    @property
    def mu(self) -> float | None:
        value = self.certificate["claim"]["mu"]
        return None if value is None else float(value)

    @property
    def theorem(self) -> str:
        return str(self.certificate["theorem"])

    @property
    def citation(self) -> str:
        return THEOREMS[self.theorem].citation

    @property
    def releases(self) -> list[int]:
        """The steps after which checkpoints were released."""
        return list(self.certificate["claim"]["releases"])

    @cached_property
    def assumptions(self) -> tuple[Fact, ...]:
        return facts_from_json(self.certificate["assumptions"])

    @cached_property
    def caveats(self) -> list[str]:
        """Why nobody may sign this."""
        found = [str(one) for one in facts_from_json(self.certificate["caveats"])]
        return found if math.isfinite(self.epsilon) else [*found, english.nothing_proved(self.delta)]

    @property
    def what_was_run(self) -> list[str]:
        return described(self.run)

    def refusals(self, names: list[str]) -> list[str]:
        """Why these theorems say nothing of the run."""
        process = at_their_places(released(self.run.process, self.releases), self.members)
        return list(refusals([THEOREMS[name].refusal(process) for name in names], self.run.process.update.plain))

    @property
    def released(self) -> str:
        """What is released, for the middle of a sentence."""
        what = f"{self.run.released.called} of a training run of {self.run.steps} steps"
        more = [f"{english.counted(len(self.releases), 'checkpoint')} of it"] if self.releases else []
        more += ["what was released before training"] if self.run.prior_mu else []
        return f"{what}, together with {' and '.join(more)}," if more else what

    @property
    def sentence(self) -> str:
        return english.claim(self.released, above(self.epsilon), self.delta, *self._unit)

    @property
    def members(self) -> tuple[int, ...]:
        """The records of the person whom it is for, where they are named."""
        return tuple(self.certificate["claim"]["unit"]["records"])

    @property
    def _unit(self) -> tuple[str, int, tuple[int, ...]]:
        return self.run.adjacency.name.lower(), self.run.user_records, self.members

    @property
    def unit(self) -> str:
        """What is protected, in a few words."""
        return english.unit(self.run.user_records, self.members)

    @property
    def neighbours(self) -> str:
        """Which data sets are neighbours."""
        return english.definition(*self._unit)

    @cached_property
    def proved(self) -> Notion:
        """The whole curve behind the claim."""
        return proved_by(self.certificate)
