"""Pictures as values: panels of curves, tables of words, and diagrams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """What a curve stands for; it decides how the curve is drawn."""

    PAPER = "paper"
    CORRECTED = "corrected"
    OURS = "ours"
    LOWER = "lower bound"
    OTHER = "other"


@dataclass(frozen=True)
class Curve:
    """Points joined by lines, unless they are `dots`. Curves of one panel with the same label have the same colour."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    role: Role
    dots: bool = False


def line(label: str, x: Iterable[float], y: Iterable[float], role: Role) -> Curve:
    return Curve(label, tuple(map(float, x)), tuple(map(float, y)), role)


@dataclass(frozen=True)
class Panel:
    """Curves in one frame; `ticks` name the places 0, 1, … of the x axis.

    Each curve is labelled at its end, or in the upper right `corner`, which a trade-off function never reaches.
    """

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = False
    ticks: tuple[str, ...] = ()
    corner: bool = False


@dataclass(frozen=True)
class Grid:
    """Small panels with the same axes, one row of them for each name in `rows`; the names stand at the edges."""

    panels: tuple[Panel, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    x_label: str
    y_label: str


@dataclass(frozen=True)
class Sheet:
    """A table of words, for exhibits that are lists."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Arrow:
    """From one node to another; crossed out where it does not hold."""

    start: int
    end: int
    label: str
    holds: bool = True


@dataclass(frozen=True)
class Diagram:
    """Nodes (text, x, y) and arrows between them."""

    title: str
    nodes: tuple[tuple[str, float, float], ...]
    arrows: tuple[Arrow, ...]


Picture = Panel | Grid | Sheet | Diagram
