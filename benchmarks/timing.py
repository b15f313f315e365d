"""CPU seconds, warm, median."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any


def measured(work: Callable[[], Any], repeats: int, warm: bool = True) -> dict[str, Any]:
    """The value of `work` and the median CPU time of `repeats` runs; the first run is not counted if `warm`."""
    value = work() if warm else None
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        value = work()
        seconds.append(time.process_time() - start)
    return {"value": value, "seconds": statistics.median(seconds)}
