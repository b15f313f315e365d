"""Convex minorants of points."""

from __future__ import annotations

from lastiterate.numerics.arrays import Floats


def lower_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The vertices of the greatest convex function below the points (x increasing)."""
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1 and _above_chord(x, y, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]


def _above_chord(x: Floats, y: Floats, left: int, middle: int, right: int) -> bool:
    rise = (y[right] - y[left]) * (x[middle] - x[left])
    return bool((y[middle] - y[left]) * (x[right] - x[left]) >= rise)
