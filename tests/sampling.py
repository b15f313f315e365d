"""Laws on a sample, for `make quick`."""

from __future__ import annotations

from zlib import crc32

import pytest


def sampled(items: list[pytest.Item], share: int) -> list[pytest.Item]:
    """The same ones each time; what is no law stays."""
    seen: set[str] = set()
    kept = []
    for item in items:
        law = item.nodeid.partition("[")[0]
        if law not in seen or "tests/laws/" not in law or crc32(item.nodeid.encode()) % share == 0:
            kept.append(item)
        seen.add(law)
    return kept
