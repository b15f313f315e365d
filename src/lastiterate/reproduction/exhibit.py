"""A figure or a table of a paper as a value: what it shows, how it is computed, and how the numbers compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lastiterate.reproduction.pictures import Panel, Picture, Role

Entry = str | int | float | None


@dataclass(frozen=True)
class Setting:
    """How to compute an exhibit: `quick` with coarser grids and fewer repetitions; `mnist` is the folder of its files."""

    quick: bool = False
    mnist: Path | None = None


class Outcome(Enum):
    """Whether the paper's numbers were found again."""

    REPRODUCED = "reproduced"
    CORRECTED = "reproduced with correction"
    NOT = "not reproducible"
    NOTHING = "nothing to reproduce"  # a table of symbols has no numbers
    NOT_MADE = "not made"  # its data are not on this machine


@dataclass(frozen=True)
class Agreement:
    """`errata` are ids of docs/errata.md; `note` says what was compared or what is missing."""

    outcome: Outcome
    errata: tuple[str, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        named = f" ({', '.join(self.errata)})" if self.errata else ""
        return f"{self.outcome.value}{named}" + (f": {self.note}" if self.note else "")


@dataclass(frozen=True)
class Cell:
    """A printed number and the paper's own formula, evaluated here.

    They have to agree to the last printed digit, or to `tolerance`. `slip` is the value that a known mistake of the paper
    gives.
    """

    name: str
    printed: str
    value: float
    slip: float | None = None
    tolerance: float | None = None

    @property
    def agrees(self) -> bool:
        return self._meets(self.value)

    @property
    def explained(self) -> bool:
        """Whether the known mistake gives what is printed."""
        return self.slip is not None and self._meets(self.slip)

    def _meets(self, value: float) -> bool:
        number = float(self.printed)
        decimals = len(self.printed.partition(".")[2])
        allowed = 0.5 * 10.0**-decimals * (1 + 1e-9) if self.tolerance is None else self.tolerance
        return math.isfinite(value) and abs(value - number) <= allowed


@dataclass(frozen=True)
class Claim:
    """A line of the summary. `ours` is proved by `li.account` or by a theorem; `lower` is an exact instance."""

    text: str
    printed: Entry = None
    ours: Entry = None
    lower: Entry = None


@dataclass(frozen=True)
class Made:
    """A finished exhibit: a table of numbers, pictures, a verdict, and lines for the summary."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    panels: tuple[Picture, ...]
    verdict: Agreement
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Exhibit:
    """`parameters` are those of the paper or of its scripts; an exhibit is kept only as long as they stay the same."""

    paper: str
    name: str
    title: str
    parameters: tuple[tuple[str, Entry], ...]
    make: Callable[[Setting], Made]
    cost: float = 1.0  # seconds, about: the slowest are started first
    uses_all_cores: bool = False

    @property
    def key(self) -> str:
        return f"{self.paper}-{self.name}"

    @property
    def called(self) -> str:
        """As the paper calls it: Figure 1, Table 3."""
        kind, _, number = self.name.rpartition("-")
        return f"{'Figure' if kind == 'fig' else kind.capitalize()} {number}"


def judged(
    cells: Sequence[Cell],
    errata: Sequence[str] = (),
    slips: Sequence[str] = (),
    note: str = "",
    kind: str = "printed numbers",
) -> Agreement:
    """Compare every printed number. `errata` change what the exhibit says; `slips` only explain cells that are off."""
    off = [cell for cell in cells if not cell.agrees]
    wrong = [cell for cell in off if not cell.explained]
    if wrong:
        missed = "; ".join(f"{cell.name}: printed {cell.printed}, computed {cell.value:.6g}" for cell in wrong)
        return Agreement(Outcome.NOT, tuple(errata), f"{len(wrong)} of {len(cells)} {kind} do not agree: {missed}")
    found = (*errata, *(slips if off else ()))
    count = f"{len(cells) - len(off)} of {len(cells)} {kind} agree" if cells else ""
    return Agreement(
        Outcome.CORRECTED if found else Outcome.REPRODUCED, found, "; ".join(one for one in (count, note) if one)
    )


def judged_curves(panels: Sequence[Panel], errata: Sequence[str] = (), note: str = "") -> Agreement:
    """The errata apply if a curve of the paper lies below its correction or an exact instance, which needs an erratum."""
    low = [panel.title for panel in panels if _too_low(panel)]
    if low and not errata:
        return Agreement(Outcome.NOT, (), f"the paper's curve is too small: {'; '.join(low)}")
    return judged((), errata if low else (), note=note)


def _too_low(panel: Panel) -> bool:
    papers = [
        point for curve in panel.curves if curve.role is Role.PAPER for point in zip(curve.x, curve.y, strict=True)
    ]
    floors = [curve for curve in panel.curves if curve.role in (Role.CORRECTED, Role.LOWER)]
    truths = [point for curve in floors for point in zip(curve.x, curve.y, strict=True)]
    return any(x == place and y < floor * (1 - 1e-6) for x, y in papers for place, floor in truths)


def from_curves(panels: Sequence[Panel], verdict: Agreement, claims: Sequence[Claim] = ()) -> Made:
    """An exhibit made of curves: its numbers are their points."""
    rows = tuple(
        (panel.title, curve.label, x, y)
        for panel in panels
        for curve in panel.curves
        for x, y in zip(curve.x, curve.y, strict=True)
    )
    return Made(("panel", "curve", "x", "y"), rows, tuple(panels), verdict, tuple(claims))
