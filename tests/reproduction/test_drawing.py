"""Every picture can be read: few names, each of them once, none over another."""

from __future__ import annotations

import itertools

import pytest

from lastiterate.reproduction.catalogue import exhibit_of
from lastiterate.reproduction.drawing import drawn
from lastiterate.reproduction.exhibit import Setting
from lastiterate.reproduction.labels import spread
from lastiterate.reproduction.pictures import Grid, Panel

QUICK = Setting(quick=True)
MOST = 6  # names in one frame


@pytest.mark.parametrize("wanted", [[0.5, 0.5, 0.5], [0.95, 0.97, 1.0], [0.0, 0.3, 0.31], [0.2]])
def test_labels_do_not_overlap(wanted: list[float]) -> None:
    heights = [0.1] * len(wanted)
    places = spread(wanted, heights)
    assert all(b - a >= 0.1 - 1e-12 for a, b in itertools.pairwise(places))
    assert max(places) <= 0.95 + 1e-12
    assert spread([0.1, 0.9], [0.1, 0.1]) == [0.1, 0.9]


@pytest.mark.parametrize(
    "key", ["kong2025-fig-1", "bok2024-table-3", "bok2024-fig-6", "bok2024-fig-4", "balle2019-example-2"]
)
def test_few_names_in_each_frame(key: str) -> None:
    panels = [one for one in exhibit_of(key).make(QUICK).panels if isinstance(one, Panel)]
    assert panels
    for panel in panels:
        assert 0 < len({curve.label for curve in panel.curves}) <= MOST, panel.title
        assert panel.title


@pytest.mark.parametrize("key", ["kong2025-fig-1", "bok2024-fig-6"])
def test_every_curve_is_named_beside_its_end_or_in_the_empty_corner(key: str) -> None:
    made = exhibit_of(key).make(QUICK)
    for axes, panel in zip(drawn(made.panels).axes, made.panels, strict=True):
        assert isinstance(panel, Panel)
        written = [text.get_text().replace("\n", " ") for text in axes.texts]
        written += [text.get_text() for text in (axes.get_legend().get_texts() if axes.get_legend() else ())]
        assert sorted(written) == sorted({curve.label for curve in panel.curves})


def test_the_grid_names_its_rows_columns_and_axes() -> None:
    (grid,) = exhibit_of("bok2024-fig-10").make(QUICK).panels
    assert isinstance(grid, Grid)
    figure = drawn((grid,))
    assert len(figure.axes) == len(grid.rows) * len(grid.columns) == 25
    assert [axes.get_title() for axes in figure.axes[:5]] == list(grid.columns)
    assert [axes.get_ylabel() for axes in figure.axes[::5]] == list(grid.rows)
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("type I error", "type II error")
    assert len(figure.legends[0].get_texts()) == 3
