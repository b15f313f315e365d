"""`make house`: what there is to touch, to believe, to read and to wait for; the right column of docs/architecture.md."""

from __future__ import annotations

import re
from pathlib import Path

import lastiterate as li
from benchmarks.timing import EVERY_NAME, numpy_and_scipy, said_by, seconds_of_a_process

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "lastiterate"
HELP = (
    "import sys, io, contextlib\nfrom lastiterate.cli import main\n"
    "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main(['--help'])"
)
KINDS = "FullBatch|Cyclic|Shuffled|FixedSize|Poisson|PoissonMean"


def main() -> None:
    kernel = [path.read_text().splitlines() for path in (SOURCE / "kernel").glob("*.py")]
    every_name, science = seconds_of_a_process(EVERY_NAME), seconds_of_a_process(numpy_and_scipy())
    rows = {
        "files for a new noise, loss, batches, theorem": f"{files_of_walks()}, and a line in a list each",
        "tests of the class of batches": f"{tests_of_a_class()}",
        "lines to believe": f"{sum(map(len, kernel))} in {len(kernel)} files",
        "modules of ours that the kernel's check loads": f"{modules_loaded()}",
        "names at the top": f"{len(li.__all__)}",
        "CPU seconds: import lastiterate": f"{seconds_of_a_process('import lastiterate'):.2f}",
        "CPU seconds: lastiterate --help": f"{seconds_of_a_process(HELP):.2f}",
        "CPU seconds: every public name, beyond numpy and scipy": f"{every_name - science:.2f}",
    }
    for name, value in rows.items():
        print(f"{name:56}{value}")


def files_of_walks() -> str:
    """New files in the walks of CONTRIBUTING.md, which tests/test_walks.py goes."""
    walks = (ROOT / "CONTRIBUTING.md").read_text().split("## Extend the library")[-1]
    return ", ".join("1" for _ in re.findall(r"^# src/", walks, re.M))


def tests_of_a_class() -> int:
    pattern = re.compile(rf"isinstance\([^)]*\b(?:{KINDS})\b|case (?:{KINDS})\(")
    return sum(len(pattern.findall(path.read_text())) for path in SOURCE.rglob("*.py"))


def modules_loaded() -> int:
    code = "import lastiterate.kernel.check, sys; print(sum(m.startswith('lastiterate.kernel') for m in sys.modules))"
    loaded = "print(sum(m.startswith('lastiterate.') for m in sys.modules))"
    inside, all_of_ours = said_by(f"{code}; {loaded}").split()
    assert inside == all_of_ours
    return int(all_of_ours)


if __name__ == "__main__":
    main()
