"""`li.select`: the privacy loss of choosing the best of many trials."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lastiterate.accounting.report import Report
from lastiterate.accounting.selection_certificate import selection_certificate
from lastiterate.algorithms.files import write_text
from lastiterate.errors import InvalidInput, Unavailable
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.adjacency import Adjacency
from lastiterate.privacy.compose import checked_notions
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.per_trial import checked_trials
from lastiterate.privacy.pointwise import worst
from lastiterate.privacy.select import best_of_trials
from lastiterate.privacy.trials import Trials


def select(guarantees: Any, *, trials: Trials) -> Selection:
    """The guarantee of running a random number of trials and releasing only the best one.

    guarantees: that of one trial, as a report of `li.account` or any guarantee; or a list with one for each setting, where
        every trial draws its setting at random and independently of the data. A trial is the model together with its score:
        a score that is computed from private records must be covered by the guarantee of the trial.
    trials: the distribution of their number, such as `li.trials.Geometric(mean=10)`. The number is drawn independently of
        the data and is not released.

    Takes the smaller of two bounds: from the privacy profile of a trial (docs/proofs.md), and from its Rényi divergences
    where these are known (Papernot and Steinke 2022, Theorems 2 and 6). A selection of reports has a `certificate`.
    """
    parts, trials = _listed(guarantees), checked_trials(trials)
    one = worst(checked_notions("select", parts))
    return Selection(best_of_trials(one, trials), trials, tuple(parts))


def _listed(guarantees: Any) -> Any:
    """One report or guarantee is a list of one."""
    single = isinstance(guarantees, Notion) or hasattr(guarantees, "as_notion") or not isinstance(guarantees, Iterable)
    return [guarantees] if single or isinstance(guarantees, str) else list(guarantees)


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Notion):
    """The guarantee of the best of a random number of trials. `parts` are the guarantees of a trial, one for each setting.

    `caveats`: what is known to be wrong with one execution of it. `verify` rejects a certificate that has any.
    """

    notion: Notion
    trials: Trials
    parts: tuple[Any, ...]
    caveats: tuple[str, ...] = ()

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.notion.adjacency

    def _said(self) -> str:
        return f"{len(self.parts)} guarantee{'' if len(self.parts) == 1 else 's'}, trials={self.trials!r}"

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return self.notion.relabelled(adjacency)

    def _log_delta(self, epsilons: Floats) -> Floats:
        return self.notion._log_delta(epsilons)

    def _epsilon(self, log_deltas: Floats) -> Floats:
        return self.notion._epsilon(log_deltas)

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        return self.notion._tradeoff(type_i_errors)

    def as_notion(self) -> Notion:
        """Itself, to be composed with others; an error where an execution has a caveat."""
        if self.caveats:
            raise InvalidInput(
                f"a selection with a caveat cannot be composed. This one has: {self.caveats[0]}. Search again without it.",
                field="guarantees",
            )
        return self

    @property
    def certificate(self) -> dict[str, Any]:
        """The proof for `lastiterate verify`, at the delta of the reports: the certificate of one trial for each setting,
        the distribution of the number of trials, and the claim. It exists where the guarantees are reports of `li.account`;
        a `GaussianDP` among them, such as that of a noisy score, is stated in it.
        """
        return deepcopy(self._certificate)

    @cached_property
    def _certificate(self) -> dict[str, Any]:
        reports = [one for one in self.parts if isinstance(one, Report)]
        others = [one for one in self.parts if not isinstance(one, Report)]
        if not reports or not all(isinstance(one, GaussianDP) for one in others):
            raise Unavailable(
                "certificate needs the reports of the trials. Give li.select reports of li.account; only li.GaussianDP may "
                "be listed beside them.",
                field="guarantees",
            )
        stated = max((one.mu for one in others), default=None)
        return selection_certificate(reports, stated, self.trials, self.caveats)

    def save_certificate(self, path: str | Path) -> None:
        """Write the certificate as JSON."""
        write_text(path, json.dumps(self._certificate) + "\n")
