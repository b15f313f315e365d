"""Which runs Opacus can execute: what it never does, no run may say."""

from __future__ import annotations

import math

from lastiterate.algorithms.arithmetic import EXACT
from lastiterate.algorithms.batches import Cyclic, FullBatch, Poisson, Shuffled
from lastiterate.algorithms.noise import OnGradientSum
from lastiterate.algorithms.per_step import extremes, spread
from lastiterate.algorithms.run import Run, checked_run
from lastiterate.errors import InvalidInput, must_be

_BATCHES = (Poisson, Shuffled, Cyclic, FullBatch)
_ROOM = 1e-5  # Opacus clips at max_grad_norm·norm/(norm + 1e-6), in single precision


def covered(run: Run) -> Run:
    """The run itself, if Opacus could have executed it."""
    checked_run(run)
    if not isinstance(run.noise, OnGradientSum):
        raise must_be(
            "noise", "li.OnGradientSum(multiplier=, clip=), which is where Opacus adds it", run.noise.described
        )
    if not isinstance(run.batches, _BATCHES):
        raise must_be(
            "batches",
            "li.Poisson, li.Shuffled, li.Cyclic or li.FullBatch, which Opacus can draw",
            run.batches.called,
        )
    if math.isfinite(run.domain.diameter) or run.prox is not None:
        which = "domain" if run.prox is None else "prox"
        raise InvalidInput(
            f"{which} must not be set in the run: Opacus' optimisers neither project nor apply a proximal map.",
            field=which,
        )
    if run.arithmetic != EXACT:
        raise InvalidInput(
            "arithmetic must not be set in the run: this library cannot check how Opacus rounds.", field="arithmetic"
        )
    _check_clipping(run)
    return run


def _check_clipping(run: Run) -> None:
    """Opacus clips the whole gradient of a record, and knows no limit on its pull."""
    if "pull" in run.loss.arguments:
        raise InvalidInput(
            "loss must not have pull=, which Opacus does not implement. Remove pull.",
            field="loss",
        )
    by_class = run.loss.keeps_convexity and run.loss.arguments.get("classes") is not None
    shortest = extremes(spread("clip", run.clip or 0.0, run.steps))[0]
    if by_class and shortest * (1 - _ROOM) < run.loss.gradient_bound:
        raise InvalidInput(
            "loss must not need one clip per class: Opacus clips all classes together, which does not preserve convexity. "
            f"Use max_grad_norm > {run.loss.gradient_bound:.4g}, which clips nothing, or li.losses.softmax.",
            field="loss",
        )
