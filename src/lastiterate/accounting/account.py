"""`li.account`: the least provable ε of a run, and `li.account_each`: that of every single record."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lastiterate.accounting.report import Ranked, Report
from lastiterate.certificate.claims import at_their_places, checked_group, checked_releases, released, run_for
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.transformed import ChosenSlack, as_computed, with_slack
from lastiterate.display import card, folded, headline, preformatted, summary
from lastiterate.errors import (
    INSIDE_UNIT,
    InvalidInput,
    Unavailable,
    checked_count,
    checked_number,
    must_be,
    shown,
    worded,
)
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.normal_gap import threshold_above
from lastiterate.numerics.rounding import up
from lastiterate.plots import draw_records
from lastiterate.progress import tracked
from lastiterate.runs.batches import Turns
from lastiterate.runs.named import names_arguments
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run, checked_run
from lastiterate.theorems.catalogue import checked_theorems, of_the_library
from lastiterate.theorems.evidence import NoFiniteBound
from lastiterate.theorems.prepayment import PREPAYMENT, own_prepaid_mus
from lastiterate.theorems.shift_engine import own_mus
from lastiterate.theorems.theorem import Guarantee, Inapplicable, Theorem

_ROUNDING = 1e-9  # of both sides of a sandwich


@names_arguments
def account(
    run: Run,
    delta: float,
    releases: Iterable[int] = (),
    group: Iterable[int] = (),
    theorems: Iterable[Theorem] | None = None,
) -> Report:
    """Smallest provable ε for releasing the final iterate, plus any checkpoints in `releases`.

    Tries every catalogued theorem; the smallest ε at `delta` comes first. `releases`: the steps after which a checkpoint is
    released as well. `group`: the indices of all records of one person, to get a guarantee for that person. With batches in
    a fixed order it matters which records they are; otherwise only how many.

    `theorems`: what is tried instead of the catalogue, such as [*li.theorems.CATALOGUE, MINE] with a theorem of your own.
    """
    report = account_by(checked_theorems(theorems), run, delta, releases, group)
    # What the library proves is above every instance; of a theorem that somebody brings along nobody knows.
    if not of_the_library(report.best.theorem) and report.lower_bound.epsilon > report.epsilon * (1 + _ROUNDING):
        raise InvalidInput(
            "theorem_false",
            field="theorems",
            theorem=report.best.theorem.name,
            epsilon=report.epsilon,
            least=report.lower_bound.epsilon,
            instance=report.lower_bound.instance,
        )
    return report


def account_by(
    theorems: Sequence[Theorem], run: Run, delta: float, releases: Iterable[int] = (), group: Iterable[int] = ()
) -> Report:
    """Account for a run with these theorems instead of the catalogue."""
    target, members = checked_number("delta", delta, INSIDE_UNIT), checked_group(checked_run(run), group)
    run = run_for(run, members)
    process = at_their_places(released(run.process, releases), members)
    answers = [theorem.apply(process) for theorem in tracked(theorems, "theorems")]
    refused = tuple(one for one in answers if isinstance(one, Inapplicable))
    if len(refused) == len(answers):
        counts = Counter(reason for answer in refused for reason in answer.sentences)
        reason, count = max(counts.items(), key=lambda pair: (pair[1], -len(pair[0]), pair[0]))  # the most frequent
        raise Unavailable("no_theorem_applies", reason=reason, count=count, tried=len(refused))
    ranked = [Ranked(one.epsilon(target), one) for one in answers if isinstance(one, Guarantee)]
    for one in ranked:
        if math.isnan(one.epsilon):
            raise Unavailable("theorem_says_nan", theorem=one.guarantee.theorem.name)
    return Report(run, target, process.releases, tuple(sorted(ranked, key=Ranked.rank)), refused, members=members)


@dataclass(frozen=True, eq=False)
class RecordReport:
    """ε of each record, by its position in the data. `batch_epsilons`: one ε per batch, shared by its records."""

    run: Run
    delta: float
    batch_epsilons: Floats
    for_everybody: Report

    @cached_property
    def epsilons(self) -> Floats:
        """ε of every record, in the order of the data."""
        return np.asarray(self.batch_epsilons[self.run.batches.place(np.arange(self.run.batches.records))])

    @property
    def worst(self) -> float:
        """The largest ε: the guarantee that holds for everybody."""
        return float(self.batch_epsilons.max())

    @property
    def certificate(self) -> dict[str, Any]:
        """The proof of the guarantee for everybody, for `lastiterate verify`."""
        return self.for_everybody.certificate

    def save_certificate(self, path: str | Path) -> None:
        """Write the certificate as JSON."""
        self.for_everybody.save_certificate(path)

    def save(self, path: str | Path, **options: Any) -> None:
        """Write the report for everybody, as `Report.save` does."""
        self.for_everybody.save(path, **options)

    def epsilon_of(self, record: int) -> float:
        """ε of the record with this index, counted from 0."""
        index, count = checked_count("record", record, least=0), self.run.batches.records
        if index >= count:
            raise must_be("record", f"from 0 to {count - 1}", shown(record))
        return float(self.batch_epsilons[self.run.batches.place(index)])

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Any:
        """ε against the batch. Drawn on `ax`, or on a new figure; written to `path` if given. Returns matplotlib axes."""
        return draw_records(self.batch_epsilons.tolist(), self.delta, path, ax)

    def __repr__(self) -> str:
        low, count = float(self.batch_epsilons.min()), len(self.batch_epsilons)
        return summary(self, f"epsilon from {low:.4g} to {self.worst:.4g}", f"delta={self.delta:g}", f"{count} batches")

    def _repr_html_(self) -> str:
        return card(headline(str(self)), folded("For everybody", preformatted(str(self.for_everybody))))

    def __str__(self) -> str:
        low, middle = float(self.batch_epsilons.min()), float(np.median(self.batch_epsilons))
        count = len(self.batch_epsilons)
        return worded("epsilons_of_records", delta=self.delta, least=low, most=self.worst, median=middle, batches=count)


def account_each(run: Run, delta: float, releases: Iterable[int] = ()) -> RecordReport:
    """The ε of every single record, given its position in the data.

    A record used early in a pass is hidden by all the noise that follows. No record's ε is above that of `li.account`, which
    holds for all. With random or shuffled batches all records have the same ε.
    """
    if checked_run(run).user_records != 1:
        raise InvalidInput("single_records_accounted", field="user_records", got=f"{run.user_records}")
    target = checked_number("delta", delta, INSIDE_UNIT)
    places = checked_releases(releases)
    report = account(run, target, places)
    process = released(run.process, places)
    if run.batches.turns is not Turns.FIXED_ORDER or not process.update.plain:
        return RecordReport(run, target, np.array([report.epsilon]), report)
    found = np.minimum(_own_epsilons(process, target), report.epsilon)
    unused = _epsilons(np.full(1 if run.batches.unused else 0, run.prior_mu), target)  # no step uses them
    return RecordReport(run, target, np.append(found, unused), report)


def _own_epsilons(process: Process, delta: float) -> Floats:
    """ε of the records of each batch: by the shift engine, and by prepayment where it applies."""
    try:
        found = _epsilons(_with_before(process, own_mus(process) + 2 * process.displacement), delta)
    except NoFiniteBound:
        found = np.full(process.batches.per_epoch, np.inf)
    if PREPAYMENT.failures(process):
        return found
    slack = ChosenSlack.exception(ChosenSlack.power(math.log(delta)))
    mus = _with_before(process, own_prepaid_mus(process, slack))
    notions = [with_slack(GaussianDP(mu), slack) for mu in mus.tolist()]
    return np.minimum(found, [float(as_computed(one, process.displacement).epsilon(delta)) for one in notions])


def _with_before(process: Process, mus: Floats) -> Floats:
    """Compose with what was released before training, which may be about any record."""
    return up(np.hypot(mus, process.prior_mu), operations=2) if process.prior_mu else mus


def _epsilons(mus: Floats, delta: float) -> Floats:
    return np.where(mus > 0, threshold_above(np.log(delta), np.maximum(mus, 1e-150)), 0.0)
