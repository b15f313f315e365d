"""Whatever is learnt from the data outside the mechanism is said aloud."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from lastiterate.errors import PrivacyLeak

_SEARCHES = "sklearn.model_selection"


def warn_of_leak(what: str, advice: str) -> None:
    """One sentence on what was learnt, one on what to do."""
    warnings.warn(f"{what} {advice}", PrivacyLeak, stacklevel=_outside())


def warn_of_repeated_fits() -> None:
    """A search or a cross-validation fits many models on the same records, and looks at the scores of all of them."""
    if any(name.startswith(_SEARCHES) for name in _callers()):
        warn_of_leak(
            "This fit is one of several on the same data: epsilon is what each one costs, and the scores that are compared "
            "are not private at all.",
            "Choose settings on public data, or add up the costs with li.compose and release scores with noise.",
        )


def _callers() -> list[str]:
    names: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        names.append(str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back
    return names


def _outside() -> int:
    """How far up the caller is that is neither this package nor scikit-learn's wrapping of it."""
    names = _callers()
    own = [name.startswith(("lastiterate.estimators", "sklearn.base")) for name in names]
    return own.index(False) if False in own else 1
