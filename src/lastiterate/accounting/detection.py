"""How often an attacker can detect a changed record at most, for each false-positive rate."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from lastiterate.curves.notion import Notion

FALSE_POSITIVE_RATE = 0.01  # the 1% of the sentence


def detection_rates(proved: Notion, false_positive_rates: ArrayLike) -> Any:
    """Upper bounds on the power of every test, from the whole curve that was proved."""
    return 1 - proved.tradeoff(false_positive_rates)
