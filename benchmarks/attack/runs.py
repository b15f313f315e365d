"""Runs from a grammar of everything that a run can be made of, as dictionaries."""

from __future__ import annotations

import inspect
import random
from typing import Any

from benchmarks.attack.values import PLAIN, drawn
from lastiterate.runs.kinds import SECTIONS

KINDS: dict[str, dict[str, Any]] = {
    section: {kind.name: kind.make for kind in kinds} for section, kinds in SECTIONS.items()
}
_OPTIONAL = ("domain", "prox")
_UNKNOWN = ("momentum", "optimizer", "lr", "epochs", "x", "Steps", "")


def drawn_run(source: random.Random, wildness: float) -> Any:
    """A dictionary that may describe a run; few of them when wild."""
    if source.random() < wildness / 10:
        return source.choice(PLAIN)
    run: dict[str, Any] = {
        "steps": drawn(source, "steps", wildness),
        "step_size": drawn(source, "step_size", wildness),
    }
    if source.random() < 0.2:
        run["steps"] = {"epochs": drawn(source, "count", wildness)}
    for section, kinds in KINDS.items():
        if section not in _OPTIONAL or source.random() < 0.3:
            run[section] = _section(source, kinds, wildness)
    if source.random() < 0.2:
        run["weight_decay"] = drawn(source, "weight_decay", wildness)
    if source.random() < wildness / 5:
        run[source.choice(_UNKNOWN)] = drawn(source, "x", wildness)
    if source.random() < wildness / 5:
        del run[source.choice(list(run))]
    return run


def _section(source: random.Random, kinds: dict[str, Any], wildness: float) -> Any:
    if source.random() < wildness / 5:
        return source.choice(PLAIN)
    kind = source.choice(list(kinds))
    entries = {"kind": kind}
    for name, parameter in inspect.signature(kinds[kind]).parameters.items():
        if parameter.default is inspect.Parameter.empty or source.random() < 0.4:
            entries[name] = drawn(source, name, wildness)
    if entries.get("batch_size") and source.random() < 0.5:
        entries["records"], entries["batch_size"] = 100, 10
    return entries
