"""The page that a report prints: for a privacy officer, from the number down to what has to be believed."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lastiterate.accounting.describe import described
from lastiterate.accounting.detection import HARDLY_ANY_PROTECTION, detection_rates
from lastiterate.algorithms.per_step import each, extremes
from lastiterate.privacy.subsampled import subsampled_gaussian
from lastiterate.theorems.assumptions import KindOfBatches
from lastiterate.theorems.theorem import PLAIN_STEPS, Inapplicable, KindOfUpdate

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report
    from lastiterate.accounting.sandwich import Sandwich

Entries = list[str] | list[tuple[str, str]]

_WIDTH = 110


def page(report: Report) -> Iterator[str]:
    """The lines."""
    yield from report.caveats
    *first, between = claim(report)
    yield from (*first, *textwrap.wrap(between, _WIDTH, subsequent_indent="  "))
    for title, entries in sections(report):
        yield from _section(title, entries)


def claim(report: Report) -> Iterator[str]:
    """What is claimed, by which theorem, and how far it can be from the truth: a line each."""
    yield f"epsilon = {report.epsilon:.6g} at delta = {report.delta:g} ({report.protected})"
    if report.mu is not None:
        yield f"mu = {report.mu:.6g} (Gaussian differential privacy)"
    yield f"by {report.best.theorem.name}: {report.best.theorem.citation}"
    yield _between(report.sandwich)


def sections(report: Report) -> Iterator[tuple[str, Entries]]:
    """A title and what stands under it, sentences or rows of a table; none is empty."""
    titled: dict[str, Iterable[str] | Iterable[tuple[str, str]]] = {
        "What was run": described(report.run),
        "What it means": _meaning(report),
        "What would be cheaper": _alternatives(report),
        "All guarantees": _table(report),
        "What does not apply": refusals(report.inapplicable, report.run.process.update.plain),
        "What you have to stand for": report.assumptions,
    }
    for title, entries in titled.items():
        if listed := list(entries):
            yield title, listed  # type: ignore[misc]


def _between(sandwich: Sandwich) -> str:
    lower, ratio = sandwich.lower, sandwich.ratio
    if not lower.epsilon > 0:
        return "no lower bound: either no instance is known, or none costs anything at this delta"
    exact = "exact" if ratio < 1 + 1e-6 else f"{ratio:.4g} times less"
    return f"some loss with these facts costs at least {lower.epsilon:.6g} ({exact}): {lower.instance}"


def _meaning(report: Report) -> Iterator[str]:
    if math.isfinite(report.composition) and report.epsilon > 0:
        ratio = report.composition / report.epsilon
        less = f", {ratio:.3g} times as much" if ratio > 1.005 else ", no more than this"
        yield f"releasing every iterate would cost epsilon = {report.composition:.6g}{less}"
    power = float(detection_rates(report, 0.01))
    changed, whose = report.run.adjacency.changed, "single record"
    if report.run.user_records == 1:
        asked, absent, present = f"a record was {changed}", "it was not", "it was"
    else:
        whose, asked = "user", f"the {report.run.user_records} records of a user were {changed}"
        absent, present = "they were not", "they were"
    yield (
        f"whoever wants to tell whether {asked}, and is wrong in 1% of the cases "
        f"where {absent}, finds out in at most {100 * power:.3g}% of those where {present}"
    )
    if power > HARDLY_ANY_PROTECTION:
        yield f"that is hardly any protection for a {whose}"
    yield from _advice(report)
    if (poisson := _poisson_epsilon(report)) is not None:
        same = "" if report.run.adjacency.replaces else " (which with such batches is the same as zeroed out)"
        yield (
            f"an accountant for Poisson batches (as in Opacus with a shuffled loader) would print {poisson:.4g}, for "
            f"one record added or removed{same}: no such batches were drawn, so this number says nothing about this run"
        )
    if report.delta * report.run.batches.records > 1:
        yield f"delta is larger than 1/records = {1 / report.run.batches.records:.3g}: it allows to betray a record"


def _alternatives(report: Report) -> Iterator[str]:
    """Other runs: never a claim about this one."""
    if report.alternatives:
        yield (
            "hiding all iterates but the last brings little here; each of these is another run, with the same neighbours, "
            "steps and noise per step"
        )
    yield from map(str, report.alternatives)


def _advice(report: Report) -> Iterator[str]:
    run = report.run
    if 1 < run.process.contraction < math.inf and run.process.update.plain:
        yield f"steps move iterates apart, which costs privacy: {run.process.reason}"
    left = run.steps % run.batches.per_epoch
    if left and run.batches.passes:
        yield (
            f"the run ends {left} step{'s' if left > 1 else ''} into an epoch, whose records are hidden by less noise "
            f"than others; {run.steps - left} or {run.steps - left + run.batches.per_epoch} steps would end with one"
        )


def _poisson_epsilon(report: Report) -> float | None:
    """What a Poisson accountant would say of passes over the data, where it does not apply."""
    process, batches = report.run.process, report.run.batches
    if not batches.passes or batches.per_epoch == 1 or report.run.user_records > 1:
        return None
    low, high = extremes(each(np.divide, process.sensitivity, process.noise))
    if high > low * (1 + 1e-9):
        return None
    one_record = high / 2 if process.adjacency.replaces else high
    step = subsampled_gaussian(mu=one_record, inclusion=1 / batches.per_epoch)
    return float(step.compose(len(process)).epsilon(report.delta))


def refusals(inapplicable: Sequence[Inapplicable], plain: bool) -> Iterator[str]:
    """Theorems about other kinds of batches, or of steps than the run's, which are `plain` or not, are only counted."""
    lacking, steps, other = refusals_by_kind(inapplicable, plain)
    yield from map(str, lacking)
    if steps:
        which = "momentum or averages of iterates" if plain else "plain gradient steps whose last iterate is released"
        yield f"{len(steps)} theorems are about {which}"
    if other:
        yield f"{len(other)} theorems are about other kinds of batches"


def refusals_by_kind(inapplicable: Sequence[Inapplicable], plain: bool) -> tuple[list[Inapplicable], ...]:
    """Theorems that lack something, those about other kinds of steps, and those about other kinds of batches."""
    other = [one for one in inapplicable if any(isinstance(failed, KindOfBatches) for failed in one.failed)]
    steps = [one for one in inapplicable if one not in other and _of_other_steps(one, plain)]
    return [one for one in inapplicable if one not in other and one not in steps], steps, other


def _of_other_steps(one: Inapplicable, plain: bool) -> bool:
    """Whether it is about steps of another kind than the run has, and not of the same kind with something missing."""
    return any(isinstance(failed, KindOfUpdate) and (plain or failed is PLAIN_STEPS) for failed in one.failed)


def _table(report: Report) -> Iterator[tuple[str, str]]:
    for guarantee, epsilon in zip(report.guarantees, report.epsilons, strict=True):
        yield f"{epsilon:.6g}", f"{guarantee.theorem.name} ({guarantee.theorem.citation})"


def _section(title: str, entries: Entries) -> Iterator[str]:
    yield from ("", title)
    for one in entries:
        line, indent = (one, "  - ") if isinstance(one, str) else (f"  {one[0]:>12}  {one[1]}", "")
        yield from textwrap.wrap(line, _WIDTH, initial_indent=indent, subsequent_indent="    ")
