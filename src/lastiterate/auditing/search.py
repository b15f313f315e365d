"""Where a function of one number is greatest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize_scalar


def greatest(function: Callable[[float], float], places: Sequence[float], most: int = 500) -> tuple[float, float]:
    """The greatest value at these places, or near the best of them after `most` more looks; and where it is."""
    values = [function(place) for place in places]
    top = int(np.argmax(values))
    around = places[max(top - 1, 0)], places[min(top + 1, len(places) - 1)]
    if around[0] < around[1] and values[top] > 0:
        refined = minimize_scalar(
            lambda place: -function(place), bounds=around, method="bounded", options={"maxiter": most}
        )
        if -refined.fun > values[top]:
            return -float(refined.fun), float(refined.x)
    return values[top], places[top]
