"""Who does what when several processes train one model."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from examples.picture_style import BLACK, BLUE, GREY, RED, picture, save


def distributed() -> None:
    figure, axes = picture("One step with three processes: noise is added once, by rank 0", height=3.4)
    axes.set(xlim=(0, 10), ylim=(0, 4.4))
    axes.axis("off")
    axes.add_patch(
        FancyBboxPatch((0.15, 0.2), 7.9, 3.9, boxstyle="round,pad=0.1", fill=False, edgecolor=GREY, linestyle=":")
    )
    axes.text(0.2, 0.28, "secret: the processes, and the network between them", color=GREY, fontsize=9)
    box(axes, 0.3, 2.2, "rank 0\ndraws the batch", BLUE)
    for rank, height in ((0, 3.4), (1, 2.2), (2, 1.0)):
        box(axes, 3.0, height, f"rank {rank}: clipped\ngradient sum", BLUE)
        arrow(axes, (2.2, 2.2), (3.0, height))
        arrow(axes, (4.9, height), (5.8, 2.2))
    box(axes, 5.8, 2.2, "rank 0 adds noise\nto the total", RED)
    arrow(axes, (7.75, 2.2), (8.4, 2.2))
    axes.text(
        8.5, 2.2, "next iterate,\nsent to all ranks;\nthe last one\nis released", color=BLACK, fontsize=9, va="center"
    )
    save(figure, "distributed")


def box(axes: Axes, left: float, middle: float, text: str, colour: str) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (left, middle - 0.35), 1.85, 0.7, boxstyle="round,pad=0.05", fill=False, edgecolor=colour, linewidth=1.6
        )
    )
    axes.text(left + 0.92, middle, text, color=BLACK, fontsize=9, ha="center", va="center")


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": GREY, "shrinkA": 4, "shrinkB": 4})
