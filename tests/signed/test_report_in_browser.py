"""The page to sign in a real browser: as wide as a phone and as a desk, light and dark, and on paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from reports import PAGES

from browsing import DESK, PHONE, assert_readable, needs_browser, opened, screen

pytestmark = needs_browser
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# With everything unfolded: the width of the page, and what sticks out of it.
MEASURE = """() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  const wide = [...document.body.querySelectorAll("*")].filter(one => one.getBoundingClientRect().right > innerWidth + 0.5);
  return [document.documentElement.scrollWidth, ...wide.map(one => one.tagName)];
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages")
    for name in ("replayed", "seeded"):
        (path / f"{name}.html").write_text(PAGES[name], encoding="utf-8")
    return path


@pytest.mark.parametrize("size", [PHONE, DESK])
@pytest.mark.parametrize("dark", [False, True])
def test_the_first_screen_is_readable(folder: Path, browser: Any, size: tuple[int, int], dark: bool) -> None:
    assert_readable(screen(browser, (folder / "replayed.html").as_uri(), size, dark), dark)


def test_a_page_that_cannot_be_signed_shows_it_in_red_at_once(folder: Path, browser: Any) -> None:
    for name, least in (("seeded", 0.05), ("replayed", 0.0)):
        picture = screen(browser, (folder / f"{name}.html").as_uri(), (390, 300))
        red, green, blue = (picture[..., colour] for colour in range(3))
        share = ((red > green + 0.03) & (red > blue + 0.03)).mean()
        assert share >= least if least else share < 0.01


@pytest.mark.parametrize("width", [320, 390, 673, 1280])
def test_nothing_is_cut_off_at_any_width(folder: Path, browser: Any, width: int) -> None:
    with opened(browser, (folder / "replayed.html").as_uri(), (width, 800)) as page:
        assert page.evaluate(MEASURE) == [width]


def test_it_runs_no_script_whoever_puts_one_in(browser: Any, tmp_path: Path) -> None:
    script = "<script>document.title = 'ran'</script><img src=x onerror=\"document.title = 'ran'\">"
    path = tmp_path / "page.html"
    for policy, title in (("with", "Differential privacy report"), ("without", "ran")):
        text = PAGES["replayed"] if policy == "with" else POLICY.sub("", PAGES["replayed"])
        path.write_text(text.replace("</body>", f"{script}</body>"), encoding="utf-8")
        with opened(browser, path.as_uri()) as page:
            assert page.title() == title


def test_it_prints_on_a_few_sheets_of_a4(folder: Path, browser: Any) -> None:
    with opened(browser, (folder / "replayed.html").as_uri()) as page:
        content = page.pdf(prefer_css_page_size=True)
    assert content.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 4
    box = re.search(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", content)
    assert box
    assert [round(float(side)) for side in box.groups()] in ([595, 842], [596, 842], [595, 841])
