"""Curves as SVG, small enough to need no library and no script; colours are those of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 480, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 14, 46
_TICKS = 5


@dataclass(frozen=True)
class ChartLine:
    """`style` is a class of the page: best, every or guess."""

    name: str
    style: str
    places: tuple[float, ...]
    heights: tuple[float, ...]

    @property
    def drawn(self) -> list[tuple[float, float]]:
        """What is finite."""
        return [pair for pair in zip(self.places, self.heights, strict=True) if all(map(math.isfinite, pair))]


def chart(title: str, across: str, upwards: str, curves: Sequence[ChartLine]) -> list[str]:
    """Lines of HTML: the picture, and a key to its curves. All values are 0 or more."""
    shown = [one for one in curves if len(one.drawn) > 1]
    widest = max((place for one in shown for place, _ in one.drawn), default=1.0)
    highest = max((height for one in shown for _, height in one.drawn), default=1.0) or 1.0
    axes = _Axes(_ticks(widest), _ticks(highest))
    return [
        "<figure>",
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">',
        *axes.lines(),
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:g}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(across)}</text>',
        f'<text transform="translate(14 {(_TOP + _HEIGHT - _BOTTOM) / 2:g}) rotate(-90)" text-anchor="middle">'
        f"{escape(upwards)}</text>",
        *(axes.drawn(one) for one in shown),
        "</svg>",
        f"<figcaption><b>{escape(title)}</b> {_key(shown)}</figcaption>",
        "</figure>",
    ]


def _key(curves: Sequence[ChartLine]) -> str:
    return " ".join(
        f'<span class="key"><svg viewBox="0 0 24 8" aria-hidden="true"><path class="{one.style}" d="M0 4H24"/></svg> '
        f"{escape(one.name)}</span>"
        for one in curves
    )


@dataclass(frozen=True)
class _Axes:
    """Both from 0 to their last tick."""

    across: tuple[float, ...]
    upwards: tuple[float, ...]

    def place(self, value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / self.across[-1]

    def height(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / self.upwards[-1]

    def lines(self) -> list[str]:
        found = []
        for tick in self.upwards:
            y = self.height(tick)
            found.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
            found.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        for tick in self.across:
            x = self.place(tick)
            found.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
            found.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
        return found

    def drawn(self, curve: ChartLine) -> str:
        points = "L".join(f"{self.place(place):.1f} {self.height(height):.1f}" for place, height in curve.drawn)
        return f'<path class="{curve.style}" d="M{points}"/>'


def _ticks(highest: float) -> tuple[float, ...]:
    """Round numbers from 0 to the first that is not below."""
    rough = highest / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return tuple(step * count for count in range(math.ceil(highest / step - 1e-9) + 1))
