"""The text of a report: ε, the run, what ε means, the assumptions, and every theorem that was tried."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lastiterate.accounting.describe import described
from lastiterate.accounting.detection import (
    FALSE_POSITIVE_RATE,
    HARDLY_ANY_PROTECTION,
    attack_sentence,
    detection_rates,
)
from lastiterate.algorithms.per_step import each, extremes
from lastiterate.digits import above, below
from lastiterate.privacy.subsampled import subsampled_gaussian
from lastiterate.theorems.assumptions import ONE_PASS
from lastiterate.theorems.features import Feature
from lastiterate.theorems.linear_optimiser import LINEAR
from lastiterate.theorems.own import NOT_OURS, of_the_library
from lastiterate.theorems.theorem import Inapplicable

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
    yield f"epsilon = {above(report.epsilon, 6)} at delta = {report.delta:g} ({report.protected})"
    if report.mu is not None:
        yield f"mu = {above(report.mu, 6)} (Gaussian differential privacy)"
    yield f"Theorem: {report.best.theorem.name} ({report.best.theorem.citation})"
    if not of_the_library(report.best.theorem):
        yield f"This is {NOT_OURS}: its proof has not been checked."
    yield _between(report.sandwich)


def sections(report: Report) -> Iterator[tuple[str, Entries]]:
    """A title and what stands under it, sentences or rows of a table; none is empty."""
    titled: dict[str, Iterable[str] | Iterable[tuple[str, str]]] = {
        "Run": described(report.run),
        "Interpretation": _meaning(report),
        "Changes that lower ε": _alternatives(report),
        "Assumptions you must guarantee": report.assumptions,
        "All guarantees, smallest ε first": _table(report),
        "Theorems that do not apply": refusals(report.inapplicable, report.run.process.update.plain),
    }
    for title, entries in titled.items():
        if listed := list(entries):
            yield title, listed  # type: ignore[misc]


def _between(sandwich: Sandwich) -> str:
    lower, ratio = sandwich.lower, sandwich.ratio
    if not lower.epsilon > 0:
        return "Lower bound: no allowed loss is known with ε > 0 at this δ."
    close = "exact for these assumptions" if ratio < 1 + 1e-6 else f"at most {above(ratio, 3)} times too large"
    found = f"Lower bound: an allowed loss exists with ε ≥ {below(lower.epsilon)}, so this ε is {close}."
    return f"{found} Worst case found: {lower.instance}."


def _meaning(report: Report) -> Iterator[str]:
    if math.isfinite(report.composition) and report.epsilon > 0:
        ratio = report.composition / report.epsilon
        larger = f"ε = {above(report.composition)}, {ratio:.3g} times as large"
        yield f"Releasing every iterate would give {larger if ratio > 1.005 else 'the same ε'}."
    power = float(detection_rates(report, FALSE_POSITIVE_RATE))
    yield attack_sentence(report.run, power)
    if power > HARDLY_ANY_PROTECTION:
        yield f"This is hardly any protection for a {'single record' if report.run.user_records == 1 else 'user'}."
    yield from _advice(report)
    if (poisson := _poisson_epsilon(report)) is not None:
        same = "" if report.run.adjacency.replaces else ", which for Poisson batches is the same as zeroing it out"
        yield (
            f"A Poisson accountant, as in Opacus with a shuffled loader, would print ε = {poisson:.4g} for adding or "
            f"removing one record{same}. That number does not apply: this run draws no Poisson batches."
        )
    if report.delta * report.run.batches.records > 1:
        yield f"δ is above 1/records = {1 / report.run.batches.records:.3g}. A δ this large allows revealing a whole record."


def _alternatives(report: Report) -> Iterator[str]:
    """Other runs: never a claim about this one."""
    if report.alternatives:
        yield (
            "Releasing only the last iterate helps little here. Each line is a different run, with the same neighbouring "
            "data sets, number of steps and noise per step."
        )
    yield from map(str, report.alternatives)


def _advice(report: Report) -> Iterator[str]:
    run = report.run
    if 1 < run.process.contraction < math.inf and run.process.update.plain:
        yield f"Steps may move two iterates apart, which raises ε: {run.process.reason}."
    left = run.steps % run.batches.per_epoch
    if left and run.batches.passes:
        yield (
            f"The run ends {left} step{'s' if left > 1 else ''} into an epoch, whose records are hidden by less noise "
            f"than others. With {run.steps - left} or {run.steps - left + run.batches.per_epoch} steps it would end with "
            "an epoch."
        )


def _poisson_epsilon(report: Report) -> float | None:
    """What a Poisson accountant would print for passes over the data, to which it does not apply."""
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
    """Why theorems do not apply; those that no small change of the run would make apply are only counted."""
    near, counted = refusals_by_kind(inapplicable, plain)
    yield from (f"{one.theorem.name}: {one.because}." for one in near)
    for covered, count in counted.items():
        yield f"{count} theorem{'s cover' if count > 1 else ' covers'} {covered}."


def refusals_by_kind(inapplicable: Sequence[Inapplicable], plain: bool) -> tuple[list[Inapplicable], dict[str, int]]:
    """Theorems whose assumptions the run could meet, and how many cover other batches or steps, or a single pass."""
    covered = [_other_runs(one, plain) for one in inapplicable]
    near = [one for one, other in zip(inapplicable, covered, strict=True) if other is None]
    return near, dict(Counter(other for other in covered if other is not None))


def _other_runs(one: Inapplicable, plain: bool) -> str | None:
    """What the theorem covers, if that is far from the run, whose steps are `plain` or not."""
    groups = {failed.group for failed in one.failed if isinstance(failed, Feature)}
    if "batches" in groups:
        return "other kinds of batches"
    of_filters = LINEAR in one.theorem.assumptions
    if "update" in groups and not of_filters:
        return "plain gradient steps whose last iterate is released"
    if plain and of_filters:
        return "momentum or averages of iterates"
    return "a single pass over the data" if ONE_PASS in one.failed else None


def _table(report: Report) -> Iterator[tuple[str, str]]:
    for guarantee, epsilon in zip(report.guarantees, report.epsilons, strict=True):
        whose = "" if of_the_library(guarantee.theorem) else "; yours, not part of the library"
        yield above(epsilon, 6), f"{guarantee.theorem.name} ({guarantee.theorem.citation}{whose})"


def _section(title: str, entries: Entries) -> Iterator[str]:
    yield from ("", title)
    for one in entries:
        line, indent = (one, "  - ") if isinstance(one, str) else (f"  {one[0]:>12}  {one[1]}", "")
        yield from textwrap.wrap(line, _WIDTH, initial_indent=indent, subsequent_indent="    ")
