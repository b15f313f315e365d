"""The guarantee of the best of a random number of trials: the better of two bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lastiterate.curves.adjacency import Adjacency
from lastiterate.curves.chosen_slack import ForEachDepth
from lastiterate.curves.dominated import tabled
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.notion import Notion
from lastiterate.curves.pointwise import Least
from lastiterate.curves.profile import Profile
from lastiterate.curves.selected import Selected
from lastiterate.curves.selected_renyi import has_divergences, selected_renyi
from lastiterate.curves.trials import Trials

# A table that is made for a power of ten ends a factor of 100 below it, and of the mean number of trials: what is below
# that hardly counts. A table goes a billion times deeper than it is told.
_ENDS = 1e7
_LARGEST_DELTA = 0.5


def best_of_trials(one: Notion, trials: Trials) -> Notion:
    """From the profile of one trial, and from its Rényi divergences where these are known (docs/proofs.md)."""
    if isinstance(one, GaussianDP) and one.mu == 0:
        return one  # nothing depends on the data
    by_profile = Selected(one, trials) if _is_quick(one) else SelectedByTables(one, trials)
    if not has_divergences(one):
        return by_profile
    return Least((by_profile, selected_renyi(one, trials)), one.adjacency)


def _is_quick(notion: Notion) -> bool:
    """And has a convex trade-off function."""
    return isinstance(notion, GaussianDP) or (isinstance(notion, Profile) and notion.points is not None)


@dataclass(frozen=True, eq=False)
class SelectedByTables(ForEachDepth):
    """Of the best of so many trials: by tables of one trial, each as deep as is asked."""

    trial: Notion
    trials: Trials
    _known: dict[int, Notion] = field(default_factory=dict, init=False, repr=False)

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        return self.trial.adjacency

    def relabelled(self, adjacency: Adjacency) -> Notion:
        return replace(self, trial=self.trial.relabelled(adjacency))

    def member(self, power: int) -> Notion:
        if power not in self._known:
            depth = _ENDS * self.exception(power) / max(self.trials.mean, 1.0)
            table = tabled(self.trial, min(depth, _LARGEST_DELTA), raised=0.0)
            epsilons, deltas = ([0.0], [1.0]) if table is None else table
            profile = Profile(epsilons=epsilons, deltas=deltas, adjacency=self.adjacency)
            self._known[power] = Selected(profile, self.trials)
        return self._known[power]
