"""The claim of a certificate in sentences, read off the certificate alone, so that a page can claim nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lastiterate.accounting.describe import described, promises
from lastiterate.accounting.detection import FALSE_POSITIVE_RATE, attack_sentence
from lastiterate.accounting.groups import at_their_places, numbered
from lastiterate.accounting.page import refusals
from lastiterate.accounting.releases import released
from lastiterate.algorithms.encode import run_from_dict
from lastiterate.algorithms.run import Run
from lastiterate.digits import above
from lastiterate.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.profile import Profile
from lastiterate.theorems.catalogue import CATALOGUE

_DIFFER = {
    REPLACE_ONE: "that differ in one record, replaced by another",
    ZERO_OUT: "that differ in one record, which is zeroed out in one of them",
    ADD_OR_REMOVE_ONE: "of which one has one record more",
}
_EACH = {
    REPLACE_ONE: "each replaced by another",
    ZERO_OUT: "which are zeroed out in one of them",
    ADD_OR_REMOVE_ONE: "which one of them does not have",
}
THEOREMS = {theorem.name: theorem for theorem in CATALOGUE}


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
    def assumptions(self) -> list[str]:
        return [*self.certificate["assumptions"], *self.certificate.get("also_assumed", [])]

    @property
    def caveats(self) -> list[str]:
        """Why nobody may sign this."""
        found = list(self.certificate["caveats"])
        return found if math.isfinite(self.epsilon) else [*found, "No finite epsilon is proved for this run."]

    @property
    def what_was_run(self) -> list[str]:
        return described(self.run)

    def refusals(self, names: list[str]) -> list[str]:
        """Why these theorems say nothing of the run."""
        process = at_their_places(released(self.run.process, self.certificate["claim"]["releases"]), self.members)
        return list(refusals([THEOREMS[name].refusal(process) for name in names], self.run.process.update.plain))

    @property
    def released(self) -> str:
        """What is released, for the middle of a sentence."""
        what = f"{self.run.released.called} of a training run of {self.run.steps} steps"
        places = self.certificate["claim"]["releases"]
        more = [f"{len(places)} checkpoint{'s' if len(places) > 1 else ''} of it"] if places else []
        more += ["what was released before training"] if self.run.beforehand_mu else []
        return f"{what}, together with {' and '.join(more)}," if more else what

    @property
    def sentence(self) -> tuple[str, str, str]:
        """The claim: what stands before its number, the number, and what follows."""
        before = f"Releasing {self.released} is (ε, δ)-differentially private with ε = "
        after = f" and δ = {self.delta:g}, for any two data sets {self._differ}."
        return before, above(self.epsilon), after

    @property
    def members(self) -> tuple[int, ...]:
        """The records of the person whom it is for, where they are named."""
        return tuple(self.certificate.get("group", ()))

    @property
    def unit(self) -> str:
        """What is protected, in a few words."""
        if self.members:
            return f"records {numbered(self.members)}, those of one person"
        return "one record" if self.run.user_records == 1 else f"one user with up to {self.run.user_records} records"

    @property
    def neighbours(self) -> str:
        """Which data sets are neighbours."""
        return promises(self.run, (), self.members)[0]

    @property
    def _differ(self) -> str:
        if self.run.user_records == 1 and not self.members:
            return _DIFFER[self.run.adjacency]
        whose = f"up to {self.run.user_records} records of one user"
        if self.members:
            whose = f"records {numbered(self.members)} of the data, those of one person"
        return f"that differ in {whose}, {_EACH[self.run.adjacency]}"

    @cached_property
    def notion(self) -> Notion:
        """What the claim by itself implies: μ if there is one, else ε at δ and nothing more."""
        if self.mu is not None:
            return GaussianDP(self.mu, self.run.adjacency)
        return Profile(epsilons=[self.epsilon], deltas=[self.delta], adjacency=self.run.adjacency)

    def detected(self, false_positives: float) -> float:
        """At most this share of the records that were changed is found out, at this rate of false positives."""
        return 1 - float(self.notion.tradeoff(false_positives)) if math.isfinite(self.epsilon) else 1.0

    @property
    def chance(self) -> str:
        """The claim, as what it leaves to an attacker."""
        who = "An attacker" if self.mu is not None else "By ε and δ alone, an attacker"
        return attack_sentence(self.run, self.detected(FALSE_POSITIVE_RATE), who)
