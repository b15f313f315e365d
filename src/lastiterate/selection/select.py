"""`li.select`: the privacy loss of choosing the best of many trials."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from lastiterate.accounting.report import Report, accounted_again
from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.compose import checked_notions
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.minimum import worst
from lastiterate.curves.notion import Notion, refuse_caveats, with_caveats, without_caveats
from lastiterate.curves.selected import best_of_trials, checked_trials
from lastiterate.curves.trials import Trials
from lastiterate.errors import Unavailable
from lastiterate.facts import Fact
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.files import write_text
from lastiterate.selection.certificate import selection_certificate


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
    """Return the guarantees as a list: one report or guarantee is a list of one."""
    single = isinstance(guarantees, Notion) or hasattr(guarantees, "as_notion") or not isinstance(guarantees, Iterable)
    return [guarantees] if single or isinstance(guarantees, str) else list(guarantees)


def _marked(part: Any, caveats: tuple[Fact, ...]) -> Any:
    """Return the guarantee of a trial with the caveats of the selection."""
    if not caveats:
        return part
    return replace(part, caveats=caveats) if isinstance(part, Report) else with_caveats(part.as_notion(), caveats)


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Notion):
    """The guarantee of the best of a random number of trials. `parts` are the guarantees of a trial, one for each setting.

    `caveats`: what is known to be wrong with one execution of it. `verify` rejects a certificate that has any.
    """

    notion: Notion
    trials: Trials
    parts: tuple[Any, ...]
    caveats: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notion", with_caveats(self.notion.as_notion(), self.caveats))
        object.__setattr__(self, "parts", tuple(_marked(one, self.caveats) for one in self.parts))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process is computed there, from the guarantees of the trials."""
        parts = [one.__reduce__()[1] if isinstance(one, Report) else without_caveats(one) for one in self.parts]
        return _selected_again, (parts, self.trials, self.caveats)

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.notion.adjacency

    def _said(self) -> str:
        return f"{len(self.parts)} guarantee{'' if len(self.parts) == 1 else 's'}, trials={self.trials!r}"

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return self.notion.relabelled(adjacency)

    def epsilon(self, delta: ArrayLike) -> Any:
        return self.notion.epsilon(delta)

    def delta(self, epsilon: ArrayLike) -> Any:
        return self.notion.delta(epsilon)

    def tradeoff(self, type_i_error: ArrayLike) -> Any:
        return self.notion.tradeoff(type_i_error)

    def log_delta(self, epsilons: Floats) -> Floats:
        return self.notion.log_delta(epsilons)

    def epsilon_at_log(self, log_deltas: Floats) -> Floats:
        return self.notion.epsilon_at_log(log_deltas)

    def _tradeoff(self, type_i_errors: Floats) -> Floats:
        return self.notion._tradeoff(type_i_errors)

    def as_notion(self) -> Notion:
        """Itself, to be composed with others; an error where an execution has a caveat."""
        refuse_caveats(self.caveats)
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
        others = [without_caveats(one) for one in self.parts if not isinstance(one, Report)]
        gaussian = [one for one in others if isinstance(one, GaussianDP)]
        if not reports or len(gaussian) < len(others):
            raise Unavailable("trials_without_reports", field="guarantees")
        stated = max((one.mu for one in gaussian), default=None)
        return selection_certificate(reports, stated, self.trials, self.caveats)

    def save_certificate(self, path: str | Path) -> None:
        """Write the certificate as JSON."""
        write_text(path, json.dumps(self._certificate) + "\n")


def _selected_again(parts: list[Any], trials: Trials, caveats: tuple[Fact, ...]) -> Selection:
    """Select once more, in another process: a report is accounted for again, without the caveats of the selection."""
    given = []
    for one in parts:
        if isinstance(one, tuple):
            run, delta, releases, members, theorems, _, also_assumed, basis = one
            given.append(accounted_again(run, delta, releases, members, theorems, (), also_assumed, basis))
        else:
            given.append(one)
    return replace(select(given, trials=trials), caveats=caveats)
