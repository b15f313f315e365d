"""`make house`: what there is to touch, to believe, to read and to wait for; the right column of docs/architecture.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import lastiterate as li

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "lastiterate"
SCIENCE = "import numpy.typing, numpy.fft, scipy.special, scipy.optimize, scipy.linalg, scipy.signal, scipy.stats"
EVERYTHING = "import lastiterate as li\nfor name in li.__all__: getattr(li, name)"
HELP = (
    "import sys, io, contextlib\nfrom lastiterate.cli import main\n"
    "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main(['--help'])"
)
KINDS = "FullBatch|Cyclic|Shuffled|FixedSize|Poisson|PoissonMean"


def main() -> None:
    kernel = [path.read_text().splitlines() for path in (SOURCE / "kernel").glob("*.py")]
    rows = {
        "files for a new noise, loss, batches, theorem": f"{files_of_walks()}, and a line in a list each",
        "tests of the class of batches": f"{tests_of_a_class()}",
        "lines to believe": f"{sum(map(len, kernel))} in {len(kernel)} files",
        "modules of ours that the kernel's check loads": f"{modules_loaded()}",
        "names at the top": f"{len(li.__all__)}",
        "CPU seconds: import lastiterate": f"{cpu_seconds('import lastiterate'):.2f}",
        "CPU seconds: lastiterate --help": f"{cpu_seconds(HELP):.2f}",
        "CPU seconds: every public name, beyond numpy and scipy": f"{cpu_seconds(EVERYTHING) - cpu_seconds(SCIENCE):.2f}",
    }
    for name, value in rows.items():
        print(f"{name:56}{value}")


def files_of_walks() -> str:
    """New files in the walks of CONTRIBUTING.md, which tests/test_walks.py goes."""
    walks = (ROOT / "CONTRIBUTING.md").read_text().split("## Four walks")[-1]
    return ", ".join("1" for _ in re.findall(r"^# src/", walks, re.M))


def tests_of_a_class() -> int:
    pattern = re.compile(rf"isinstance\([^)]*\b(?:{KINDS})\b|case (?:{KINDS})\(")
    return sum(len(pattern.findall(path.read_text())) for path in SOURCE.rglob("*.py"))


def modules_loaded() -> int:
    code = "import lastiterate.kernel.check, sys; print(sum(m.startswith('lastiterate.kernel') for m in sys.modules))"
    loaded = "print(sum(m.startswith('lastiterate.') for m in sys.modules))"
    inside, all_of_ours = subprocess.check_output([sys.executable, "-c", f"{code}; {loaded}"], text=True).split()
    assert inside == all_of_ours
    return int(all_of_ours)


def cpu_seconds(code: str) -> float:
    """Of a process of its own, the least of five."""
    timed = f"import time\n{code}\nprint(time.process_time())"
    return min(float(subprocess.check_output([sys.executable, "-c", timed], text=True)) for _ in range(5))


if __name__ == "__main__":
    main()
