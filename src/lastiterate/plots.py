"""Plots of plain numbers; matplotlib is imported only here, when a plot is made."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lastiterate.digits import above, below
from lastiterate.errors import InvalidInput, Unavailable, must_be, shown, worded
from lastiterate.writing import write_bytes

Target = str | Path | None
Curve = tuple[Sequence[float], Sequence[float], str, str]  # x, y, the colour, and what stands at its end

_BEST, _EVERY, _LOWER, _OTHER = "tab:blue", "tab:orange", "tab:green", "tab:gray"
_SIZE = (8.5, 4.2)
_LINEAR_UP_TO = 50  # times the smallest bar
_APART = 0.06  # of the height: names at the ends of curves


def draw_growth(
    along: Sequence[float],
    released: Sequence[float],
    hidden: Sequence[float],
    unit: str,
    delta: float,
    what: str,
    lower: float,
    path: Target,
    ax: Any = None,
) -> Any:
    """ε as a run goes on: with every iterate released, with the last alone, and the lower bound of the whole run."""
    axes = _axes(path, ax)
    axes.set(title="Privacy loss during training", xlabel=unit, ylabel=f"ε at δ = {delta:g}")
    curves: list[Curve] = [
        (along, hidden, _BEST, f"{what}: ε = {above(hidden[-1])}"),
        (along, released, _EVERY, f"every iterate released: ε = {above(released[-1])}"),
    ]
    for (x, y, colour, _), line in zip(curves, ("-", "--"), strict=True):
        axes.plot(x, y, line, color=colour)
    if lower > 0:
        curves.append((along[-1:], [lower], _LOWER, f"lower bound: ε ≥ {below(lower)}"))
        axes.plot(along[-1:], [lower], "^", color=_LOWER)
    axes.plot(along[-1:], hidden[-1:], "o", color=_BEST)
    axes.set_ylim(0, None)
    axes.xaxis.get_major_locator().set_params(integer=True)
    _name_ends(axes, curves)
    return _finished(axes, path)


def draw_records(epsilons: Sequence[float], delta: float, path: Target, ax: Any = None) -> Any:
    """ε of every batch, by its place in the data."""
    axes, places, worst = _axes(path, ax), range(1, len(epsilons) + 1), max(epsilons)
    axes.plot(places, epsilons, ".-", color=_BEST)
    axes.axhline(worst, color=_OTHER, linestyle="--")
    axes.set(title="Each record's own privacy loss", xlabel="batch of the record", ylabel=f"ε at δ = {delta:g}")
    axes.set_ylim(0, 1.08 * worst if 0 < worst < math.inf else None)
    axes.xaxis.get_major_locator().set_params(integer=True)
    _name_ends(axes, [([places[-1]], [worst], _OTHER, f"worst record: ε = {above(worst)}")])
    return _finished(axes, path)


def draw_frontier(
    frontier: Sequence[tuple[float, float]],
    epsilon: float,
    points: Sequence[tuple[float, str]],
    delta: float,
    path: Target,
    ax: Any = None,
) -> Any:
    """Expected error against ε, and plans at one ε: of each way the best has its name beside it."""
    axes = _axes(path, ax)
    epsilons, errors = zip(*frontier, strict=True)
    axes.plot(epsilons, errors, "-", color=_OTHER)
    axes.set(xscale="log", yscale="log", xlabel=f"ε at δ = {delta:g}", ylabel="expected error (reference problem)")
    axes.set_title(worded("frontier_title"))
    axes.set_xticks(epsilons, labels=[f"{one:g}" for one in epsilons])
    axes.set_xticks([], minor=True)
    curves: list[Curve] = [(epsilons, errors, _OTHER, "best plan")]
    ways = dict.fromkeys(way for _, way in points)
    for way, colour in zip(ways, (_BEST, _EVERY, _LOWER), strict=False):
        found = [error for error, name in points if name == way]
        axes.plot([epsilon] * len(found), found, "o", color=colour)
        curves.append(([epsilon], [min(found)], colour, f"● {way}"))
    _name_ends(axes, curves)
    return _finished(axes, path)


def draw_comparison(
    names: Sequence[str], epsilons: Sequence[float], delta: float, lower: float, path: Target, ax: Any = None
) -> Any:
    """ε of every theorem, as bars, and the lower bound; what is infinite has no bar."""
    axes = _axes(path, ax)
    shown = [(name, one) for name, one in zip(names, epsilons, strict=True) if math.isfinite(one)][::-1]
    bars = axes.barh([name for name, _ in shown], [one for _, one in shown], color=_BEST)
    axes.bar_label(bars, fmt="%.4g", padding=3)
    values = [one for _, one in shown] or [1.0]
    axes.set(title="ε by each theorem that applies", xlabel=f"ε at δ = {delta:g}")
    axes.set_xscale("log" if max(values) > _LINEAR_UP_TO * min(values) > 0 else "linear")
    axes.margins(x=0.15)
    if lower > 0:
        axes.axvline(lower, color=_LOWER, linestyle="--")
        at, side = (lower, 1.01), axes.get_xaxis_transform()
        axes.annotate(f"lower bound: ε ≥ {below(lower)}", at, xycoords=side, color=_LOWER, ha="left", va="bottom")
        axes.set_title(axes.get_title(), pad=18)
    return _finished(axes, path)


def draw_audit(
    one: Sequence[float],
    two: Sequence[float],
    threshold: float,
    epsilon: float,
    delta: float,
    confidence: float,
    path: Target,
    ax: Any = None,
) -> Any:
    """Scores of the last iterates on two neighbouring data sets."""
    axes, low, high = _axes(path, ax), min(*one, *two), max(*one, *two)
    sides = sorted(((one, _BEST, "data"), (two, _EVERY, "neighbour")), key=lambda side: sum(side[0]))
    for (scores, colour, name), place, align in zip(sides, (0.02, 0.98), ("left", "right"), strict=True):
        axes.hist(scores, bins=40, range=(low, high), color=colour, alpha=0.6)
        axes.text(place, 0.97, name, transform=axes.transAxes, color=colour, ha=align, va="top")
    axes.axvline(threshold, color=_OTHER, linestyle="--")
    top = axes.get_xaxis_transform()
    axes.annotate(" best threshold", (threshold, 0.97), xycoords=top, color=_OTHER, ha="left", va="top")
    title = worded("audit_title", epsilon=epsilon, delta=delta, confidence=100 * confidence)
    axes.set(xlabel="score of the last iterate", ylabel="number of runs", title=title)
    return _finished(axes, path)


def draw_trace(trace: Any, path: Target, ax: Any = None) -> Any:
    """Coordinates along the steps, a few of them."""
    axes, flat = _axes(path, ax), trace.reshape(len(trace), -1)[:, :8]
    axes.set(title="Iterates, coordinate by coordinate", xlabel="steps", ylabel="value of the coordinate")
    drawn = axes.plot(flat, linewidth=0.7)
    named = enumerate(zip(drawn, flat.T, strict=True), 1)
    _name_ends(axes, [([len(flat) - 1], [float(y[-1])], line.get_color(), f"{place}") for place, (line, y) in named])
    return _finished(axes, path)


def draw_errors(
    along: Sequence[float], errors: dict[str, Sequence[float]], name: str, path: Target, ax: Any = None
) -> Any:
    """Mean squared errors of several mechanisms, on logarithmic axes."""
    axes = _axes(path, ax)
    lines = [axes.plot(along, values)[0] for values in errors.values()]
    axes.set(xscale="log", yscale="log", title="Mean squared error", xlabel=name, ylabel="mean squared error")
    named = zip(errors.items(), lines, strict=True)
    _name_ends(axes, [(along, values, line.get_color(), label) for (label, values), line in named])
    return _finished(axes, path)


def _name_ends(axes: Any, curves: Sequence[Curve]) -> None:
    """Write each curve's name to the right of its end, apart enough to be read."""
    ends = [(float(y[-1]), colour, name) for _, y, colour, name in curves if math.isfinite(y[-1])]
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)  # names stay where they are
    data_to_axes = axes.transData + axes.transAxes.inverted()
    before = -math.inf
    for height, colour, name in sorted((data_to_axes.transform((1.0, y))[1], *rest) for y, *rest in ends):
        before = max(height, before + _APART)
        axes.text(1.02, before, name, transform=axes.transAxes, color=colour, va="center", fontsize="small")


