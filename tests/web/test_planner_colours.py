"""What is written can be read: in both schemes letters and curves stand out from what is behind them."""

from __future__ import annotations

import re

import pytest

from lastiterate.web.serve import STATIC

TEXT = ("ink", "soft", "accent", "bad", "composition", "papers", "ours", "lower")
CURVES = ("composition", "papers", "ours", "lower")


def schemes() -> dict[str, dict[str, str]]:
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    return {name: dict(re.findall(r"--([\w-]+): (#\w{6});", part)) for name, part in (("light", light), ("dark", dark))}


def luminance(colour: str) -> float:
    """Relative, as WCAG defines it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out(scheme: str) -> None:
    colours = schemes()[scheme]
    for name in TEXT:
        for behind in ("paper", "sheet"):
            assert contrast(colours[name], colours[behind]) >= 4.5, (name, behind)
    assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
    assert contrast(colours["control"], colours["sheet"]) >= 3


def seen_without_green(colour: str) -> tuple[float, ...]:
    """About as an eye without green cones sees it (Viénot, Brettel and Mollon 1999), in linear light."""
    red, green, blue = ((int(colour[place : place + 2], 16) / 255) ** 2.2 for place in (1, 3, 5))
    both = 0.29275 * red + 0.70725 * green
    return both, both, -0.02234 * red + 0.02234 * green + blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_curves_differ_also_for_those_who_see_no_green(scheme: str) -> None:
    """Besides, each has dashes of its own, and its name beside it."""
    found = [seen_without_green(schemes()[scheme][name]) for name in CURVES]
    for index, one in enumerate(found):
        for other in found[:index]:
            assert max(abs(a - b) for a, b in zip(one, other, strict=True)) > 0.04
