"""Whether a classifier says the same of everything: found out from what is public or released, never from the records."""

from __future__ import annotations

import numpy as np

from lastiterate.errors import worded
from lastiterate.estimators.base import PrivateLinearModel
from lastiterate.estimators.public_scales import PublicScales
from lastiterate.numerics.arrays import Floats

_ROWS = 1000


def warning_of_one_class(
    model: PrivateLinearModel, scales: PublicScales, public: Floats | None, where: str
) -> str | None:
    """A sentence, if the model has one answer for all `public` rows, or for rows drawn in place of them."""
    rows = _drawn(model, scales) if public is None else public
    answers = set(np.asarray(model.predict(rows)).tolist())
    if len(answers) > 1 or len(rows) < 2:
        return None
    test = None if public is None else where
    return worded("train_one_class", answer=answers.pop(), test=test, rows=_ROWS, bounded=bool(scales.bounded.all()))


def _drawn(model: PrivateLinearModel, scales: PublicScales) -> Floats:
    """Within public bounds, or around the centre that was released, as far as its scale."""
    source, width = np.random.default_rng(0), len(scales.half)
    if scales.bounded.all():
        return source.uniform(-1.0, 1.0, (_ROWS, width))
    learnt = model.preparation_
    return np.asarray(learnt.center + learnt.scale * source.normal(size=(_ROWS, width)) / np.sqrt(width))
