"""Runs with a smaller ε, for a run whose ε is nearly that of releasing every iterate.

Each alternative changes the run in one respect, and keeps its neighbours, its number of steps and its noise per step.
Another adjacency is another claim, and no alternative.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from lastiterate.accounting.account import account_by
from lastiterate.accounting.report import Report, hiding_helps_little
from lastiterate.digits import above
from lastiterate.display import summary
from lastiterate.errors import LastIterateError, worded
from lastiterate.runs.batches import RARE, Batches
from lastiterate.runs.batches.poisson import drawn_otherwise
from lastiterate.runs.domains import Ball
from lastiterate.runs.kinds import kind_named
from lastiterate.runs.optimizers import PLAIN
from lastiterate.runs.per_step import per_step_shown, times
from lastiterate.runs.run import Run
from lastiterate.theorems.block_mixing import BLOCK_MIXING
from lastiterate.theorems.catalogue import CATALOGUE, OF_EVERY_ITERATE
from lastiterate.theorems.participation import HIDDEN_PARTICIPATION
from lastiterate.theorems.reflection import REFLECTION
from lastiterate.theorems.theorem import Theorem

_WORTH_IT = 0.8  # of ε, at most, is left of it by what is worth a line
_MANY_STEPS, _MUCH_WORK = 50_000, 5_000_000  # steps, and steps times places: beyond, only compositions are quick
_SLOW = (REFLECTION, BLOCK_MIXING, HIDDEN_PARTICIPATION)
_SHORTER_STEPS = (1.0, 0.25, 1 / 16, 1 / 64)
_DECAYS = (1e-3, 1e-2, 1e-1)  # of the smoothness
_RADII = (10.0, 3.0, 1.0)  # times the length over which a gradient can change by as much as it is long

Change = tuple[str, dict[str, Any], Run]  # its code, the values of its sentence, and the changed run


@dataclass(frozen=True)
class Alternative:
    """A run that differs in one `change` (a code), and its `epsilon` for the same neighbours, δ and releases."""

    change: str
    values: dict[str, Any]
    run: Run
    epsilon: float
    theorem: str

    def __repr__(self) -> str:
        return summary(self, repr(self.change), f"epsilon={above(self.epsilon)}", f"by {self.theorem!r}")

    def __str__(self) -> str:
        return f"{worded(self.change, **self.values)}: ε = {above(self.epsilon)} ({self.theorem})"


def cheaper(report: Report) -> tuple[Alternative, ...]:
    """Return changed runs, the smallest ε first; none where releasing only the last iterate already helps."""
    if not hiding_helps_little(report):
        return ()
    drawn = (_drawn(report.run, batches) for batches in drawn_otherwise(report.run.batches))
    ways = [*drawn, *(changes(report.run) for changes in _WAYS)]
    found = [_mildest(report, changes) for changes in ways]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.epsilon))


def _mildest(report: Report, changes: Iterator[Change]) -> Alternative | None:
    """Return the first alternative that is worth it, of changes that go farther and farther; None if none is."""
    for change in changes:
        alternative = _priced(report, *change)
        if alternative is not None and alternative.epsilon <= _WORTH_IT * report.epsilon:
            return alternative
    return None


def _priced(report: Report, change: str, values: dict[str, Any], run: Run) -> Alternative | None:
    """Return a changed run with its ε; None where no theorem applies."""
    try:
        asked = [one for one in _quick(run, report.run) if one in report.theorems]
        found = account_by(asked, run, report.delta, report.releases) if asked else None
    except LastIterateError:
        return None
    return None if found is None else Alternative(change, values, run, found.epsilon, found.best.theorem.name)


def _quick(run: Run, before: Run) -> tuple[Theorem, ...]:
    """Return the theorems that are quick; on a new domain, those as well that need one."""
    if run.steps > _MANY_STEPS or run.steps * run.batches.per_epoch > _MUCH_WORK:
        return OF_EVERY_ITERATE
    slow = (BLOCK_MIXING, HIDDEN_PARTICIPATION) if run.domain != before.domain else _SLOW
    return tuple(one for one in CATALOGUE if one not in slow)


def _drawn(run: Run, batches: Batches) -> Iterator[Change]:
    """Yield the run with batches that are drawn otherwise, as large and as often."""
    try:
        changed = replace(run, batches=batches, steps=run.steps)
    except LastIterateError:  # no such neighbours, or no such noise
        return
    yield "with_batches", {"batches": changed.batches.described}, changed


def _without_optimizer(run: Run) -> Iterator[Change]:
    """Yield the run with plain steps: momentum keeps theorems on hidden states away, or makes them weaker."""
    if not run.optimizer.plain:
        yield "with_plain_steps", {"optimizer": run.optimizer.described}, replace(run, optimizer=PLAIN)


def _shorter_steps(run: Run) -> Iterator[Change]:
    """Yield shorter steps that move iterates apart hardly or not at all, with as much noise beside the gradients."""
    if not (math.isfinite(run.loss.smoothness) and run.process.contraction > 1):
        return
    share = run.batches.usual_sizes(math.log(RARE)).largest_share
    limit = 2 / (run.loss.smoothness * share + run.decay)
    longest = run.step_size if isinstance(run.step_size, float) else max(run.step_size)
    first = min(1.0, 0.99 * limit / longest) if run.convex else 1.0
    for factor in _SHORTER_STEPS:
        if first * factor < 1:
            shorter = times(run.step_size, first * factor)
            typed = float(f"{shorter:.3g}") if isinstance(shorter, float) else shorter
            changed = replace(run, step_size=typed)
            changed = changed.with_noise(_beside_gradients(run) / _beside_gradients(changed))
            yield "with_step_size", {"step_size": per_step_shown(changed.step_size)}, changed


def _beside_gradients(run: Run) -> float:
    """Noise over sensitivity at the first step, wherever the noise enters."""
    return float(run.process.noise[0] / run.process.sensitivity[0])


def _clipped(run: Run) -> Iterator[Change]:
    """Yield the run clipped at half of the norm that gradients can have, with the same noise."""
    longest = min(run.loss.gradient_bound, run.loss.gradient_sensitivity)
    kind = kind_named("loss", run.loss.kind)
    if run.clip is not None or kind is None or not math.isfinite(longest):
        return
    try:
        clipped = kind.make(**run.loss.arguments, clip=longest / 2)
    except (LastIterateError, TypeError):  # it cannot be clipped
        return
    yield "with_clipping", {"clip": longest / 2}, replace(run, loss=clipped)


def _decaying(run: Run) -> Iterator[Change]:
    """Yield the run with weight decay, which makes steps contract that do not move iterates apart."""
    if run.decay or run.process.contraction > 1:
        return
    for part in _DECAYS:
        decay = part * run.loss.smoothness
        if decay > 0:
            yield "with_weight_decay", {"decay": decay}, replace(run, weight_decay=decay)


def _bounded(run: Run) -> Iterator[Change]:
    """Yield the run projected on balls: iterates that cannot leave one meet again."""
    loss, bound = run.loss, min(run.loss.gradient_bound, run.loss.gradient_sensitivity)
    if math.isfinite(run.domain.diameter) or run.process.contraction > 1:
        return
    scale = bound / loss.smoothness if loss.smoothness > 0 else math.inf
    for factor in _RADII:
        if math.isfinite(scale):
            radius = factor * scale
            yield "with_projection", {"radius": radius}, replace(run, domain=Ball(radius))


_WAYS = (_without_optimizer, _shorter_steps, _clipped, _decaying, _bounded)