def blank(size: tuple[float, float]) -> Any:
    """A figure without frames, `width` by `height` inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Unavailable("matplotlib_missing") from error
    return Figure(figsize=size, layout="constrained")


def save(figure: Any, path: str | Path) -> None:
    """Save the figure in the format that the ending of the file name says."""
    if not isinstance(path, str | Path):
        raise must_be("path", "the name of a file", f"{shown(path):.60}")
    try:
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=150, format=Path(path).suffix.lstrip(".") or None)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(Path(path), drawn.getvalue())
    except (ValueError, OSError, RuntimeError) as error:
        raise InvalidInput("not_drawn", field="path", path=str(path), error=str(error).rstrip(".")) from error


def _axes(path: Target, ax: Any) -> Any:
    """The given axes; else new ones, of a figure that a notebook shows unless it is written to a file."""
    if ax is not None:
        if not hasattr(ax, "get_xaxis_transform"):
            raise must_be("ax", "the axes of a matplotlib figure", f"{shown(ax):.60}")
        return ax
    if path is not None:
        return blank(_SIZE).subplots()
    blank(_SIZE)  # says what is missing, if it is
    from matplotlib import pyplot

    return pyplot.subplots(figsize=_SIZE, layout="constrained")[1]


def _finished(axes: Any, path: Target) -> Any:
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    if path is not None:
        save(axes.figure, path)
    return axes
