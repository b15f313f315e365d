"""What laws know of the theorems of the catalogue by their names."""

from __future__ import annotations

import lastiterate as li
from lastiterate.runs.process import Process
from lastiterate.testing.examples import Subject

# Bounds on profiles: they may lie below every Gaussian one.
OF_PROFILES = ("block-mixing", "reflection", "regularised-mixing", "nonlinear-contraction", "asoodeh2023")
# Batches that are random, and known to be.
OF_SAMPLING = (
    *OF_PROFILES,
    "balls-and-bins",
    "window-tail",
    "bok2024/random",
    "random-order",
    "hidden-",
    "ye2022/random",
)
# Searched on grids: a little more noise may end on a grid that is a little worse.
SEARCHED = (
    *OF_PROFILES,
    "balls-and-bins/",
    "window-tail",
    "bok2024/random",
    "hidden-participation",
    "linear-optimiser",
)


def subject(theorem: li.theorems.Theorem) -> Subject:
    """As laws are tried on it."""
    return Subject(theorem, slack(theorem))


def slack(theorem: li.theorems.Theorem) -> float:
    """Searched bounds move by up to a hundredth with the grid."""
    return 1e-2 if theorem.name.startswith(SEARCHED) else 1e-9


def guarantees(given: Process, besides: tuple[str, ...] = ()) -> list[li.theorems.Guarantee]:
    """Of all theorems but those whose names begin like this."""
    asked = [theorem for theorem in li.theorems.ALL if not theorem.name.startswith(besides)]
    return [answer for theorem in asked if isinstance(answer := theorem.apply(given), li.theorems.Guarantee)]
