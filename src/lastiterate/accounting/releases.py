"""Checkpoints that leave the house besides the last iterate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lastiterate.algorithms.process import Process
from lastiterate.errors import InvalidInput, checked_count, shown


def released(process: Process, releases: Iterable[int]) -> Process:
    """The process with these iterates released as well; its end needs no mention."""
    places = checked_releases(releases)
    if places and places[-1] > len(process):
        raise InvalidInput(f"releases must be at most steps = {len(process)}. Got {places[-1]}.")
    return replace(process, releases=tuple(place for place in places if place < len(process)))


def checked_releases(releases: Iterable[int]) -> tuple[int, ...]:
    """After how many steps an iterate is released, in order."""
    try:
        return tuple(sorted({checked_count("releases", place) for place in releases}))
    except TypeError as error:
        raise InvalidInput(f"releases must be a list of numbers of steps. Got {shown(releases):.60}.") from error
