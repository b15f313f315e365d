"""What a guarantee of a run rests on, as facts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import Smooth
from lastiterate.runs.per_step import extremes
from lastiterate.runs.run import Run


def promises(run: Run, releases: tuple[int, ...], members: tuple[int, ...] = ()) -> tuple[Fact, ...]:
    """The assumptions of a guarantee, with those on what is released first.

    `members`: the records of the person whom the guarantee is for, if they were named.
    """
    return tuple(_promises(run, releases, members))


def _promises(run: Run, releases: tuple[int, ...], members: tuple[int, ...]) -> Iterator[Fact]:
    if members:
        yield fact("one_person", records=members)
    elif run.user_records > 1:
        yield fact("user_records", at_most=run.user_records)
    beforehand = run.prior_mu > 0
    if beforehand:
        yield fact("released_before", mu=run.prior_mu)
    released = {"released": run.released.kind, "parameter": run.released.parameter}
    yield fact("only_released", **released, after=releases, beforehand=beforehand)
    yield fact("start_independent", beforehand=beforehand)
    yield fact("batches", kind=run.batches.kind)
    yield fact("noise")
    yield from run.batches.also_promised(run.noise.on_sum)
    if not run.process.update.plain:  # what makes an optimiser post-processing of noisy gradients
        yield fact("optimizer_sees_noisy_gradients")
        yield fact("gradients_bounded_everywhere")
        yield fact("batches_not_adaptive")
        yield fact("schedules_public")
        yield fact("no_batch_statistics")
    yield from _of_gradients(run)
    yield from run.loss.promises
    loss = run.loss
    if loss.declared and loss.curvature >= 0 and math.isfinite(loss.smoothness):
        of = "potential" if run.noise.of_a_potential and run.batches.records == 1 else "record"
        yield fact("convex", modulus=loss.curvature, of=of, before_clipping=run.clip is not None)
    if _pushes_see_features(run):
        yield fact("record_unchanged")
    if run.loss.l2 or run.weight_decay:
        yield fact("l2_in_full", after_clipping=run.clip is not None)
        yield fact("start_norm", at_most=run.start_norm)
    if math.isfinite(run.domain.diameter):
        yield fact("projected")


def _of_gradients(run: Run) -> Iterator[Fact]:
    if run.clip is not None:
        yield run.loss.clip_promise(run.clip)
    elif math.isfinite(extremes(run.process.sensitivity)[1]):
        if run.adjacency.replaces:
            yield fact("gradient_change", at_most=run.loss.gradient_sensitivity)
        else:
            yield fact("gradient_norm", at_most=run.loss.gradient_bound, before_clipping=False)


def _pushes_see_features(run: Run) -> bool:
    """Whether noise before a turn may count, and the push sees the iterate through the record's features alone."""
    several = run.batches.passes and run.batches.per_epoch > 1 and run.optimizer.linear is not None
    return several and run.loss.linear and isinstance(run.process.smooth, Smooth)
