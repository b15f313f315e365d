"""Trainings that die in the middle of a step."""

from __future__ import annotations

import pytest

from lastiterate.training import steps as optimised
from lastiterate.training import steps as walk


class Killed(Exception):
    """In place of a power cut."""


def stop_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """The next training dies in this step, after its noise was drawn."""
    for kind in (walk.TrainingStep, optimised.OptimisedStep):
        _cut(monkeypatch, kind, steps)


def _cut(monkeypatch: pytest.MonkeyPatch, kind: type[walk.TrainingStep], steps: int) -> None:
    whole = kind.__call__

    def cut(self, step, *rest):  # type: ignore[no-untyped-def]
        found = whole(self, step, *rest)
        if step == steps:
            monkeypatch.setattr(kind, "__call__", whole)
            raise Killed
        return found

    monkeypatch.setattr(kind, "__call__", cut)
