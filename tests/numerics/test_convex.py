from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lastiterate.numerics.arrays import lower_hull


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=40))
def test_hull_is_convex_below_the_points_and_touches_the_ends(values: list[float]) -> None:
    x, y = np.arange(len(values), dtype=float), np.array(values)
    hull_x, hull_y = lower_hull(x, y)
    assert (np.interp(x, hull_x, hull_y) <= y + 1e-12).all()
    assert (np.diff(np.diff(hull_y) / np.diff(hull_x)) >= -1e-12).all()
    assert (hull_y[0], hull_y[-1]) == (y[0], y[-1])
