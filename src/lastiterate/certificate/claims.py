"""What a claim is about: which iterates are released, and whose records it protects; and the facts that it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from lastiterate.errors import InvalidInput, checked_count, must_be, shown
from lastiterate.facts import Fact, fact
from lastiterate.kernel.prepaid import Smooth
from lastiterate.runs.batches import Turns
from lastiterate.runs.per_step import extremes
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run


def released(process: Process, releases: Iterable[int]) -> Process:
    """Return the process with the iterates after these steps released as well; its end needs no mention."""
    return replace(process, releases=releases_before(len(process), releases))


def releases_before(steps: int, releases: Iterable[int]) -> tuple[int, ...]:
    """Return the releases before the end of a run of `steps` steps; one beyond the end is an error."""
    places = checked_releases(releases)
    if places and places[-1] > steps:
        raise must_be("releases", f"at most steps = {steps}", f"{places[-1]}")
    return tuple(place for place in places if place < steps)


def checked_releases(releases: Iterable[int]) -> tuple[int, ...]:
    """Return the steps after which an iterate is released, in order and each once, or raise an error."""
    try:
        return tuple(sorted({checked_count("releases", place) for place in releases}))
    except TypeError as error:
        raise must_be("releases", "a list of numbers of steps", f"{shown(releases):.60}") from error


def checked_group(run: Run, group: Iterable[int]) -> tuple[int, ...]:
    """Return the indices of the records of one person in order, or raise an error: each once, and in the data."""
    try:
        given = [checked_count("group", record, least=0) for record in group]
    except TypeError as error:
        raise must_be("group", "a list of indices of records", f"{shown(group):.60}") from error
    members = tuple(sorted(set(given)))
    if len(members) < len(given):
        raise InvalidInput("record_named_twice", field="group")
    if members and members[-1] >= run.batches.records:
        raise must_be("group", f"indices of records, from 0 to {run.batches.records - 1}", f"{members[-1]}")
    return members


def run_for(run: Run, group: tuple[int, ...]) -> Run:
    """Return the run for a user with as many records as the group has; the run itself if no group is named."""
    if not group:
        return run
    if run.user_records != 1:
        raise InvalidInput("group_of_users", field="group", user_records=run.user_records)
    return replace(run, user_records=len(group))


def at_their_places(process: Process, group: tuple[int, ...]) -> Process:
    """Return the process with the group's places in an epoch, where the order is public; else it does not matter which."""
    if process.batches.turns is not Turns.FIXED_ORDER or not group:
        return process
    places = np.asarray(process.batches.place(np.array(group)))
    used = places[places < process.batches.per_epoch]
    return replace(process, members=tuple(np.bincount(used, minlength=process.batches.per_epoch).tolist()))


def promises(run: Run, releases: tuple[int, ...], members: tuple[int, ...] = ()) -> tuple[Fact, ...]:
    """Return the assumptions of a guarantee, with those on what is released first.

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
    if run.clip is not None:
        yield run.loss.clip_promise(run.clip)
    elif math.isfinite(extremes(run.process.sensitivity)[1]):
        if run.adjacency.replaces:
            yield fact("gradient_change", at_most=run.loss.gradient_sensitivity)
        else:
            yield fact("gradient_norm", at_most=run.loss.gradient_bound, before_clipping=False)
    yield from run.loss.promises
    loss = run.loss
    if loss.declared and loss.curvature >= 0 and math.isfinite(loss.smoothness):
        of = "potential" if run.noise.of_a_potential and run.batches.records == 1 else "record"
        yield fact("convex", modulus=loss.curvature, of=of, before_clipping=run.clip is not None)
    # Noise before a turn may count where the push sees the iterate through the record's features alone.
    several = run.batches.passes and run.batches.per_epoch > 1 and run.optimizer.linear is not None
    if several and run.loss.linear and isinstance(run.process.smooth, Smooth):
        yield fact("record_unchanged")
    if run.loss.l2 or run.weight_decay:
        yield fact("l2_in_full", after_clipping=run.clip is not None)
        yield fact("start_norm", at_most=run.start_norm)
    if math.isfinite(run.domain.diameter):
        yield fact("projected")
