"""What is expected of data that nobody has looked at, for each kind of loss."""

from __future__ import annotations

import math
from collections.abc import Callable

from lastiterate.errors import Interval, Unavailable, checked_number
from lastiterate.runs.losses import Loss
from lastiterate.training.plans.problem import Guess

CLIP = 0.3  # of the norm of a row, or of the longest gradient: small clips do best, by what was tried on simulated problems
_LINEAR_CLIP = {"ridge": 0.25, "huber": 0.25}
_NORMS = Interval(1e-100, 1e100)  # beyond, squares of norms are no floats
PULL = 0.3  # of the softmax, where iterates are hidden


def columns_of(loss: Loss) -> int:
    """Of scores."""
    return int(loss.arguments.get("classes") or 1)


def clip_of(loss: Loss) -> float:
    """Where its gradients are cut if every step is paid for; ∞ where nothing is known of them."""
    if loss.clip is not None:
        return loss.clip if isinstance(loss.clip, float) else max(loss.clip)
    unit = loss.gradient_bound if loss.feature_norm is None else loss.feature_norm
    return _LINEAR_CLIP.get(loss.kind, CLIP) * unit


def guess_of(loss: Loss) -> Guess:
    """In the units of the loss: rows are taken to be about as long as they may be."""
    if loss.kind in _GUESSES and loss.feature_norm is not None:
        checked_number("feature_norm", loss.feature_norm, _NORMS)
        return guess_for_scaled_rows(loss).for_rows_of(loss.feature_norm)
    return _of_facts(loss)


def guess_for_scaled_rows(loss: Loss) -> Guess:
    """Of a loss of scores, for rows whose norm is about 1, whatever they may be at most."""
    return _GUESSES[loss.kind](loss)


def _logistic(loss: Loss) -> Guess:
    return Guess(curvature=0.1, score=4.0 if columns_of(loss) == 1 else 2.0, spread=1.8, longest_step=600.0)


def _hinge(loss: Loss) -> Guess:
    return Guess(curvature=0.3 / loss.arguments["width"], score=2.0, spread=0.8, longest_step=600.0)


def _squares(loss: Loss) -> Guess:
    return Guess(curvature=1.0, score=0.5, spread=0.5, longest_step=20.0)


def _of_facts(loss: Loss) -> Guess:
    """As for the logistic loss, in units of its smoothness and its longest gradient; steps stay short of 2/smoothness."""
    longest = min(loss.gradient_bound, loss.gradient_sensitivity, clip_of(loss))
    if not (math.isfinite(loss.smoothness) and loss.smoothness > 0 and math.isfinite(longest)):
        raise Unavailable("loss_not_planned", field="loss", kind=loss.kind)
    length = longest / loss.smoothness
    return Guess(0.4 * loss.smoothness, length, 0.45 * length, 20 / loss.smoothness)


_GUESSES: dict[str, Callable[[Loss], Guess]] = {
    "logistic": _logistic,
    "softmax": _logistic,
    "smooth_hinge": _hinge,
    "ridge": _squares,
    "huber": _squares,
}
