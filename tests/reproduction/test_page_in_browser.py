"""The first screen of the page in a real browser, as wide as a phone and as a desk."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lastiterate.reproduction.reproduce import Shown

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on PATH: the page is not looked at")
# Printed into the page by itself, so that --dump-dom shows it.
MEASURE = """<script>
const frame = document.createElement("iframe");
frame.style.cssText = "width:390px;height:800px;border:0";
frame.srcdoc = document.documentElement.outerHTML.replace(/<script>[^]*?<\\/script>/, "");
frame.onload = () => {
  const inside = frame.contentDocument.documentElement;
  const heading = frame.contentDocument.getElementById("summary").getBoundingClientRect();
  const table = frame.contentDocument.querySelector("table").getBoundingClientRect();
  document.title = [inside.scrollWidth, inside.clientWidth, Math.round(heading.top), Math.round(table.top)].join(" ");
};
document.body.append(frame);
</script>"""


def run(page: Path, *options: str) -> str:
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--virtual-time-budget=8000",
    ]
    done = subprocess.run([*command, *options, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


@needs_browser
@pytest.mark.parametrize("size", [(390, 844), (1280, 900)])
@pytest.mark.parametrize("dark", [False, True])
def test_the_first_screen_is_not_blank(
    shown: Sequence[Shown], folder: Path, tmp_path: Path, size: tuple[int, int], dark: bool
) -> None:
    from matplotlib.image import imread

    picture = tmp_path / "screen.png"
    options = ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
    run(folder / "report.html", f"--screenshot={picture}", f"--window-size={size[0]},{size[1]}", *options)
    grey = imread(picture)[..., :3].mean(axis=2)
    background = float(np.median(grey))
    assert background < 0.3 if dark else background > 0.9
    ink = np.abs(grey - background) > 0.2
    assert ink.mean() > 0.01
    assert ink[: len(ink) // 2].any()
    assert ink[len(ink) // 2 :].any()


@needs_browser
def test_a_phone_shows_the_summary_and_scrolls_tables_inside(
    shown: Sequence[Shown], folder: Path, tmp_path: Path
) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    measured = tmp_path / "measured.html"
    measured.write_text(text.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    dom = run(measured, "--dump-dom", "--window-size=1200,900")
    found = re.search(r"<title>(\d+) (\d+) (\d+) (\d+)</title>", dom)
    assert found, dom[:500]
    scroll, client, heading, table = map(int, found.groups())
    assert client == 390
    assert scroll <= client
    assert 0 < heading < table < 844
