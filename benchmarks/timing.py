"""CPU seconds: of work in this process, and of code in one of its own."""

from __future__ import annotations

import statistics
import subprocess
import sys
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
