"""`lastiterate reproduce`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from lastiterate.errors import InvalidInput
from lastiterate.reproduction.mnist import check_folder
from lastiterate.reproduction.reproduce import PAPERS, Shown, reproduce

DATA = "LASTITERATE_DATA"  # an environment variable: a folder of data sets, with MNIST in its folder `mnist`


def reproduced(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """The verdicts, for JSON and as text."""
    papers = PAPERS if options.paper == "all" else (options.paper,)
    if options.workers == 0:
        raise InvalidInput("--workers must not be 0. Give a number of processes, or leave it out to use all cores.")
    if options.exhibits and options.paper == "all":
        raise InvalidInput(
            f"EXHIBIT needs one paper. Got all. Use, for example, reproduce bok2024 {options.exhibits[0]}."
        )
    found = reproduce(
        papers,
        options.out,
        exhibits=options.exhibits,
        quick=options.quick,
        fresh=options.fresh,
        mnist=_mnist(options.mnist),
        workers=options.workers,
    )
    lines = [str(shown) for shown in found] + ["", f"report: {Path(options.out) / 'report.html'}"]
    return {"out": str(options.out), "exhibits": [_content(shown) for shown in found]}, "\n".join(lines)


def _mnist(chosen: str | None) -> Path | None:
    if chosen is None:
        return _mnist_among_data(os.environ.get(DATA))
    if not Path(chosen).is_dir():
        raise InvalidInput(f"--mnist must be a folder. Got {chosen}.")
    check_folder(Path(chosen))
    return Path(chosen)


def _mnist_among_data(folder: str | None) -> Path | None:
    """Tables that need MNIST say how to get it, if it is not there."""
    mnist = Path(folder) / "mnist" if folder else None
    return mnist if mnist is not None and mnist.is_dir() else None


def _content(shown: Shown) -> dict[str, Any]:
    return {
        "paper": shown.exhibit.paper,
        "exhibit": shown.exhibit.name,
        "outcome": shown.verdict.outcome.value,
        "errata": list(shown.verdict.errata),
        "note": shown.verdict.note,
        "claims": [vars(claim) for claim in shown.claims],
        "seconds": shown.seconds,
        "kept": shown.kept,
    }
