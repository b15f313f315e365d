"""The text of a report: twenty lines that say what was proved and what it rests on, and all details when asked."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lastiterate.accounting.calibrate import Free
from lastiterate.accounting.report import FALSE_POSITIVE_RATE, detection_rates, hiding_helps_little
from lastiterate.curves.subsampled import subsampled_gaussian
from lastiterate.digits import above, below
from lastiterate.facts import Basis, Fact
from lastiterate.numerics.arrays import Floats
from lastiterate.report import english
from lastiterate.report.messages.accounting import NOT_OURS
from lastiterate.runs.noise import EXACT
from lastiterate.runs.per_step import each, extremes, per_step_shown
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import of_the_library
from lastiterate.theorems.features import ONE_PASS, Feature
from lastiterate.theorems.linear_optimiser import LINEAR
from lastiterate.theorems.theorem import Inapplicable

if TYPE_CHECKING:
    from lastiterate.accounting.report import Report

Entries = list[str] | list[tuple[str, str]]

_WIDTH = 110


def summary_text(report: Report) -> Iterator[str]:
    """Yield the lines that `print(report)` shows, 20 at most."""
    yield from map(str, report.caveats)
    first, *others = claim(report)
    yield first
    for line in (*others, *meaning(report), *_in_short(report)):
        yield from textwrap.wrap(line, _WIDTH, subsequent_indent="  ")
    yield "report.details() has the run, every assumption in full, and all theorems."


def details_text(report: Report) -> Iterator[str]:
    """Yield the lines of `report.details()`."""
    yield from map(str, report.caveats)
    first, *others = claim(report)
    yield first
    for line in others:
        yield from textwrap.wrap(line, _WIDTH, subsequent_indent="  ")
    for title, entries in sections(report):
        yield from _section(title, entries)
    if changed := list(_alternatives(report)):
        yield from _section("Changes that lower ε", changed)


def claim(report: Report) -> Iterator[str]:
    """Yield the claim, the theorem and how far the claim can be from the truth, a line each."""
    mu = "" if report.mu is None else f", mu = {above(report.mu, 6)}"
    yield f"epsilon = {above(report.epsilon, 6)} at delta = {report.delta:g} ({report.unit}{mu})"
    theorem = report.best.theorem
    whose = "" if of_the_library(theorem) else f"; {NOT_OURS}: its proof has not been checked"
    yield f"Theorem: {theorem.name} ({theorem.citation}{whose})"
    yield english.lower_bound(report.lower_bound.epsilon, report.epsilon)


def meaning(report: Report) -> Iterator[str]:
    """Yield what ε means: beside the release of every iterate, and for an attacker."""
    if every := english.every_iterate(report.epsilon_all_released, report.epsilon):
        yield every
    yield attack_sentence(report)


def attack_sentence(report: Report) -> str:
    """Return the sentence on what the guarantee leaves to an attacker."""
    detected = (
        float(detection_rates(report.best._proved, FALSE_POSITIVE_RATE)) if math.isfinite(report.epsilon) else 1.0
    )
    return english.attack(report.run.adjacency.name.lower(), report.run.user_records, detected)


def _in_short(report: Report) -> Iterator[str]:
    """Yield where to look for a smaller ε, and the assumptions in few words, by who stands for them."""
    if hiding_helps_little(report):
        yield "Hiding the iterates helps little here: report.alternatives has changes of the run that lower ε."
    for basis, title in ((Basis.ENFORCED, "Enforced"), (Basis.CHECKED, "Checked"), (Basis.PROMISED, "You promise")):
        if facts := [one for one in report.assumptions if one.basis is basis]:
            yield f"{title}: {'; '.join(english.short(one.code, dict(one.values)) for one in facts)}."


def sections(report: Report) -> Iterator[tuple[str, Entries]]:
    """Yield a title and what stands under it, sentences or rows of a table; none is empty."""
    by_basis = {title: _on(report.assumptions, basis) for basis, title in BASES.items()}
    titled: dict[str, Iterable[str] | Iterable[tuple[str, str]]] = {
        "Run": described(report.run),
        "Interpretation": [*meaning(report), *_advice(report), _neighbours(report), _worst_case(report)],
        **by_basis,
        "All guarantees, smallest ε first": _table(report),
        "Theorems that do not apply": refusals(report.inapplicable, report.run.process.update.plain),
    }
    for title, entries in titled.items():
        if listed := [one for one in entries if one]:
            yield title, listed  # type: ignore[misc]


BASES = {
    Basis.PROMISED: "Assumptions you must guarantee",
    Basis.CHECKED: "Checked by a program",
    Basis.ENFORCED: "Enforced by lastiterate when it executed the run",
}


def _on(facts: Iterable[Fact], basis: Basis) -> list[str]:
    return [str(one) for one in facts if one.basis is basis]


def _neighbours(report: Report) -> str:
    return english.definition(report.run.adjacency.name.lower(), report.run.user_records, report.members)


def _worst_case(report: Report) -> str:
    lower = report.lower_bound
    return f"Worst case found, ε = {below(lower.epsilon)}: {lower.instance}." if lower.epsilon > 0 else ""


def _alternatives(report: Report) -> Iterator[str]:
    """Yield alternatives: other runs, never a claim about this one."""
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
            f"The run ends {english.counted(left, 'step')} into an epoch, whose records are hidden by less noise than "
            f"others. With {run.steps - left} or {run.steps - left + run.batches.per_epoch} steps it would end with an "
            "epoch."
        )
    if (poisson := _poisson_epsilon(report)) is not None:
        same = "" if run.adjacency.replaces else ", which for Poisson batches is the same as zeroing it out"
        yield (
            f"A Poisson accountant, as in Opacus with a shuffled loader, would print ε = {poisson:.4g} for adding or "
            f"removing one record{same}. That number does not apply: this run draws no Poisson batches."
        )
    if report.delta * run.batches.records > 1:
        yield f"δ is above 1/records = {1 / run.batches.records:.3g}. A δ this large allows revealing a whole record."


def _poisson_epsilon(report: Report) -> float | None:
    """ε that a Poisson accountant, which does not apply, would print for passes over the data; None if it has none."""
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
    """Yield why theorems do not apply; those that no small change of the run would help are only counted."""
    near, counted = refusals_by_kind(inapplicable, plain)
    yield from (f"{one.theorem.name}: {one.because}." for one in near)
    for covered, count in counted.items():
        yield f"{count} theorem{'s cover' if count > 1 else ' covers'} {covered}."


def refusals_by_kind(inapplicable: Sequence[Inapplicable], plain: bool) -> tuple[list[Inapplicable], dict[str, int]]:
    """Return theorems that a small change would help, and how many cover other batches, steps or a single pass."""
    covered = [_other_runs(one, plain) for one in inapplicable]
    near = [one for one, other in zip(inapplicable, covered, strict=True) if other is None]
    return near, dict(Counter(other for other in covered if other is not None))


def _other_runs(one: Inapplicable, plain: bool) -> str | None:
    """Return what the theorem covers if that is far from the run, whose steps are `plain` or not; else None."""
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


# Descriptions of runs.


def described(run: Run) -> list[str]:
    """Describe the run line by line."""
    process = run.process
    lines = [
        f"{run.steps} steps{_epochs(run)}, {run.batches.described}",
        f"loss: {_loss(run)}",
        f"step size {per_step_shown(run.step_size)}, noise {run.noise.described}",
        f"domain: {run.domain.described}",
        f"per step, on the iterate: sensitivity {_range(process.sensitivity)}, noise {_range(process.noise)}"
        + (f", Lipschitz constant {_range(process.lipschitz)}" if process.update.plain else " (for a plain step)"),
    ]
    if not process.update.plain:
        lines.insert(3, f"optimiser: {process.update.described}")
    if run.prox is not None:
        lines.insert(3, f"proximal map of {run.prox}")
    if run.weight_decay:
        lines.insert(3, f"weight decay {run.weight_decay:g}")
    if run.arithmetic != EXACT:
        lines.append(
            f"floating-point rounding: the sensitivity is multiplied by up to {run.arithmetic.factor:.9g}, and rounding of "
            f"iterates adds {2 * run.arithmetic.displacement:.2g} to mu; both are included in epsilon"
        )
    if run.prior_mu:
        lines.append(
            f"released before training, about the same records: mu = {run.prior_mu:g} of Gaussian differential "
            "privacy, included in epsilon"
        )
    if run.user_records > 1:
        lines.append(f"privacy unit: one user with up to {run.user_records} records, all included in epsilon")
    return lines


def _epochs(run: Run) -> str:
    per_epoch = run.batches.per_epoch
    if per_epoch == 1:
        return ""
    whole, rest = divmod(run.steps, per_epoch)
    return f" ({whole} epochs of {per_epoch}{f' and {rest} more' if rest else ''})"


def _loss(run: Run) -> str:
    loss = run.loss
    strongly = run.convex and (loss.l2 > 0 or (loss.curvature > 0 and run.clip is None))
    shape = "strongly convex" if strongly else "convex" if run.convex else "not convex"
    clip = "" if run.clip is None else f", clipped at {per_step_shown(run.clip)}"
    l2 = f", l2 {loss.l2:g}" if loss.l2 else ""
    return f"{loss.described}{clip}{l2}: {shape}"


def _range(values: Floats) -> str:
    low, high = extremes(values)
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


def calibrated(before: Run, run: Run, free: Free, epsilon: float) -> str:
    """Return the sentence on what was changed of a run to meet a target."""
    new, old = _free(run, free), _free(before, free)
    if new == old:
        return f"Nothing has to change to meet ε = {epsilon:g}: {new}."
    return f"To meet ε = {epsilon:g}: {new}, instead of {old.rpartition(' ')[2]}."


def _free(run: Run, free: Free) -> str:
    """Describe the setting that a calibration may change, with its value."""
    if free is Free.NOISE:
        called = {"std": "standard deviation of the noise", "multiplier": "noise multiplier"}[run.noise.size]
        return f"{called} {per_step_shown(getattr(run.noise, run.noise.size))}"
    if free is Free.STEPS:
        whole = run.steps % run.batches.per_epoch == 0
        return f"epochs {run.steps // run.batches.per_epoch}" if whole else f"steps {run.steps}"
    if free is Free.BATCH_SIZE:
        return f"batch size {run.batches.divisor:.6g}"
    return f"step size {per_step_shown(run.step_size)}"
