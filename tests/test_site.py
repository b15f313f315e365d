"""The site: built without warnings, fetches nothing, has no broken link, typesets its formulas and fits a phone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tools.broken_links import broken

from browsing import DESK, PHONE, needs_browser, opened

pytest.importorskip("mkdocs")

ROOT = Path(__file__).parent.parent
FETCHED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"https?:")
PAGES = ["index", "start", "choose", "theorems", "tutorials/opacus", "notebooks/train-a-private-model"]
WIDTH = "() => [document.documentElement.scrollWidth, innerWidth]"
PICTURES = "() => [...document.images].filter(one => !one.complete || !one.naturalWidth).map(one => one.src)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=quiet)
    assert built.returncode == 0, built.stderr
    return folder


def test_it_fetches_nothing_and_has_no_broken_link(site: Path) -> None:
    assert [page.name for page in site.rglob("*.html") if FETCHED.search(page.read_text())] == []
    assert broken(site) == []


@needs_browser
@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_a_phone_and_a_desk(site: Path, browser: Any, name: str) -> None:
    for size in (PHONE, DESK):
        with opened(browser, (site / f"{name}.html").as_uri(), size) as page:
            scrolled, inner = page.evaluate(WIDTH)
            assert scrolled <= inner
            assert page.evaluate(PICTURES) == []


@needs_browser
def test_formulas_are_typeset(site: Path, browser: Any) -> None:
    with_formulas = [path for path in sorted(site.rglob("*.html")) if 'class="arithmatex"' in path.read_text()]
    assert with_formulas
    for path in with_formulas:
        with opened(browser, path.as_uri()) as page:
            page.wait_for_selector(".arithmatex .katex", state="attached")
            assert page.locator(".katex-error").count() == 0, path.name
            assert page.locator(".arithmatex").count() == page.locator(".arithmatex:has(.katex)").count()
