"""Pictures of the planner, as wide as a phone and as a desk, light and dark: `python tools/planner_pictures.py`.

They go to out/planner; with --docs, that of docs/planner.md is made again. It needs the extra `web`, playwright, and a
chromium on the path.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

from playwright.sync_api import sync_playwright

from lastiterate.web.serve import planner

ROOT = Path(__file__).parent.parent
SIZES = {"phone": (390, 844), "desk": (1280, 900)}
READY = "body[data-done]"


@contextmanager
def served() -> Iterator[str]:
    """The address of a page that begins with the example."""
    page = planner(None, delta=1e-5)
    server = page.server()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [page.listening]})
    thread.start()
    try:
        yield page.address
    finally:
        server.should_exit = True
        thread.join()


def taken(browser: Any, address: str, size: tuple[int, int], scheme: str, path: Path, *, whole: bool) -> None:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, device_scale_factor=1.5
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(READY, timeout=60_000)
    if whole:
        page.get_by_role("button", name="Compare plans").click()
        page.wait_for_selector("#plans-found:not([hidden])", timeout=60_000)
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(path), full_page=whole)
    context.close()
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", action="store_true", help="only the picture of docs/planner.md")
    options = parser.parse_args()
    chromium = which("chromium") or which("chromium-browser") or which("google-chrome")
    with served() as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if options.docs:
            taken(browser, address, SIZES["desk"], "light", ROOT / "docs" / "images" / "planner.png", whole=False)
        else:
            for name, size in SIZES.items():
                for scheme in ("light", "dark"):
                    taken(browser, address, size, scheme, ROOT / "out" / "planner" / f"{name}-{scheme}.png", whole=True)
        browser.close()


if __name__ == "__main__":
    main()
