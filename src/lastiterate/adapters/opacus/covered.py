"""Which runs Opacus can execute: what it never does, no run may say."""

from __future__ import annotations

import math

from lastiterate.errors import InvalidInput
from lastiterate.runs.arithmetic import EXACT
from lastiterate.runs.batches import Cyclic, FullBatch, Poisson, Shuffled
from lastiterate.runs.noise import OnGradientSum
from lastiterate.runs.per_step import extremes, spread
from lastiterate.runs.run import Run, checked_run

_BATCHES = (Poisson, Shuffled, Cyclic, FullBatch)
_ROOM = 1e-5  # Opacus clips at max_grad_norm·norm/(norm + 1e-6), in single precision


def covered(run: Run) -> Run:
    """The run itself, if Opacus could have executed it."""
    checked_run(run)
    if not isinstance(run.noise, OnGradientSum):
        raise InvalidInput("opacus_noise_kind", field="noise", got=run.noise.described)
    if not isinstance(run.batches, _BATCHES):
        raise InvalidInput("opacus_batches_kind", field="batches", got=run.batches.called)
    if math.isfinite(run.domain.diameter) or run.prox is not None:
        raise InvalidInput("opacus_projection", field="domain" if run.prox is None else "prox")
    if run.arithmetic != EXACT:
        raise InvalidInput("opacus_arithmetic", field="arithmetic")
    _check_clipping(run)
    return run


def _check_clipping(run: Run) -> None:
    """Opacus clips the whole gradient of a record, and knows no limit on its pull."""
    if "pull" in run.loss.arguments:
        raise InvalidInput("opacus_pull", field="loss")
    by_class = run.loss.keeps_convexity and run.loss.arguments.get("classes") is not None
    shortest = extremes(spread("clip", run.clip or 0.0, run.steps))[0]
    if by_class and shortest * (1 - _ROOM) < run.loss.gradient_bound:
        raise InvalidInput("opacus_clip_per_class", field="loss", bound=run.loss.gradient_bound)
