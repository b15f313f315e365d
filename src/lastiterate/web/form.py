"""What can be chosen on the page: every kind that is listed, with its arguments, in words and with units."""

from __future__ import annotations

import inspect
from typing import Any

from lastiterate.accounting.plain import finite
from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import INSIDE_UNIT, checked_number
from lastiterate.report.form import ARGUMENTS, KINDS
from lastiterate.runs.batches.passes import DROP, SMALLER
from lastiterate.runs.encode import run_to_dict
from lastiterate.runs.kinds import SECTIONS, Kind
from lastiterate.runs.run import Run

# In the order of the page. How many records a batch has is asked once for all kinds of batches; betas change no ε.
OFFERED = ("loss", "batches", "noise", "domain", "optimizer", "released")
_ASKED_ELSEWHERE = {
    "batches": ("records", "batch_size", "rate", "batches"),
    "noise": ("std", "multiplier"),
    "optimizer": ("betas",),
}
_LEFT_OVER = (SMALLER, DROP)


def start(run: Run, delta: float) -> dict[str, Any]:
    """What the page begins with."""
    return {
        "run": as_form(run),
        "delta": checked_number("delta", delta, INSIDE_UNIT),
        "form": finite(form()),
        "adjacencies": [{"value": one.name.lower(), "label": str(one.unit())} for one in Adjacency],
    }


def as_form(run: Run) -> dict[str, Any]:
    """The run with its length in epochs where these are whole: a batch size may then change without it."""
    epochs, rest = divmod(run.steps, run.batches.per_epoch)
    return {**run_to_dict(run), "steps": run.steps if rest else {"epochs": epochs}}


def form() -> dict[str, Any]:
    """For each section of a run its kinds, in words, and what they take."""
    return {section: [_kind(section, kind) for kind in SECTIONS[section]] for section in OFFERED}


def _kind(section: str, kind: Kind) -> dict[str, Any]:
    asked = [
        one
        for one in inspect.signature(kind.make).parameters.values()
        if one.name not in _ASKED_ELSEWHERE.get(section, ())
    ]
    return {
        "kind": kind.name,
        "label": KINDS.get(kind.name, kind.name),
        "arguments": [_argument(section, one, kind) for one in asked],
    }


def _argument(section: str, one: inspect.Parameter, kind: Kind) -> dict[str, Any]:
    """With the value that a new section starts with, where it needs one."""
    label, unit = ARGUMENTS.get(one.name, (one.name.replace("_", " "), ""))
    usual = None if one.default is one.empty else one.default
    needed = one.default is one.empty or (kind.name == "general" and one.name in kind.arguments)
    return {
        "name": one.name,
        "label": label,
        "unit": unit,
        "usual": usual,
        "yes_or_no": isinstance(usual, bool),
        "text": one.name == "name",
        "choices": _LEFT_OVER if section == "batches" and one.name == "last" else None,
        "needed": needed,
        "first": kind.arguments.get(one.name, 1.0) if needed else None,
    }
