"""The one way out of the house: whatever gets noise is the nearest point of a public grid to value + noise, exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lastiterate.errors import InvalidInput, must_be
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.exact_noise import NoiseLaw, nearest_multiples, normal, public_grid
from lastiterate.numerics.randomness import Source

_FARTHEST = 2.0**28  # times the noise: beyond, doubles are too coarse to be quick
RELEASED = 12  # powers of two by which the grid of what is released is finer than the noise
_SMALLEST = 1e-290


def leaves(
    value: Floats,
    noises: Sequence[tuple[NoiseLaw, float]],
    source: Source,
    factor: float = 1.0,
    finer: int = RELEASED,
) -> Floats:
    """factor·value with these noises, as it may be released, on a grid 2^finer times finer than the noise.

    Its law is that of the ideal mechanism, rounded: low bits show nothing, and a guarantee with δ = 0 stays one, but for a
    probability of 2⁻¹⁹⁰ that noise lies where 191 random bits do not reach.
    """
    scale = max(scale for _, scale in noises)
    if scale < _SMALLEST:
        raise must_be("noise", f"at least {_SMALLEST:g}", f"{scale:g}; use other units")
    with np.errstate(over="ignore"):
        near = not value.size or float(np.abs(value).max()) * abs(factor / scale) < _FARTHEST
    if near:
        return nearest_multiples(value, public_grid(scale, finer), noises, source, factor)
    if source.private:
        raise InvalidInput("noise_lost_beside_value", noise=scale, value=float(np.abs(value).max()))
    for _ in noises:
        source.bits(value.shape)
    return np.asarray(value * factor)  # from a seed, and marked as not private


def leaves_with_normal_noise(value: Floats, std: float, source: Source, finer: int = RELEASED) -> Floats:
    """With Gaussian noise."""
    return leaves(value, ((normal, std),), source, finer=finer)
