"""The most costly chains that a search found, computed again; nothing that is proved lies below them."""

from __future__ import annotations

import pytest
from benchmarks.tightness.extremal import kept, restored
from benchmarks.tightness.extremal_chains import DELTA, SETTINGS, OnInterval

import lastiterate as li

KEPT = kept()
SHAPES = ("one loss", "changing maps")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_a_kept_chain_costs_what_it_says_and_no_more_than_is_proved(setting: object) -> None:
    for shape in SHAPES:
        entry = KEPT[f"{setting.name}, {shape}"]  # type: ignore[attr-defined]
        chain = restored(entry)
        assert chain == chain.within()
        assert chain.epsilon(setting) == pytest.approx(entry["epsilon"], rel=0.02)  # type: ignore[arg-type]
        assert (shape == "one loss") == (chain.last == ())
    assert entry["epsilon"] <= li.account(setting.run, DELTA).epsilon  # type: ignore[attr-defined]


def test_a_kept_number_is_less_by_what_its_grid_may_be_wrong() -> None:
    setting = SETTINGS[2]
    entry = KEPT[f"{setting.name}, changing maps"]
    assert restored(entry).least_epsilon(setting) == pytest.approx(entry["epsilon"], rel=1e-6)


def test_a_search_keeps_slopes_and_splits_that_are_allowed() -> None:
    wild = OnInterval(slopes=(-1.0, 0.5, 2.0, 1.0), split=1.5).within()
    assert wild == OnInterval(slopes=(0.0, 0.5, 1.0, 1.0), split=1.0)
