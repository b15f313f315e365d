"""Whatever is learnt from the data outside the mechanism is said aloud, and kept for the report."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from lastiterate.errors import PrivacyLeak

# What fits the same estimator more than once, or on labels and features that it has chosen by looking.
_REPEATERS = tuple(
    f"sklearn.{name}" for name in ("model_selection", "ensemble", "calibration", "multiclass", "feature_selection")
)


class Leaks:
    """What one fit has learnt outside the mechanism."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def say(self, what: str, advice: str) -> None:
        """One sentence on what was learnt, which the report will hold, and one on what to do."""
        self.found.append(f"NOT ACCOUNTED FOR: {what}")
        warnings.warn(f"{what} {advice}", PrivacyLeak, stacklevel=outside())

    def say_if_repeated(self) -> None:
        """A search or an ensemble fits many models on the same records, and often looks at the scores of all of them."""
        if any(name.startswith(_REPEATERS) for name in _callers()):
            self.say(
                "This fit is one of several on the same data: epsilon covers one fit, and comparing their scores is not "
                "private at all.",
                "Use PrivateGridSearchCV, choose settings on public data, or compose the guarantees with li.compose and "
                "release scores with noise.",
            )


def _callers() -> list[str]:
    names: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        names.append(str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back
    return names


def outside() -> int:
    """How far up the caller is that is neither this package nor scikit-learn, which wraps it."""
    names = _callers()
    own = [name.startswith(("lastiterate.estimators", "sklearn.")) for name in names]
    return own.index(False) if False in own else 1
