"""Pictures as values: panels of curves, and diagrams; and how they are put on paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from textwrap import fill
from typing import Any

from lastiterate.plots import blank


class Role(Enum):
    """What a curve stands for; it decides how the curve is drawn."""

    PAPER = "paper"
    CORRECTED = "corrected"
    OURS = "ours"
    LOWER = "lower bound"
    OTHER = "other"


@dataclass(frozen=True)
class Curve:
    """Points that are joined, unless they are `dots`."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    role: Role
    dots: bool = False


def line(label: str, x: Iterable[float], y: Iterable[float], role: Role) -> Curve:
    return Curve(label, tuple(map(float, x)), tuple(map(float, y)), role)


@dataclass(frozen=True)
class Panel:
    """Curves in one frame; `ticks` name the places 0, 1, … of the x axis."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = False
    ticks: tuple[str, ...] = ()


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


Picture = Panel | Sheet | Diagram
_SHADES = {
    Role.PAPER: ("tab:orange", "tab:brown", "goldenrod", "tab:olive", "chocolate", "gold"),
    Role.CORRECTED: ("tab:red", "tab:pink", "maroon", "salmon", "crimson", "orchid"),
    Role.OURS: ("tab:blue", "tab:cyan", "navy", "cornflowerblue", "slateblue", "lightskyblue"),
    Role.LOWER: ("tab:green", "limegreen", "darkgreen", "yellowgreen", "seagreen", "palegreen"),
    Role.OTHER: ("tab:gray", "black", "darkgray", "dimgray", "silver", "tab:purple"),
}
_LINES = {Role.PAPER: "-", Role.CORRECTED: "-.", Role.OURS: "-", Role.LOWER: ":", Role.OTHER: "--"}
_MARKS = {Role.PAPER: "o", Role.CORRECTED: "s", Role.OURS: "D", Role.LOWER: "^", Role.OTHER: "x"}
_WIDE, _NARROW = 7.0, 4.6  # inches of a single panel, and of one of several
_SEVERAL = 2
_MANY = 6  # panels from which all are drawn small
_COLUMNS_OF_LEGEND = 3
_FEW_DECADES = 3e3
_LINE = 46  # letters of a cell before it is folded


def drawn(panels: Sequence[Picture]) -> Any:
    """All panels in one figure, under one legend that covers no curve."""
    figure, frames = _frames(len(panels))
    names: dict[str, Any] = {}
    for panel, axes in zip(panels, frames, strict=True):
        match panel:
            case Diagram():
                _draw_diagram(axes, panel)
            case Sheet():
                _draw_sheet(axes, panel)
            case Panel():
                names |= _draw_panel(axes, panel, small=len(panels) >= _MANY)
    if names:
        longest = max(map(len, names))
        columns = 1 if longest > 60 and len(panels) == 1 else min(_COLUMNS_OF_LEGEND if longest < 36 else 2, len(names))
        figure.legend(names.values(), names.keys(), loc="outside lower center", ncols=columns, fontsize="small")
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine(None)  # laid out once, for all formats; otherwise each of them would be drawn twice
    return figure


def _frames(count: int) -> tuple[Any, list[Any]]:
    across = 1 if count == 1 else 5 if count == 25 else 3 if count >= _MANY or count == 3 else _SEVERAL
    down = -(-count // across)
    size = (
        (_WIDE, 4.6) if across == 1 else (2.1 * across, 2.1 * down) if across == 5 else (_NARROW * across, 4.0 * down)
    )
    figure = blank((size[0], size[1] + 0.6))
    frames = figure.subplots(down, across, squeeze=False, sharex=across == 5, sharey=across == 5).ravel().tolist()
    for unused in frames[count:]:
        unused.remove()
    return figure, frames[:count]


def _draw_panel(axes: Any, panel: Panel, small: bool) -> dict[str, Any]:
    """The curves' handles by their labels."""
    used = dict.fromkeys(Role, 0)
    names = {}
    apart = min(0.12, 0.6 / max(len(panel.curves), 1))  # marks of one column stand side by side
    for place, curve in enumerate(panel.curves):
        shade = _SHADES[curve.role][used[curve.role] % 6]
        used[curve.role] += 1
        names[curve.label] = _draw_curve(axes, curve, shade, apart * (place - (len(panel.curves) - 1) / 2))
    axes.set_title(panel.title, fontsize="x-small" if small else "medium")
    axes.set(xscale="log" if panel.log_x else "linear", yscale="log" if panel.log_y else "linear")
    axes.set_xlabel(panel.x_label, fontsize="x-small" if small else None)
    axes.set_ylabel(panel.y_label, fontsize="x-small" if small else None)
    if panel.ticks:
        upright = max(map(len, panel.ticks)) * len(panel.ticks) < 60
        axes.set_xticks(range(len(panel.ticks)), panel.ticks, rotation=0 if upright else 90, fontsize="small")
    if small:
        axes.tick_params(labelsize="xx-small")
    for log, axis in ((panel.log_x, axes.xaxis), (panel.log_y, axes.yaxis)):
        if log:
            _plain_numbers(axis)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    return names


