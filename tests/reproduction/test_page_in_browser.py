"""The first screen of the page in a real browser, as wide as a phone and as a desk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from browsing import DESK, PHONE, assert_readable, needs_browser, opened, screen
from lastiterate.reproduction.reproduce import Shown

pytestmark = needs_browser
MEASURE = """() => {
  const top = name => document.querySelector(name).getBoundingClientRect().top;
  return [document.documentElement.scrollWidth, document.documentElement.clientWidth, top("#summary"), top("table")];
}"""


@pytest.mark.parametrize("size", [PHONE, DESK])
@pytest.mark.parametrize("dark", [False, True])
def test_the_first_screen_is_readable(
    shown: Sequence[Shown], folder: Path, browser: Any, size: tuple[int, int], dark: bool
) -> None:
    assert_readable(screen(browser, (folder / "report.html").as_uri(), size, dark), dark)


def test_a_phone_shows_the_summary_and_scrolls_tables_inside(
    shown: Sequence[Shown], folder: Path, browser: Any
) -> None:
    with opened(browser, (folder / "report.html").as_uri(), PHONE) as page:
        scroll, client, heading, table = page.evaluate(MEASURE)
    assert client == 390
    assert scroll <= client
    assert 0 < heading < table < 844
