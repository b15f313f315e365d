"""The form of the page: every listed kind, with its arguments in words and with units."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from lastiterate.certificate.replay import json_safe
from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import INSIDE_UNIT, checked_number
from lastiterate.parts import public_name
from lastiterate.report.page import ARGUMENTS, KINDS
from lastiterate.runs.batches.passes import DROP, SMALLER
from lastiterate.runs.files import run_to_dict
from lastiterate.runs.kinds import SCHEDULES, SECTIONS, Kind
from lastiterate.runs.optimizers import OtherOptimizer
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
    """Return what the page begins with: a run as a form, δ, and all choices."""
    return {
        "run": as_form(run),
        "delta": checked_number("delta", delta, INSIDE_UNIT),
        "form": json_safe(form()),
        "adjacencies": [{"value": one.name.lower(), "label": str(one.unit())} for one in Adjacency],
    }


def as_form(run: Run) -> dict[str, Any]:
    """Return the run as a form, in epochs if these are whole, so that a batch size may change without them."""
    epochs, rest = divmod(run.steps, run.batches.per_epoch)
    return {**run_to_dict(run), "steps": run.steps if rest else {"epochs": epochs}}


def form() -> dict[str, Any]:
    """Return for each section of a run its kinds, in words, with their arguments."""
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
    """Describe an argument, with a value for new sections where it has no default."""
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


# Runs as Python code.


_ORDER = ("loss", "batches", "step_size", "noise", "steps")  # that of li.Run; what else there is follows
_USUAL = {"weight_decay": 0.0, "domain": {"kind": "unbounded"}}


def run_to_python(run: Run, delta: float) -> str:
    """Return a program that accounts for the run."""
    plain = run_to_dict(run)
    epochs, rest = divmod(run.steps, run.batches.per_epoch)
    if not rest and run.batches.per_epoch > 1:
        plain["steps"] = {"epochs": epochs}
    names = [*_ORDER, *(name for name in plain if name not in _ORDER and plain[name] != _USUAL.get(name))]
    entries = (f"    {name}={_entry(name, plain[name])}," for name in names)
    account = f"report = li.account(run, delta={delta!r})"
    return "\n".join(["import lastiterate as li", "", "run = li.Run(", *entries, ")", account, "print(report)", ""])


def _entry(name: str, value: Any) -> str:
    if name == "adjacency":
        return f"li.{value.upper()}"
    if name == "arithmetic":
        return f"li.training.Arithmetic({_arguments(value)})"
    if name == "steps" and isinstance(value, dict):
        return f"li.epochs({value['epochs']!r})"
    return _made(name, value) if name in SECTIONS and isinstance(value, dict) else _per_step(value)


def _made(section: str, entries: Mapping[str, Any]) -> str:
    made = next(one.make.__name__ for one in SECTIONS[section] if one.name == entries["kind"])
    if made == OtherOptimizer.__name__:
        return repr(entries["name"])
    return f"li.{public_name(section, made)}({_arguments(entries)})"


def _per_step(value: Any) -> str:
    """Return a number or a schedule as Python code."""
    if not isinstance(value, dict):
        return repr(value)
    made = next(one.make.__name__ for one in SCHEDULES if one.name == value["kind"])
    return f"li.{made}({_arguments(value)})"


def _arguments(entries: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_per_step(value)}" for name, value in entries.items() if name != "kind")
