"""The command `lastiterate theorems`."""

from __future__ import annotations

import argparse
from typing import Any

from lastiterate.cli.show import show
from lastiterate.theorems.catalogue import ALL
from lastiterate.theorems.features import FEATURES
from lastiterate.theorems.theorem import Theorem


def add_options(_parser: argparse.ArgumentParser) -> None:
    """Add no option: the command has none."""


def answer(options: argparse.Namespace) -> int:
    show(options, {"theorems": [_theorem(one) for one in ALL]}, "\n\n".join(map(_theorem_text, ALL)))
    return 0


def _theorem(theorem: Theorem) -> dict[str, Any]:
    return {
        "name": theorem.name,
        "citation": theorem.citation,
        "covers": theorem.covers,
        "features": [one.name for one in FEATURES if one in theorem.features],
        "assumptions": list(theorem.needs),
        "erratum": theorem.erratum,
    }


def _theorem_text(theorem: Theorem) -> str:
    lines = [theorem.name, f"  {theorem.citation}", f"  covers: {theorem.covers}"]
    lines += [f"  needs: {'; '.join(theorem.needs)}"]
    return "\n".join(lines + ([f"  erratum {theorem.erratum}"] if theorem.erratum else []))
