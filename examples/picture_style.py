"""One look for the pictures of the documents: colours, titles, labels at the ends of lines, small SVG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

IMAGES = Path(__file__).parent.parent / "docs" / "images"
GREY, YELLOW, BLUE, GREEN, RED, BLACK = "#999999", "#e69f00", "#0072b2", "#009e73", "#d55e00", "black"
READABLE = {GREY: "#666666", YELLOW: "#a06e00"}  # darker, where letters would be too pale

matplotlib.rcParams["svg.hashsalt"] = "lastiterate"
matplotlib.rcParams["path.simplify_threshold"] = 0.5


def picture(title: str, height: float = 4.2) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8, height), layout="constrained")
    axes = figure.add_subplot()
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    axes.grid(alpha=0.25)
    return figure, axes


def curve(
    axes: Axes, x: Sequence[float], y: Sequence[float], text: str, colour: str, line: str = "-", above: float = 0.0
) -> None:
    """With its name at its end, in its colour."""
    axes.plot(x, y, line, color=colour, linewidth=2.2 if colour == RED else 1.6)
    name(axes, x[-1], y[-1], text, colour, above)


def name(axes: Axes, x: float, y: float, text: str, colour: str, above: float = 0.0) -> None:
    """To the right of a point."""
    shade = READABLE.get(colour, colour)
    axes.annotate(text, (x, y), (6, above), textcoords="offset points", color=shade, fontsize=9, va="center")


def save(figure: Figure, page: str) -> None:
    path = IMAGES / f"tutorial-{page}.svg"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB", flush=True)
