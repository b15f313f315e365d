from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("lastiterate", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("lastiterate")

# Tests that share something that takes long to make: one worker of a parallel run makes it, and no other waits for it.
SHARED = {"tests/reproduction/": "papers", "test_errata": "errata", "tests/laws/test_refusals.py": "refusals"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "test_every_theorem.py" in item.nodeid and "[" in item.nodeid:  # examples are drawn for each theorem
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("[")[2].rstrip("]")))
        for part, group in SHARED.items():
            if part in item.nodeid:
                item.add_marker(pytest.mark.xdist_group(group))
