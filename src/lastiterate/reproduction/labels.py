"""Names of curves beside their ends, in their colours, far enough apart to be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from lastiterate.reproduction.pictures import Curve

_LETTERS = 26  # of a label before it is folded
_SIZE = 8.0  # points
_LINE = 1.3 * _SIZE / 72  # inches
_BETWEEN = 0.04  # inches from one label to the next
_RIGHT = 0.6  # a curve that ends left of this part of the frame is labelled inside


def label_ends(axes: Any, drawn: Sequence[tuple[Curve, str]]) -> None:
    """Right of the frame, with a thin line to the curve; beside the last point where a curve ends early."""
    early = [(curve, colour) for curve, colour in drawn if _ends_early(axes, curve)]
    for curve, colour in early:
        axes.annotate(
            curve.label,
            _end(curve),
            (6, 0),
            textcoords="offset points",
            color=colour,
            fontsize=_SIZE,
            va="center",
        )
    _label_margin(axes, [one for one in drawn if one not in early])


def _ends_early(axes: Any, curve: Curve) -> bool:
    end = _end(curve)
    return end is not None and _place(axes, *end)[0] < _RIGHT


def _label_margin(axes: Any, drawn: Sequence[tuple[Curve, str]]) -> None:
    tall = axes.get_window_extent().height / axes.figure.dpi
    ends = [(*end, fill(curve.label, _LETTERS), colour) for curve, colour in drawn if (end := _end(curve)) is not None]
    ends.sort(key=lambda end: _place(axes, *end[:2])[1])
    heights = [((text.count("\n") + 1) * _LINE + _BETWEEN) / tall for *_, text, _ in ends]
    places = spread([_place(axes, x, y)[1] for x, y, *_ in ends], heights)
    for (x, y, text, colour), place in zip(ends, places, strict=True):
        axes.annotate(
            text,
            (x, y),
            (1.05, place),
            textcoords="axes fraction",
            color=colour,
            fontsize=_SIZE,
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.7,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 0,
            },
            annotation_clip=False,
        )


def spread(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Centres near the wanted ones, in their order, for labels of these heights; none overlap, and none lies above 1."""
    places = list(wanted)
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + (heights[k - 1] + heights[k]) / 2)
    for k in reversed(range(len(places))):
        above = 1 - heights[k] / 2 if k == len(places) - 1 else places[k + 1] - (heights[k] + heights[k + 1]) / 2
        places[k] = min(places[k], above)
    return places


def _end(curve: Curve) -> tuple[float, float] | None:
    """The rightmost point that can be drawn."""
    finite = [point for point in zip(curve.x, curve.y, strict=True) if all(map(math.isfinite, point))]
    return max(finite, default=None)


def _place(axes: Any, x: float, y: float) -> tuple[float, float]:
    """In the frame: (0, 0) is its lower left corner, (1, 1) its upper right one."""
    across, up = axes.transAxes.inverted().transform(axes.transData.transform((x, y)))
    return float(across), float(up)
