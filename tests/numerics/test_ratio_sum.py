"""Contour and lattice are two independent roads: wherever both can be walked, their brackets overlap."""

from __future__ import annotations

import math

import pytest

from lastiterate.numerics.contour import Contour
from lastiterate.numerics.discretise import Ratio
from lastiterate.numerics.mixture_ratio import (
    MIXTURE_OVER_MIRROR,
    MIXTURE_OVER_NORMAL,
    NORMAL_OVER_MIXTURE,
    SYMMETRISED,
    Shape,
)
from lastiterate.numerics.normal_gap import log_gap
from lastiterate.numerics.ratio_sum import RatioSum


@pytest.mark.parametrize("shape", [MIXTURE_OVER_NORMAL, NORMAL_OVER_MIXTURE, MIXTURE_OVER_MIRROR, SYMMETRISED])
@pytest.mark.parametrize(("mode", "weight", "count"), [(1.0, 0.05, 200), (0.4, 0.3, 80), (2.0, 0.2, 150)])
@pytest.mark.parametrize("log_excess", [-25.0, -9.0, -2.0])
def test_contour_and_lattice_overlap(shape: Shape, mode: float, weight: float, count: int, log_excess: float) -> None:
    total = RatioSum(((Ratio(shape, mode, weight), count),))
    threshold = total.threshold_upper(log_excess)
    if threshold == 0:
        threshold = 0.1
    contour = total._sharp_at(threshold)
    assert isinstance(contour, Contour)
    abscissa = total.cumulant.saddle_at(threshold)
    lattice = total._lattice_pair(abscissa, threshold, log_excess)
    assert lattice.log_lower(threshold) <= contour.log_upper(threshold)
    assert contour.log_lower(threshold) <= lattice.log_upper(threshold)
    assert abs(lattice.log_upper(threshold) - contour.log_upper(threshold)) < 1e-3
    assert contour.log_upper(threshold) - contour.log_lower(threshold) < 1e-6


def test_normal_variance_alone_is_the_normal_gap() -> None:
    total = RatioSum((), variance=4.0)
    for threshold in (0.0, 2.0, 15.0):
        exact = float(log_gap(threshold, 2.0))
        assert total.log_lower(threshold) <= exact <= total.log_upper(threshold)
        assert total.log_upper(threshold) - total.log_lower(threshold) < 1e-8


def test_nothing_lies_above_the_ceiling() -> None:
    """−log u ≤ −log(1 − q): a removed record's loss is bounded."""
    total = RatioSum(((Ratio(NORMAL_OVER_MIXTURE, 1.0, 0.1), 50),))
    ceiling = -50 * math.log1p(-0.1)
    assert total.log_upper(ceiling * (1 + 1e-9)) == -math.inf
    assert total.log_upper(0.5 * ceiling) > -math.inf
    assert total.threshold_upper(-600.0) <= ceiling * (1 + 1e-9)
