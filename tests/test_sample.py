"""`make quick` takes the laws on a sample: every law at least once, the same ones each time, and all that is no law."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sampling import sampled

LAWS = [SimpleNamespace(nodeid=f"tests/laws/test_x.py::{law}[{case}]") for law in "abc" for case in range(100)]
OTHERS = [SimpleNamespace(nodeid=f"tests/test_documents.py::d[{case}]") for case in range(100)]
ITEMS: list[Any] = [*LAWS, *OTHERS]


def test_a_sample_has_every_law() -> None:
    kept = sampled(ITEMS, 12)
    laws = [item for item in kept if item in LAWS]
    assert {item.nodeid.partition("[")[0][-1] for item in laws} == set("abc")
    assert 10 < len(laws) < 50
    assert [item for item in kept if item not in LAWS] == OTHERS
    assert kept == sampled(ITEMS, 12)


def test_a_share_of_one_is_everything() -> None:
    assert sampled(ITEMS, 1) == ITEMS
