"""The book of a training that somebody else's loop executes: what it logs, saves and stops at, and the report in the end.

Safest first: what saw records, or may have, is a leak until it is declared; what is computed from the parameters and public
data alone is charged; only what is declared to stay inside is neither.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from lastiterate.accounting.account import account_by
from lastiterate.accounting.calibrate import Free, calibrate
from lastiterate.accounting.report import Report
from lastiterate.certificate.claims import checked_releases
from lastiterate.display import alerts, card, folded, headline, summary, table
from lastiterate.errors import InvalidInput, PrivacyLeak, Unavailable, must_be, shown, worded
from lastiterate.facts import Basis, Fact, fact
from lastiterate.runs.run import Run, checked_run, run_rows
from lastiterate.theorems.catalogue import CATALOGUE, OF_EVERY_ITERATE
from lastiterate.torch.checkpoint import ReleaseEntry, Releases
from lastiterate.training.train import SEEDED

ASSUMED = (fact("loop_follows_run"), fact("nothing_outside_logs"), fact("metrics_public"))
_EVERY = fact("every_iterate_released")
_RECENT = 64  # entries among which a second telling of the same thing is found


class Recording:
    """Record of one training; `public` and `inside` are names of metrics and files, in which * and ? are wildcards.

    `limit` is the last step that may be taken, `taken` how many were; `ended`: the loop says that it came to its end.
    """

    def __init__(
        self,
        run: Run,
        public: Iterable[str],
        inside: Iterable[str],
        releases: Releases | None,
        stop: StopAtBudget | None,
    ) -> None:
        self.run = checked_run(run)
        self.public, self.inside = _names("public", public), _names("inside", inside)
        self.releases, self.goes_on = _book(releases), releases is not None
        self.stop = stop
        self.limit = run.steps if stop is None else stop.last_step(run)
        self.taken, self.ended = 0, False
        self.assumed: tuple[Fact, ...] = ()
        self.watched: tuple[str, ...] = ()
        self._checked_at: set[int] = set()
        self._every = False
        self._told: set[str] = set()

    def is_public(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.public)

    def is_inside(self, name: str) -> bool:
        """Whether a name is declared to stay inside; if it is public as well, it is accounted for as released."""
        return any(fnmatchcase(name, pattern) for pattern in self.inside) and not self.is_public(name)

    def begin(self, step: int) -> None:
        """Begin or continue a loop after `step` steps."""
        if step > self.taken and not self.goes_on:
            raise InvalidInput("steps_not_recorded", field="releases", steps=step)
        if step == 0 and self.taken:
            raise InvalidInput("recording_used", steps=self.taken)
        if any(one.step > step for one in self.releases.charged):
            self._leak(step, worded("steps_taken_again"))
        self.taken, self.ended = step, False

    def check_room(self, step: int) -> None:
        """Raise an error if one more step would be too many."""
        if step >= self.limit:
            raise InvalidInput("trainer_goes_on", field="steps", steps=self.limit)

    def metric(self, name: str, steps: Iterable[int], shown_to: str = "") -> None:
        """Record a number that was logged, computed from the parameters after these steps."""
        what = f"{name}, {shown_to}" if shown_to else name
        places = tuple(steps)
        for step in places:
            if self.is_public(name):
                self.charge(step, what)
            elif self.is_inside(name):
                self._write(self.releases.inside, self.releases.keep_inside, step, what)
            else:
                self.leak(step, name, what)
        if name in self.watched:
            self._checked_at.update(places)

    def charge(self, step: int, what: str) -> None:
        if self.stop is not None and 0 < step < self.limit and step not in self.stop.releases:
            raise InvalidInput("release_not_in_budget", field="releases", what=what, step=step)
        self._write(self.releases.charged, self.releases.charge, step, what)

    def leak(self, step: int, name: str, what: str) -> None:
        """Record an undeclared release, with a warning for the first of each name."""
        if name not in self._told:
            self._told.add(name)
            warnings.warn(worded("leak_recorded", what=what), PrivacyLeak, stacklevel=2)
        self._leak(step, what)

    def checkpoint(self, step: int, file: str, *, memory: bool = False) -> bool:
        """Record a file with parameters, and with `memory` of the past; return whether it is released."""
        if self.is_inside(file):
            self._write(self.releases.inside, self.releases.keep_inside, step, file)
            return False
        self.charge(step, file)
        self._every = self._every or memory
        return True

    def averaged(self) -> None:
        """Note that averages of iterates are released."""
        self._every = True

    def watch(self, by: str, name: str) -> None:
        """Note that the end of the training depends on this metric."""
        self._check_decided(by, name, "end")
        self.watched = (*self.watched, name)

    def choose(self, by: str, name: str, files: str) -> None:
        """Note that this metric decides which files are written and what they are called."""
        if not self.is_inside(files):
            self._check_decided(by, name, "files")

    def report(self, delta: float) -> Report:
        """The privacy report of the steps taken and of everything released."""
        if self.taken == 0:
            raise Unavailable("no_step_recorded")
        run, releases = self._accounted()
        every = self._every or self.releases.show_iterates_of(run)
        found = account_by(OF_EVERY_ITERATE if every else CATALOGUE, run, delta, releases)
        assumed = (*ASSUMED, *self.assumed, *((_EVERY,) if every else ()), *self.releases.kept)
        return replace(found, caveats=self.caveats, also_assumed=assumed)

    @property
    def caveats(self) -> tuple[Fact, ...]:
        """Facts that make the guarantee false."""
        if self.taken >= self.limit or self._stopped_by_public:
            return self.releases.caveats
        early = fact("stopped_early", taken=self.taken, planned=self.limit)
        return (early, *self.releases.caveats)

    @property
    def state(self) -> dict[str, Any]:
        """State from which a later process can continue the record."""
        pages = {name: [(one.step, one.what) for one in page] for name, page in self._pages.items()}
        return {"taken": self.taken, "every": self._every, "checked": sorted(self._checked_at), **pages}

    def go_on(self, state: dict[str, Any]) -> None:
        """Continue from a saved state; what was recorded since then stays recorded."""
        for name, page in self._pages.items():
            page.extend(one for one in (ReleaseEntry(*entry) for entry in state[name]) if one not in page)
        self.taken, self._every, self.goes_on = state["taken"], self._every or state["every"], True
        self._checked_at.update(state["checked"])

    @property
    def _pages(self) -> dict[str, list[ReleaseEntry]]:
        book = self.releases
        return {"charged": book.charged, "inside": book.inside, "uncharged": book.uncharged}

    @property
    def _stopped_by_public(self) -> bool:
        return self.ended and self.taken in self._checked_at

    def _accounted(self) -> tuple[Run, tuple[int, ...]]:
        """Return the run and releases to account for: all that could still come if a release decided the end."""
        early = self.taken < self.limit
        end = self.limit if early and self._stopped_by_public else self.taken
        coming = range(self.taken, end) if self.stop is None else self.stop.releases
        places = {*self.releases.steps, *(step for step in coming if step >= self.taken)}
        return self.run.first(end), tuple(sorted(step for step in places if step < end))

    def _check_decided(self, by: str, name: str, chosen: str) -> None:
        if not self.is_public(name):
            raise InvalidInput("chosen_by_records", field="public", by=by, metric=name, chosen=chosen)

    def _leak(self, step: int, what: str) -> None:
        self._write(self.releases.uncharged, self.releases.leak, step, what)

    def _write(self, page: list[ReleaseEntry], enter: Any, step: int, what: str) -> None:
        if ReleaseEntry(step, what) not in page[-_RECENT:]:
            enter(step, what)


class Recorder:
    """Common part of the callbacks for all trainers."""

    def __init__(
        self,
        run: Run,
        *,
        public: Iterable[str] = (),
        inside: Iterable[str] = (),
        releases: Releases | None = None,
        stop: StopAtBudget | None = None,
    ) -> None:
        super().__init__()
        self.recording = Recording(run, public, inside, releases, stop)

    @property
    def releases(self) -> Releases:
        """The record of everything released."""
        return self.recording.releases

    def report(self, delta: float) -> Report:
        """The privacy report of the steps taken and of everything released."""
        return self.recording.report(delta)


def _names(field: str, names: Iterable[str]) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(one, str) and one for one in found):
        raise must_be(field, "names of metrics or files", f"{shown(found):.60}")
    return found


def _book(releases: Any) -> Releases:
    if releases is not None and not isinstance(releases, Releases):
        raise must_be("releases", "a book of releases", f"{shown(releases):.60}")
    return Releases() if releases is None else releases


# Stopping at a budget: at a step that is known before the first one.


@dataclass(frozen=True)
class StopAtBudget:
    """Ends the training at the last step within (epsilon, delta), computed from the run before training starts.

    `releases`: steps after which something else will be released. Any other release raises an error.
    """

    epsilon: float
    delta: float
    releases: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "releases", checked_releases(self.releases))

    def last_step(self, run: Run) -> int:
        found = calibrate(
            run,
            epsilon=self.epsilon,
            delta=self.delta,
            free=Free.STEPS,
            most_steps=run.steps,
            releases=self.releases,
        )
        return found.steps


# Trained models.


BASIS = (
    *(
        (code, Basis.ENFORCED)
        for code in ("noise", "clipped", "projected", "l2_in_full", "optimizer_sees_noisy_gradients")
    ),
    *((code, Basis.CHECKED) for code in ("batches", "smaller_batch_divisor", "no_batch_statistics")),
)
"""What a training with PyTorch stands for, by the code of the assumption."""
ASSUMED_OF_A_NETWORK = (fact("record_gradients_separate").on(Basis.CHECKED),)


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained PyTorch model. `released` holds the parameters after the steps in `releases`, by step.

    `run` is the run as it was executed, including its arithmetic. `private` is False if the noise came from a seed.
    `releases` records what else was written, shown or logged. `every`: every iterate is accounted as released. `caveats`:
    what else voids the guarantee.
    """

    model: Any
    run: Run
    released: dict[int, dict[str, Any]]
    private: bool
    releases: Releases
    assumed: tuple[Fact, ...] = ()
    every: bool = False
    caveats: tuple[Fact, ...] = ()

    def __repr__(self) -> str:
        return summary(self, *map(str, self._caveats), type(self.model).__name__, repr(self.run))

    def _repr_html_(self) -> str:
        model = f"{type(self.model).__name__}, after {self.run.steps} steps"
        return card(alerts(map(str, self._caveats)), headline(model), folded("Run", table(run_rows(self.run))))

    @property
    def _caveats(self) -> tuple[Fact, ...]:
        return (*(() if self.private else (SEEDED,)), *self.caveats, *self.releases.caveats)

    def report(self, delta: float) -> Report:
        """The privacy report of this training and of everything released."""
        places = (*self.released, *self.releases.steps)
        every = self.every or self.releases.show_iterates_of(self.run)
        found = account_by(OF_EVERY_ITERATE if every else CATALOGUE, self.run, delta, places)
        assumed = (*ASSUMED_OF_A_NETWORK, *self.assumed, *self.releases.kept)
        return replace(found, caveats=self._caveats, also_assumed=assumed, basis=() if self._caveats else BASIS)
