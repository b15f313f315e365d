"""Pages in a real browser, which the fixture `browser` starts once for a module."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 120_000  # milliseconds: a busy machine may take long, and what is there at once is seen at once
PHONE, DESK = (390, 844), (1280, 900)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on PATH: the page is not looked at")


@contextmanager
def started() -> Iterator[Any]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--hide-scrollbars"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, address: str, size: tuple[int, int] = DESK, dark: bool = False) -> Iterator[Any]:
    """The page, once everything in it is loaded."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


def screen(browser: Any, address: str, size: tuple[int, int], dark: bool = False) -> NDArray[np.float64]:
    """Red, green and blue of the first screen, between 0 and 1."""
    from matplotlib.image import imread

    with opened(browser, address, size, dark) as page:
        return np.asarray(imread(io.BytesIO(page.screenshot()))[..., :3], dtype=float)


def assert_readable(picture: NDArray[np.float64], dark: bool) -> None:
    """Dark on light or light on dark, with something in both halves."""
    grey = picture.mean(axis=2)
    background = float(np.median(grey))
    assert background < 0.3 if dark else background > 0.9
    ink = np.abs(grey - background) > 0.2
    assert ink[: len(ink) // 2].mean() > 0.01
    assert ink[len(ink) // 2 :].mean() > 0.005
