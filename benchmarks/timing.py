"""Seconds: of work in this process, each repetition with new arguments, and of code in a process of its own."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


def measured(
    work: Callable[[Any], Any],
    repeats: int,
    warm: bool = True,
    prepare: Callable[[float], Any] = float,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, Any]:
    """Return the value of `work` at factor 1, and the median seconds of `repeats` calls, each at another factor near 1.

    `work` is given the factor, or what `prepare` makes of it outside the measurement, and has to scale an argument by it: a
    call that repeats an earlier one would be answered by a cache. If `warm`, a call that is not counted comes first.
    """
    values, seconds = [], []
    for place in range(repeats + warm):
        given = prepare(1 + 1e-6 * place)
        start = clock()
        values.append(work(given))
        seconds.append(clock() - start)
    return {"value": values[0], "seconds": statistics.median(seconds[warm:])}


EVERY_NAME = "import lastiterate as li\nfor name in li.__all__: getattr(li, name)"


def seconds_of_a_process(code: str, repeats: int = 5) -> float:
    """The least that a process needs for this code, its start included."""
    return min(float(said_by(f"import time\n{code}\nprint(time.process_time())")) for _ in range(repeats))


def numpy_and_scipy() -> str:
    """The import of what the library loads of them when all its names are used."""
    loaded = said_by(f"{EVERY_NAME}\nimport sys; print(*sys.modules)").split()
    public = [name for name in loaded if name.split(".")[0] in ("numpy", "scipy") and "._" not in name]
    return "import " + ", ".join(name for name in public if name.count(".") < 2)


def said_by(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
