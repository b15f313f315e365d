"""Links of the built site that lead nowhere, anchors included: `python tools/broken_links.py out/site` lists them."""

from __future__ import annotations

import re
import sys
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINK = re.compile(r"""\s(?:href|src)=(?:"([^"]*)"|([^\s"'>]+))""")
NAME = re.compile(r"""\s(?:id|name)=(?:"([^"]*)"|([^\s"'>]+))""")


@cache
def names_in(page: Path) -> frozenset[str]:
    return frozenset(unescape(one or other) for one, other in NAME.findall(page.read_text()))


def broken(site: Path) -> list[str]:
    """Each as `page: link`; addresses on other hosts are not followed."""
    found = []
    for page in sorted(site.rglob("*.html")):
        links = {unescape(one or other) for one, other in LINK.findall(page.read_text())}
        found += [
            f"{page.relative_to(site)}: {link}" for link in sorted(links) if not _leads_somewhere(site, page, link)
        ]
    return found


def _leads_somewhere(site: Path, page: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    path = unquote(parts.path)
    target = site / path.removeprefix("/") if path.startswith("/") else page.parent / (path or page.name)
    target = target / "index.html" if target.is_dir() else target
    anchor = unquote(parts.fragment)
    return target.exists() and (not anchor or target.suffix != ".html" or anchor in names_in(target))


if __name__ == "__main__":
    sys.exit("\n".join(broken(Path(sys.argv[1]))) or None)
