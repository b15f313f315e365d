"""In how many cells of a group, each a data set at an ε under an adjacency, ours is at or above Opacus; and the table."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.accuracy import diffprivlib_fits, opacus_fits, ours, without_privacy
from benchmarks.accuracy.rows import ADJACENCIES, REPLACED, ZEROED, Row

# Together what compares the same neighbours.
ORDER = (
    (ZEROED, ours.NAME),
    (ZEROED, opacus_fits.NAME),
    (REPLACED, ours.NAME),
    (REPLACED, opacus_fits.NAME),
    (REPLACED, diffprivlib_fits.NAME_TUNED),
    (REPLACED, diffprivlib_fits.NAME),
    (None, without_privacy.NAME),
)


@dataclass(frozen=True)
class Cell:
    """How much ours is above Opacus in the mean over seeds, and the standard error of that, in points."""

    place: str
    above: float
    error: float

    def __str__(self) -> str:
        return f"{self.place} ({self.above:+.2f} ± {self.error:.2f})"


def sentence(group: str, rows: list[Row], names: Sequence[str], epsilons: Sequence[float]) -> str:
    found = cells(rows, names, epsilons)
    below = [cell for cell in found if cell.above < 0]
    told = "; ".join(str(cell) for cell in sorted(below, key=lambda cell: cell.above)) or "none"
    return f"{group}: at or above Opacus in {len(found) - len(below)} of {len(found)} cells; below in: {told}"


def cells(rows: list[Row], names: Sequence[str], epsilons: Sequence[float]) -> list[Cell]:
    """Those for which there are rows of both, seed by seed: a seed has the same split for both."""
    found = []
    for name, adjacency, epsilon in itertools.product(names, ADJACENCIES, epsilons):
        here, there = (scores(rows, method, adjacency, name, epsilon) for method in (ours.NAME, opacus_fits.NAME))
        above = [100 * (here[seed] - there[seed]) for seed in here if seed in there]
        if above:
            error = statistics.stdev(above) / len(above) ** 0.5 if len(above) > 1 else float("nan")
            mean = round(statistics.mean(above), 9)  # equal accuracies are equal, whatever the order of the sum
            found.append(Cell(f"{name}, {adjacency}, {epsilon:g}", mean, error))
    return found


def scores(rows: list[Row], method: str, adjacency: str | None, name: str, epsilon: float | None) -> dict[int, float]:
    """By seed."""
    wanted = {"method": method, "adjacency": adjacency, "dataset": name}
    if method != without_privacy.NAME:
        wanted["epsilon"] = epsilon
    return {row["seed"]: row["accuracy"] for row in rows if wanted.items() <= row.items()}


def table(rows: list[Row], names: Sequence[str], epsilons: Sequence[float]) -> str:
    """Mean and standard deviation in percent; in brackets the number of repetitions, where it is not ten."""
    titles = " ".join(f"{f'epsilon {epsilon:g}':>14}" for epsilon in epsilons)
    lines = [f"{'data set':14} {'neighbours':13} {'method':21} {titles}"]
    for name, (adjacency, method) in itertools.product(names, ORDER):
        shown = [_shown([*scores(rows, method, adjacency, name, epsilon).values()]) for epsilon in epsilons]
        if any(shown):
            lines.append(f"{name:14} {adjacency or '-':13} {method:21} " + " ".join(f"{cell:>14}" for cell in shown))
    return "\n".join(lines)


def _shown(values: list[float]) -> str:
    if len(values) < 2:
        return "".join(f"{100 * value:.1f}" for value in values)
    few = "" if len(values) == 10 else f" [{len(values)}]"
    return f"{100 * statistics.mean(values):.1f} ± {100 * statistics.stdev(values):.1f}{few}"
