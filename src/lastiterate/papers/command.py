"""`lastiterate reproduce`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lastiterate.errors import InvalidInput
from lastiterate.papers.mnist import check_folder
from lastiterate.papers.reproduce import PAPERS, Shown, reproduce

_BESIDE = Path("..") / "shared" / "data" / "mnist"


def reproduced(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """What was made, as JSON could hold it and as text."""
    papers = PAPERS if options.paper == "all" else (options.paper,)
    if options.workers == 0:
        raise InvalidInput("--workers must not be 0. Say how many processes, or leave it out for all cores.")
    found = reproduce(
        papers,
        options.out,
        quick=options.quick,
        fresh=options.fresh,
        mnist=_mnist(options.mnist),
        workers=options.workers,
    )
    lines = [str(shown) for shown in found] + ["", f"report: {Path(options.out) / 'report.html'}"]
    return {"out": str(options.out), "exhibits": [_content(shown) for shown in found]}, "\n".join(lines)


def _mnist(chosen: str | None) -> Path | None:
    if chosen is None:
        return _BESIDE if _BESIDE.is_dir() else None
    if not Path(chosen).is_dir():
        raise InvalidInput(f"--mnist must be a folder. Got {chosen}.")
    check_folder(Path(chosen))
    return Path(chosen)


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
