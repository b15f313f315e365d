"""Checkpoints that are released besides the last iterate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lastiterate.errors import checked_count, must_be, shown
from lastiterate.runs.process import Process


def released(process: Process, releases: Iterable[int]) -> Process:
    """The process with these iterates released as well; its end needs no mention."""
    return replace(process, releases=releases_before(len(process), releases))


def releases_before(steps: int, releases: Iterable[int]) -> tuple[int, ...]:
    """Those before the end of so many steps; none may lie beyond it."""
    places = checked_releases(releases)
    if places and places[-1] > steps:
        raise must_be("releases", f"at most steps = {steps}", f"{places[-1]}")
    return tuple(place for place in places if place < steps)


def checked_releases(releases: Iterable[int]) -> tuple[int, ...]:
    """After how many steps an iterate is released, in order."""
    try:
        return tuple(sorted({checked_count("releases", place) for place in releases}))
    except TypeError as error:
        raise must_be("releases", "a list of numbers of steps", f"{shown(releases):.60}") from error
