"""Long studies, run by `make study`: references computed anew, and random settings confronted with a second method."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from lastiterate.numerics.contour import Contour
from lastiterate.numerics.discretise import Ratio
from lastiterate.numerics.mixture_ratio import (
    MIXTURE_OVER_MIRROR,
    MIXTURE_OVER_NORMAL,
    NORMAL_OVER_MIXTURE,
    SYMMETRISED,
)
from lastiterate.numerics.ratio_sum import RatioSum
from reference_by_mpmath import Instance, delta
from references import INSTANCES_WITH_DELTA

pytestmark = pytest.mark.study

SHAPES = (MIXTURE_OVER_NORMAL, NORMAL_OVER_MIXTURE, MIXTURE_OVER_MIRROR, SYMMETRISED)


@pytest.mark.parametrize(("instance", "recorded"), INSTANCES_WITH_DELTA)
def test_recorded_references_are_what_mpmath_says(instance: Instance, recorded: float) -> None:
    with mp.workdps(30):
        assert math.isclose(float(delta(instance)), recorded, rel_tol=1e-12)


def test_contour_and_lattice_overlap_on_random_settings() -> None:
    draw = np.random.default_rng(3)
    compared = 0
    for _ in range(120):
        ratio = Ratio(SHAPES[draw.integers(4)], math.exp(draw.uniform(-2, 1.2)), math.exp(draw.uniform(-6, -0.2)))
        count = int(math.exp(draw.uniform(3.5, 8.5)))
        total = RatioSum(((ratio, count),))
        log_excess = float(-math.exp(draw.uniform(0.5, 4.0)))
        threshold = total.threshold_upper(log_excess)
        drawn = total._sharp_at(threshold) if 0 < threshold < total.ceiling else None
        if not isinstance(drawn, Contour):
            continue
        compared += 1
        lattice = total._lattice_pair(total.cumulant.saddle_at(threshold), threshold, log_excess)
        assert lattice.log_lower(threshold) <= drawn.log_upper(threshold)
        assert drawn.log_lower(threshold) <= lattice.log_upper(threshold)
    assert compared >= 60
