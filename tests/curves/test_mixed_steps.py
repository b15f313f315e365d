"""Steps whose sensitivity is drawn at random: certified sums between two discretised laws that share no line with them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

import lastiterate as li
from lastiterate.curves.subsampled import MixedStep, SubsampledGaussians, mixed_subsampled_gaussian
from lastiterate.numerics.contour import Contour

LEVELS = ((1.0, 1e-4), (0.7, 0.01), (0.5, 0.2), (0.35, 0.7899))
EPSILONS = (0.0, 0.3, 1.0, 2.5)


def composed(mu: float, rate: float, times: int) -> SubsampledGaussians:
    return SubsampledGaussians(((MixedStep(mu, rate, li.notions.FIXED_SIZE, LEVELS), times),), li.REPLACE_ONE)


def bracketed(mu: float, rate: float, times: int, spacing: float, reach: float) -> list[tuple[float, float]]:
    """Losses of C_p(G(level·mu)) on a lattice, all rounded down and all rounded up, mixed, and summed by a transform."""
    half = round(reach / spacing)
    laws = np.zeros((2, 2 * half + 1))
    for level, probability in LEVELS:
        far = level * mu
        x = np.linspace(far / 2, 1.5 * far + 12, 200_001)
        losses = np.log1p(rate * np.expm1(far * x - far**2 / 2))
        above, below = np.diff((1 - rate) * ndtr(x) + rate * ndtr(x - far)), np.diff(ndtr(x))
        for law, lower in zip(laws, (True, False), strict=True):
            inner, outer = (losses[:-1], losses[1:]) if lower else (losses[1:], losses[:-1])
            for masses, ends in ((above, inner), (below, -outer)):
                cells = np.floor(ends / spacing) if lower else np.ceil(ends / spacing)
                np.add.at(law, np.clip(cells.astype(int), -half, half) + half, probability * masses)
        laws[:, half] += probability * (1 - above.sum() - below.sum())
    length = 1 << math.ceil(math.log2(4 * half * min(times, 4)))
    found = []
    for law in laws:
        turned = np.roll(np.pad(law, (0, length - law.size)), -half)
        total = np.maximum(np.fft.irfft(np.fft.rfft(turned) ** times, length), 0.0)
        points = spacing * np.where(np.arange(length) > length // 2, np.arange(length) - length, np.arange(length))
        found.append([float(total @ -np.expm1(np.minimum(epsilon - points, 0.0))) for epsilon in EPSILONS])
    return list(zip(*found, strict=True))


@pytest.mark.parametrize(("mu", "rate", "times"), [(3.0, 0.1, 1), (3.0, 0.1, 2), (1.0, 0.1, 40)])
def test_sums_of_mixed_steps_lie_between_two_discretised_ones(mu: float, rate: float, times: int) -> None:
    found = composed(mu, rate, times)
    bounds = bracketed(mu, rate, times, spacing=1e-4, reach=16.0)
    for epsilon, (lower, upper) in zip(EPSILONS, bounds, strict=True):
        ours = float(found.delta(epsilon))
        assert lower * (1 - 1e-9) <= ours <= upper * (1 + 1e-6) + 1e-13
        assert upper <= lower * 1.05 + 1e-9
    curve = found.delta_curve(np.array(EPSILONS), math.log(1e-12))
    assert (np.array([lower for lower, _ in bounds]) <= curve * (1 + 1e-9)).all()


@pytest.mark.parametrize("times", [200, 1000])
def test_contour_and_lattice_overlap_for_mixed_steps(times: int) -> None:
    (total,) = composed(1.0, 0.1, times)._orders
    for log_excess in (-25.0, -9.0):
        threshold = max(total.threshold_upper(log_excess), 0.1)
        contour = total._sharp_at(threshold)
        assert isinstance(contour, Contour)
        lattice = total._lattice_pair(total.cumulant.saddle_at(threshold), threshold, log_excess)
        assert lattice.log_lower(threshold) <= contour.log_upper(threshold)
        assert contour.log_lower(threshold) <= lattice.log_upper(threshold) < contour.log_upper(threshold) + 1e-3
        assert contour.log_upper(threshold) - contour.log_lower(threshold) < 1e-6


def test_one_level_is_the_plain_step_and_more_are_between_the_ends() -> None:
    plain = li.notions.subsampled_gaussian(
        mu=1.0, inclusion=0.1, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
    )
    same = SubsampledGaussians(((MixedStep(1.0, 0.1, li.notions.FIXED_SIZE, ((1.0, 1.0),)), 1),), li.REPLACE_ONE)
    assert mixed_subsampled_gaussian(mu=1.0, inclusion=0.1, levels=((1.0, 1.0),)) == plain
    for times in (1, 3, 300):
        theirs = plain.compose(times).epsilon(1e-6)
        assert same.compose(times).epsilon(1e-6) == pytest.approx(theirs, rel=1e-6)
        least = li.notions.subsampled_gaussian(
            mu=0.35, inclusion=0.1, sampling=li.notions.FIXED_SIZE, adjacency=li.REPLACE_ONE
        )
        assert least.compose(times).epsilon(1e-6) < composed(1.0, 0.1, times).epsilon(1e-6) < theirs


def test_beyond_what_is_certified_the_largest_level_counts() -> None:
    levels = ((1.0, 0.5), (0.5, 0.5))
    assert mixed_subsampled_gaussian(mu=1.0, inclusion=1.0, levels=levels) == li.notions.GaussianDP(1.0)
    huge = mixed_subsampled_gaussian(mu=80.0, inclusion=0.1, levels=levels)
    assert huge.epsilon(1e-5) >= li.notions.GaussianDP(80.0).epsilon(1e-5) * (1 - 1e-9)
    tiny = mixed_subsampled_gaussian(mu=1e-7, inclusion=0.1, levels=levels).compose(10)
    assert 0 <= tiny.epsilon(1e-9) < 1e-3
