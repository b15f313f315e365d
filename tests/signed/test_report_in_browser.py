"""The page to sign in a real browser: as wide as a phone and as a desk, light and dark, and on paper."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from reports import PAGES

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on PATH: the page is not looked at")
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# The page in a frame of each width, with everything unfolded; what sticks out of it is named in the title.
MEASURE = """<script>
const whole = document.documentElement.outerHTML.replace(/<script>[^]*?<\\/script>/, "");
const inside = whole.replaceAll("<details", "<details open");
const found = [];
const widths = [320, 390, 673, 1280];
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:800px;border:0`;
  frame.srcdoc = inside;
  frame.onload = () => {
    const page = frame.contentDocument;
    const wide = [...page.body.querySelectorAll("*")].filter(one => one.getBoundingClientRect().right > width + 0.5);
    found.push(`${width}:${page.documentElement.scrollWidth}:${wide.map(one => one.tagName).join("+")}`);
    if (found.length === widths.length) document.title = found.join(" ");
  };
  document.body.append(frame);
}
</script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages")
    for name in ("replayed", "seeded"):
        (path / f"{name}.html").write_text(PAGES[name], encoding="utf-8")
    return path


def browsed(page: Path, *options: str) -> str:
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    done = subprocess.run([*command, *options, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


@pytest.mark.parametrize("size", [(390, 844), (1280, 900)])
@pytest.mark.parametrize("dark", [False, True])
def test_the_first_screen_is_readable(folder: Path, tmp_path: Path, size: tuple[int, int], dark: bool) -> None:
    from matplotlib.image import imread

    picture = tmp_path / "screen.png"
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    browsed(folder / "replayed.html", f"--screenshot={picture}", f"--window-size={size[0]},{size[1]}", scheme)
    grey = imread(picture)[..., :3].mean(axis=2)
    background = float(np.median(grey))
    assert background < 0.3 if dark else background > 0.9
    ink = np.abs(grey - background) > 0.2
    assert ink[: len(ink) // 2].mean() > 0.01
    assert ink[len(ink) // 2 :].mean() > 0.005


def test_a_page_that_cannot_be_signed_shows_it_in_red_at_once(folder: Path, tmp_path: Path) -> None:
    from matplotlib.image import imread

    for name, least in (("seeded", 0.05), ("replayed", 0.0)):
        picture = tmp_path / f"{name}.png"
        browsed(folder / f"{name}.html", f"--screenshot={picture}", "--window-size=390,300")
        red, green, blue = (imread(picture)[..., colour] for colour in range(3))
        share = ((red > green + 0.03) & (red > blue + 0.03)).mean()
        assert share >= least if least else share < 0.01


def test_nothing_is_cut_off_at_any_width(folder: Path, tmp_path: Path) -> None:
    """A copy without its policy, so that it can be measured."""
    measured = tmp_path / "measured.html"
    text = POLICY.sub("", PAGES["replayed"])
    measured.write_text(text.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    dom = browsed(measured, "--dump-dom", "--virtual-time-budget=8000", "--window-size=1400,900")
    found = re.search(r"<title>([^<]*)</title>", dom)
    assert found
    assert sorted(found[1].split()) == ["1280:1280:", "320:320:", "390:390:", "673:673:"]


def test_it_runs_no_script_whoever_puts_one_in(tmp_path: Path) -> None:
    script = "<script>document.title = 'ran'</script><img src=x onerror=\"document.title = 'ran'\">"
    page = tmp_path / "page.html"
    for policy, title in (("with", "Differential privacy report"), ("without", "ran")):
        text = PAGES["replayed"] if policy == "with" else POLICY.sub("", PAGES["replayed"])
        page.write_text(text.replace("</body>", f"{script}</body>"), encoding="utf-8")
        assert f"<title>{title}</title>" in browsed(page, "--dump-dom", "--virtual-time-budget=2000")


def test_it_prints_on_a_few_sheets_of_a4(folder: Path, tmp_path: Path) -> None:
    paper = tmp_path / "report.pdf"
    browsed(folder / "replayed.html", f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    content = paper.read_bytes()
    assert content.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 4
    box = re.search(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", content)
    assert box
    assert [round(float(side)) for side in box.groups()] in ([595, 842], [596, 842], [595, 841])
