"""Pictures of plain numbers; matplotlib is imported only here, when one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lastiterate.errors import InvalidInput, Unavailable, shown

Target = str | Path | None
_LINEAR_UP_TO = 50  # times the smallest bar


def draw_growth(
    along: Sequence[float],
    released: Sequence[float],
    hidden: Sequence[float],
    unit: str,
    delta: float,
    what: str,
    path: Target,
) -> Any:
    """ε as a run goes on: with every iterate released, and with the last alone."""
    figure, axes = _figure()
    axes.plot(along, hidden, color="tab:blue", label=what)
    axes.plot(along, released, "--", color="tab:orange", label="every iterate released")
    axes.plot(along[-1:], hidden[-1:], "o", color="tab:blue", label=f"this run: ε = {hidden[-1]:.4g}")
    axes.set(xlabel=unit, ylabel=f"ε at δ = {delta:g}", ylim=(0, None))
    axes.legend()
    return _finished(figure, axes, path)


def draw_records(epsilons: Sequence[float], delta: float, path: Target) -> Any:
    """ε of every batch, by its place in the data."""
    figure, axes = _figure()
    axes.plot(range(1, len(epsilons) + 1), epsilons, ".-", color="tab:blue", label="a record's own ε")
    axes.axhline(max(epsilons), color="tab:gray", linestyle="--", label="worst record")
    axes.set(xlabel="batch of the record", ylabel=f"ε at δ = {delta:g}", ylim=(0, None))
    axes.legend()
    return _finished(figure, axes, path)


def draw_frontier(
    frontier: Sequence[tuple[float, float]],
    epsilon: float,
    points: Sequence[tuple[float, str]],
    delta: float,
    path: Target,
) -> Any:
    """Expected error against ε, and plans at one ε."""
    figure, axes = _figure()
    axes.plot(*zip(*frontier, strict=True), "-", color="tab:gray", label="the best plan at each ε")
    ways = dict.fromkeys(way for _, way in points)
    for way, colour in zip(ways, ("tab:blue", "tab:orange", "tab:green"), strict=False):
        errors = [error for error, name in points if name == way]
        axes.plot([epsilon] * len(errors), errors, "o", color=colour, label=way)
    axes.set(xscale="log", yscale="log", xlabel=f"ε at δ = {delta:g}", ylabel="expected error (reference problem)")
    axes.legend()
    return _finished(figure, axes, path)


def draw_comparison(names: Sequence[str], epsilons: Sequence[float], delta: float, path: Target) -> Any:
    """ε of every theorem, as bars."""
    figure, axes = _figure()
    bars = axes.barh(list(names)[::-1], list(epsilons)[::-1], color="tab:blue")
    axes.bar_label(bars, fmt="%.4g", padding=3)
    axes.set(xscale="log" if max(epsilons) > _LINEAR_UP_TO * min(epsilons) else "linear", xlabel=f"ε at δ = {delta:g}")
    axes.margins(x=0.15)
    return _finished(figure, axes, path)


def draw_audit(
    one: Sequence[float],
    two: Sequence[float],
    threshold: float,
    epsilon: float,
    delta: float,
    confidence: float,
    path: Target,
) -> Any:
    """Scores of the last iterates on two neighbouring data sets."""
    figure, axes = _figure()
    low, high = min(*one, *two), max(*one, *two)
    for scores, colour, name in ((one, "tab:blue", "the data"), (two, "tab:orange", "its neighbour")):
        axes.hist(scores, bins=40, range=(low, high), color=colour, alpha=0.6, label=name)
    axes.axvline(threshold, color="tab:gray", linestyle="--", label="the best threshold")
    title = f"ε ≥ {epsilon:.4g} at δ = {delta:g}, with {100 * confidence:g}% confidence"
    axes.set(xlabel="score of the last iterate", ylabel="runs", title=title)
    axes.legend()
    return _finished(figure, axes, path)


def draw_trace(trace: Any, path: Target) -> Any:
    """Coordinates along the steps, a few of them."""
    figure, axes = _figure()
    flat = trace.reshape(len(trace), -1)[:, :8]
    axes.plot(flat, linewidth=0.7)
    axes.set(xlabel="steps", ylabel="coordinates")
    return _finished(figure, axes, path)


def draw_errors(along: Sequence[float], errors: dict[str, Sequence[float]], name: str, path: Target) -> Any:
    """Mean squared errors of several mechanisms, on logarithmic axes."""
    figure, axes = _figure()
    for label, values in errors.items():
        axes.plot(along, values, label=label)
    axes.set(xscale="log", yscale="log", xlabel=name, ylabel="mean squared error")
    axes.legend()
    return _finished(figure, axes, path)


def blank(size: tuple[float, float]) -> Any:
    """A figure without frames, so many inches wide and high."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Unavailable(
            "plots need matplotlib, which is not installed. Run pip install 'lastiterate[plots]'."
        ) from error
    return Figure(figsize=size, layout="constrained")


def save(figure: Any, path: str | Path) -> None:
    """In the format that the name of the file says."""
    if not isinstance(path, str | Path):
        raise InvalidInput(f"path must be the name of a file. Got {shown(path):.60}.", field="path")
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except (ValueError, OSError, RuntimeError) as error:
        raise InvalidInput(f"{path} cannot be drawn: {str(error).rstrip('.')}.", field="path") from error


def _figure() -> tuple[Any, Any]:
    figure = blank((7, 4.2))
    return figure, figure.subplots()


def _finished(figure: Any, axes: Any, path: Target) -> Any:
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    if path is not None:
        save(figure, path)
    return figure
