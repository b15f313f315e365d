"""The command `lastiterate errata`."""

from __future__ import annotations

import argparse
from typing import Any

from lastiterate.cli.show import show
from lastiterate.progress import tracked
from lastiterate.reproduction.errata import ERRATA, Effect, Erratum


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--full", action="store_true", help="add the formulas, the meaning of the numbers and the tests"
    )
    parser.add_argument(
        "--effect", choices=[effect.value for effect in Effect], help="list only errors with this effect"
    )


def answer(options: argparse.Namespace) -> int:
    """Print the errata, each number computed afresh, which takes a few seconds."""
    chosen = [one for one in ERRATA if options.effect in (None, one.effect.value)]
    found = [_erratum(one) for one in tracked(chosen, "errata")]
    lines = [_erratum_line(one) for one in found]
    if options.full:
        lines = [f"{line}{_erratum_text(one)}\n" for line, one in zip(lines, found, strict=True)]
    head = f"{'id':10} {'effect':14} {'place':49} {'printed':>9} {'exact':>11} {'corrected':>9}"
    show(options, {"errata": found}, "\n".join([head, *lines]))
    return 0


def _erratum_line(one: dict[str, Any]) -> str:
    line = f"{one['id']:10} {one['effect']:14} {one['place']:49.49}"
    if not one["numbers"]:
        return line.rstrip()
    values = [one["numbers"][name] for name in ("printed", "exact", "corrected")]
    printed, exact, corrected = ("" if value is None else f"{value:.5g}" for value in values)
    return f"{line} {printed:>9} {exact:>11} {corrected:>9}"


def _erratum(one: Erratum) -> dict[str, Any]:
    shown = one.evidence() if one.evidence else None
    numbers = {} if shown is None else {**vars(shown), "text": str(shown)}
    return {
        "id": one.name,
        "place": one.place,
        "printed": one.printed,
        "corrected": one.corrected,
        "effect": one.effect.value,
        "test": one.test,
        "numbers": numbers,
    }


def _erratum_text(one: dict[str, Any]) -> str:
    numbers = f"\n  numbers:   {one['numbers']['text']}" if one["numbers"] else ""
    return f"\n  printed:   {one['printed']}\n  corrected: {one['corrected']}{numbers}\n  test:      {one['test']}"
