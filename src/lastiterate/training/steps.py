"""What happens to the weights between a gradient and the next: proximal map, projection."""

from __future__ import annotations

import numpy as np

from lastiterate.algorithms.domains import Ball, Box, Domain, Unbounded
from lastiterate.algorithms.prox import L1, ElasticNet, NuclearNorm, Prox
from lastiterate.errors import InvalidInput, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.norms import length

_INSIDE = 1 - 2.0**-46  # no rounding leads out of the ball again


def proximal(prox: Prox | None, weights: Floats, step_size: float) -> Floats:
    """argmin of step_size·prox(x) + ‖x − weights‖²/2."""
    match prox:
        case None:
            return weights
        case L1():
            return _soft(weights, step_size * prox.weight)
        case ElasticNet():
            return _soft(weights, step_size * prox.l1) / (1 + step_size * prox.l2)
        case NuclearNorm() if weights.ndim > 2:
            raise InvalidInput(f"a nuclear norm is one of matrices. Got weights with {weights.ndim} axes.")
        case NuclearNorm():
            left, values, right = np.linalg.svd(np.atleast_2d(weights), full_matrices=False)
            return np.asarray((left * _soft(values, step_size * prox.weight)) @ right).reshape(weights.shape)
    raise InvalidInput(f"no proximal map is known for {shown(prox):.60}.")


def roundings(prox: Prox | None, shape: tuple[int, ...]) -> float:
    """How much more a step is rounded than one without a proximal map: a decomposition takes as many as it has rows."""
    return 1.0 + (sum(shape) if isinstance(prox, NuclearNorm) else 0.0)


def _soft(values: Floats, threshold: float) -> Floats:
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0))


def projected(domain: Domain, weights: Floats) -> Floats:
    """The nearest point of the domain; balls and cubes are around 0."""
    match domain:
        case Unbounded():
            return weights
        case Ball():
            far = length(weights)
            return weights if far <= domain.radius * _INSIDE else weights * (domain.radius * _INSIDE / far)
        case Box():
            return np.clip(weights, -domain.side / 2, domain.side / 2)
    raise InvalidInput(f"no projection is known on {shown(domain):.60}. Use li.Ball or li.Box.")
