"""Draws pictures with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from lastiterate.plots import blank
from lastiterate.reproduction.labels import label_ends
from lastiterate.reproduction.pictures import Arrow, Curve, Diagram, Grid, Panel, Picture, Role, Sheet

_SHADES = {
    Role.PAPER: ("tab:orange", "tab:brown", "goldenrod", "tab:olive", "chocolate", "gold"),
    Role.CORRECTED: ("tab:red", "tab:pink", "maroon", "salmon", "crimson", "orchid"),
    Role.OURS: ("tab:blue", "tab:cyan", "navy", "cornflowerblue", "slateblue", "lightskyblue"),
    Role.LOWER: ("tab:green", "limegreen", "darkgreen", "yellowgreen", "seagreen", "palegreen"),
    Role.OTHER: ("tab:gray", "black", "darkgray", "dimgray", "silver", "tab:purple"),
}
_LINES = {Role.PAPER: "-", Role.CORRECTED: "-.", Role.OURS: "-", Role.LOWER: ":", Role.OTHER: "--"}
_MARKS = {Role.PAPER: "o", Role.CORRECTED: "s", Role.OURS: "D", Role.LOWER: "^", Role.OTHER: "x"}
_LINE = 46  # letters of a cell before it is folded
_FEW_DECADES, _ONE_DECADE = 900.0, 30.0
_LONG_NUMBER = 2e4
_LONG_LABEL, _COLUMNS_OF_LEGEND = 36, 3
_LETTERS_SIDE_BY_SIDE = 60


def drawn(pictures: Sequence[Picture]) -> Any:
    """All pictures in one figure. Curves are labelled where they are; marks of tables share one legend below."""
    match pictures:
        case [Grid() as grid]:
            return _finished(_draw_grid(grid))
        case [Sheet() as sheet]:
            return _finished(_draw_sheet(sheet))
    figure, frames = _frames(len(pictures), tall=any(isinstance(one, Panel) and not _level(one) for one in pictures))
    panels = [(axes, picture) for axes, picture in zip(frames, pictures, strict=True) if isinstance(picture, Panel)]
    colours = [(axes, panel, _draw_panel(axes, panel)) for axes, panel in panels]
    for axes, picture in zip(frames, pictures, strict=True):
        if isinstance(picture, Diagram):
            _draw_diagram(axes, picture)
    _legend_of_marks(figure, [axes for axes, panel in panels if _has_marks(panel)])
    figure.get_layout_engine().execute(figure)  # labels have to know how high their frame is
    for axes, panel, colour in colours:
        if not panel.corner and not _has_marks(panel):
            label_ends(axes, [(curve, colour[curve.label]) for curve in _last_of_each_label(panel.curves)])
    return _finished(figure)


def _finished(figure: Any) -> Any:
    """Laid out once, for all formats; otherwise each of them would be drawn twice."""
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine(None)
    return figure


def _frames(count: int, tall: bool) -> tuple[Any, list[Any]]:
    """Two beside each other; one alone is larger. They are `tall` where names stand upright under an axis."""
    across = min(count, 2)
    down = -(-count // across)
    figure = blank((7.5, 5.8 if tall else 4.6) if count == 1 else (5.4 * across, (4.3 if tall else 3.7) * down))
    frames = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for unused in frames[count:]:
        unused.remove()
    return figure, frames[:count]


def _level(panel: Panel) -> bool:
    """Whether the names under the axis fit side by side."""
    return sum(map(len, panel.ticks)) < _LETTERS_SIDE_BY_SIDE


def _has_marks(panel: Panel) -> bool:
    return any(curve.dots for curve in panel.curves)


def _last_of_each_label(curves: Sequence[Curve]) -> list[Curve]:
    return list({curve.label: curve for curve in curves}.values())


def _legend_of_marks(figure: Any, frames: Sequence[Any]) -> None:
    names = {name: mark for axes in frames for mark, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    if names:
        columns = 2 if max(map(len, names)) > _LONG_LABEL else _COLUMNS_OF_LEGEND
        figure.legend(names.values(), names.keys(), loc="outside lower center", ncols=columns, fontsize="small")


def _draw_grid(grid: Grid) -> Any:
    """Row names at the left, column names on top, one legend with a line for each family of curves."""
    down, across = len(grid.rows), len(grid.columns)
    figure = blank((2.1 * across + 0.4, 1.9 * down + 0.6))
    frames = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for axes, panel in zip(frames.ravel(), grid.panels, strict=True):
        _draw_curves(axes, panel)
        axes.tick_params(labelsize="small")
        axes.grid(alpha=0.25)
    for axes, name in zip(frames[0], grid.columns, strict=True):
        axes.set_title(name, fontsize="medium")
    for axes, name in zip(frames[:, 0], grid.rows, strict=True):
        axes.set_ylabel(name, fontsize="medium")
    figure.supxlabel(grid.x_label, fontsize="medium")
    figure.supylabel(grid.y_label, fontsize="medium")
    names = {
        name: mark for axes in frames.ravel() for mark, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(names.values(), names.keys(), loc="outside upper center", ncols=2, fontsize="medium")
    return figure


def _draw_panel(axes: Any, panel: Panel) -> dict[str, str]:
    """The colours of the curves by their labels."""
    colours = _draw_curves(axes, panel)
    axes.set_title(panel.title, fontsize="medium")
    axes.set(xscale="log" if panel.log_x else "linear", yscale="log" if panel.log_y else "linear")
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    if panel.ticks:
        axes.set_xticks(range(len(panel.ticks)), panel.ticks, rotation=0 if _level(panel) else 90, fontsize="small")
    if panel.corner:
        axes.legend(loc="upper right", fontsize="small", frameon=False)
    for log, axis in ((panel.log_x, axes.xaxis), (panel.log_y, axes.yaxis)):
        if log:
            _plain_numbers(axis)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    return colours


def _draw_curves(axes: Any, panel: Panel) -> dict[str, str]:
    """A colour for each label; a family of curves is named once."""
    colours: dict[str, str] = {}
    used = dict.fromkeys(Role, 0)
    apart = min(0.12, 0.6 / max(len(panel.curves), 1))  # marks of one column stand side by side
    for place, curve in enumerate(panel.curves):
        label = curve.label if curve.label not in colours else "_"  # matplotlib leaves such names out of legends
        if curve.label not in colours:
            colours[curve.label] = _SHADES[curve.role][used[curve.role] % len(_SHADES[curve.role])]
            used[curve.role] += 1
        _draw_curve(axes, curve, label, colours[curve.label], apart * (place - (len(panel.curves) - 1) / 2))
    return colours


def _draw_curve(axes: Any, curve: Curve, label: str, colour: str, aside: float) -> None:
    if curve.dots:
        style = {"marker": _MARKS[curve.role], "linestyle": "none", "markersize": 6}
        axes.plot([x + aside for x in curve.x], curve.y, color=colour, label=label, **style)
    else:
        style = {"linestyle": _LINES[curve.role], "linewidth": 2.2 if curve.role is Role.LOWER else 1.6}
        axes.plot(curve.x, curve.y, color=colour, label=label, **style)


def _plain_numbers(axis: Any) -> None:
    """Where a logarithmic axis has few decades: 20 and 50 beside 10, all written out."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = axis.get_view_interval()
    if low > 0 and high / low < (_FEW_DECADES if high < _LONG_NUMBER else _ONE_DECADE):
        axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        for setter in (axis.set_major_formatter, axis.set_minor_formatter):
            setter(FuncFormatter(lambda value, _: f"{value:g}"))


def _draw_sheet(sheet: Sheet) -> Any:
    folded = [[fill(cell, _LINE) for cell in row] for row in (sheet.columns, *sheet.rows)]
    lines = [max(cell.count("\n") + 1 for cell in row) for row in folded]
    figure = blank((10.0, 0.17 * sum(lines) + 0.12 * len(lines) + 0.4))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_title(sheet.title, fontsize="medium")
    letters = [max(len(part) for row in folded for part in row[k].split("\n")) + 3 for k in range(len(sheet.columns))]
    widths = [count / sum(letters) for count in letters]
    table = axes.table(folded, colWidths=widths, loc="center", cellLoc="left", edges="horizontal")
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    heights = [0.17 * count + 0.12 for count in lines]
    for (row, _), cell in table.get_celld().items():
        cell.set_height(heights[row] / sum(heights))
        cell.set_linewidth(0.4)
    return figure


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