def _draw_curve(axes: Any, curve: Curve, shade: str, aside: float) -> Any:
    if curve.dots:
        style = {"marker": _MARKS[curve.role], "linestyle": "none", "markersize": 6}
        return axes.plot([x + aside for x in curve.x], curve.y, color=shade, label=curve.label, **style)[0]
    style = {"linestyle": _LINES[curve.role], "linewidth": 2.2 if curve.role is Role.LOWER else 1.6}
    return axes.plot(curve.x, curve.y, color=shade, label=curve.label, **style)[0]


def _plain_numbers(axis: Any) -> None:
    """Where a logarithmic axis has few decades: 20 and 50 beside 10, all written out."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = axis.get_view_interval()
    if low > 0 and high / low < _FEW_DECADES:
        axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        for setter in (axis.set_major_formatter, axis.set_minor_formatter):
            setter(FuncFormatter(lambda value, _: f"{value:g}"))


def _draw_sheet(axes: Any, sheet: Sheet) -> None:
    axes.set_axis_off()
    axes.set_title(sheet.title, fontsize="medium")
    folded = [[fill(cell, _LINE) for cell in row] for row in (sheet.columns, *sheet.rows)]
    letters = [max(len(part) for row in folded for part in row[k].split("\n")) + 3 for k in range(len(sheet.columns))]
    widths = [count / sum(letters) for count in letters]
    table = axes.table(folded, colWidths=widths, loc="center", cellLoc="left", edges="horizontal")
    table.auto_set_font_size(False)
    table.set_fontsize(5.5)
    lines = [max(cell.count("\n") + 1 for cell in row) for row in folded]
    for (row, _), cell in table.get_celld().items():
        cell.set_height(lines[row] / sum(lines))
        cell.set_linewidth(0.4)


def _draw_diagram(axes: Any, diagram: Diagram) -> None:
    axes.set_axis_off()
    axes.set_title(diagram.title)
    axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    for text, x, y in diagram.nodes:
        box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": "black"}
        axes.text(x, y, text, ha="center", va="center", bbox=box, zorder=3)
    for arrow in diagram.arrows:
        _draw_arrow(axes, diagram.nodes, arrow)


def _draw_arrow(axes: Any, nodes: Sequence[tuple[str, float, float]], arrow: Arrow) -> None:
    """Arrows that do not hold are bent, so that they do not cover those that do; labels stand beside upright ones."""
    (_, x0, y0), (_, x1, y1) = nodes[arrow.start], nodes[arrow.end]
    level = abs(x1 - x0) > abs(y1 - y0)
    colour, bend = ("tab:green", 0.0) if arrow.holds else ("tab:red", 0.25)
    style = {
        "arrowstyle": "-|>",
        "color": colour,
        "linestyle": "-" if arrow.holds else "--",
        "shrinkA": 48 if level else 18,
        "shrinkB": 48 if level else 18,
        "connectionstyle": f"arc3,rad={bend}",
    }
    axes.annotate("", (x1, y1), (x0, y0), arrowprops=style, zorder=1)
    aside = (0.0, 0.05) if level else (-0.02, 0.0) if arrow.holds else (0.1, 0.0)
    place = (x0 + x1) / 2 + aside[0], (y0 + y1) / 2 + aside[1]
    towards = "center" if level else "right" if arrow.holds else "left"
    axes.text(*place, arrow.label, color=colour, ha=towards, va="center", fontsize="small")
