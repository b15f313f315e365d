"""A run as the Python that describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lastiterate.parts import public_name
from lastiterate.runs.encode import run_to_dict
from lastiterate.runs.kinds import SCHEDULES, SECTIONS
from lastiterate.runs.optimizers import OtherOptimizer
from lastiterate.runs.run import Run

_ORDER = ("loss", "batches", "step_size", "noise", "steps")  # that of li.Run; what else there is follows
_USUAL = {"weight_decay": 0.0, "domain": {"kind": "unbounded"}}


def run_to_python(run: Run, delta: float) -> str:
    """A program that accounts for the run."""
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
    """What may be a schedule."""
    if not isinstance(value, dict):
        return repr(value)
    made = next(one.make.__name__ for one in SCHEDULES if one.name == value["kind"])
    return f"li.{made}({_arguments(value)})"


def _arguments(entries: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_per_step(value)}" for name, value in entries.items() if name != "kind")
