"""Steps without the record, merged: a run of them acts like one step with a larger noise.

Steps k = 1..n with factors L_k and noise ν_k act on a distance like one step with factor ΠL_k and noise √U,
U = Σ ν_k²·(L_{k+1}⋯L_n)²: paying a at that step means paying a·ν_k²·L_{k+1}⋯L_n / U at step k. Two such steps merge as
P = P_1·P_2 and U = U_1·P_2² + U_2. This is trusted: factors are rounded up, noise down, and what overflows is infinite.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lastiterate.numerics.arrays import Floats
from lastiterate.shift.steps import Steps

_HALF_ULP = 2.0**-53
_LEAST = 1e-150
_MOST = 1e150


def windows(lipschitz: Floats, noise: Floats, length: int) -> tuple[Floats, Floats]:
    """(factor, noise) of the `length` ≥ 1 steps that begin at each place where so many are left, by doubling."""
    factor: Floats = np.ones(len(noise) + 1)
    square: Floats = np.zeros(len(noise) + 1)
    remaining, width = length, 1
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        power_factor, power_square = np.asarray(lipschitz), np.square(noise)
        while True:
            if remaining & 1:
                factor, square = _joined(power_factor, power_square, factor[width:], square[width:])
            remaining >>= 1
            if not remaining:
                return _rounded(factor, square, length)
            power_factor, power_square = _joined(power_factor, power_square, power_factor[width:], power_square[width:])
            width *= 2


def tails(lipschitz: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """(factor, noise) of the steps from each place to the end."""
    factors, squares = [1.0], [0.0]
    for step_factor, step_noise in zip(lipschitz[::-1].tolist(), noise[::-1].tolist(), strict=True):
        squares.append(step_noise * step_noise * factors[-1] * factors[-1] + squares[-1])
        factors.append(step_factor * factors[-1])
    return _rounded(np.array(factors[:0:-1]), np.array(squares[:0:-1]), len(noise))


def whole(lipschitz: Floats, noise: Floats) -> tuple[float, float]:
    """(factor, noise) of all these steps together."""
    factor, noise_of_all = windows(lipschitz, noise, len(noise))
    return factor.item(), noise_of_all.item()


def interleaved(own: Steps, factors: Floats, noises: Floats, present: NDArray[np.bool_]) -> Steps:
    """The record's own steps, each followed by the merged steps up to the next, where there are any `present`."""
    sensitivity, noise, lipschitz = (np.zeros(2 * len(own)) for _ in range(3))
    sensitivity[::2], noise[::2], lipschitz[::2] = own.sensitivity, own.noise, own.lipschitz
    noise[1::2], lipschitz[1::2] = noises, factors
    kept = np.ones(2 * len(own), bool)
    kept[1::2] = present
    return Steps(sensitivity[kept], noise[kept], lipschitz[kept], own.diameter)


def _joined(first_factor: Floats, first_square: Floats, factor: Floats, square: Floats) -> tuple[Floats, Floats]:
    count = min(len(first_factor), len(factor))
    factor, square = factor[:count], square[:count]
    return first_factor[:count] * factor, first_square[:count] * np.square(factor) + square


def _rounded(factor: Floats, square: Floats, length: int) -> tuple[Floats, Floats]:
    """A product of n numbers is off by n half ulps at most, a sum of such squares by 4n, its root by 2n."""
    slack = 4 * (length + 1) * _HALF_ULP
    usable = (factor <= _MOST) & (square < math.inf)
    return (
        np.where(usable, np.maximum(factor * (1 + slack), _LEAST), math.inf),
        np.where(usable, np.sqrt(square) * (1 - slack), math.nan),
    )
