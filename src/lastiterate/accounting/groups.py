"""The records of one person, by their indices in the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lastiterate.errors import InvalidInput, checked_count, must_be, shown
from lastiterate.runs.batches import Turns
from lastiterate.runs.process import Process
from lastiterate.runs.run import Run


def checked_group(run: Run, group: Iterable[int]) -> tuple[int, ...]:
    """The indices in order, each once and in the data."""
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
    """The same run for a person with so many records."""
    if not group:
        return run
    if run.user_records != 1:
        raise InvalidInput("group_of_users", field="group", user_records=run.user_records)
    return replace(run, user_records=len(group))


def at_their_places(process: Process, group: tuple[int, ...]) -> Process:
    """Which places of an epoch they have, where that is public; elsewhere it makes no difference which they are."""
    if process.batches.turns is not Turns.FIXED_ORDER or not group:
        return process
    places = np.asarray(process.batches.place(np.array(group)))
    used = places[places < process.batches.per_epoch]
    return replace(process, members=tuple(np.bincount(used, minlength=process.batches.per_epoch).tolist()))
