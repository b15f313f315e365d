"""`make house`: how much there is to read, to believe, to touch and to wait for.

`--write` puts what can be counted into docs/architecture.md; tests/test_house.py keeps it true.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import lastiterate as li
from benchmarks.timing import EVERY_NAME, numpy_and_scipy, said_by, seconds_of_a_process

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "lastiterate"
DOCUMENT = ROOT / "docs" / "architecture.md"
HELP = (
    "import sys, io, contextlib\nfrom lastiterate.cli import main\n"
    "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main(['--help'])"
)
CORE = (
    *("kernel", "numerics", "curves", "runs", "shift", "mixing", "theorems", "auditing", "testing", "mechanisms"),
    *("certificate", "accounting", "selection", "budget", "forgetting", "report"),
)
LOSS = li.losses.logistic(feature_norm=1.0)
RUNS = {
    "shuffled": li.Run(LOSS, li.Shuffled(10_000, 500), 0.5, li.OnGradientSum(multiplier=4.0, clip=1.0), li.epochs(10)),
    "Poisson": li.Run(
        LOSS,
        li.Poisson(10_000, 0.05),
        0.5,
        li.OnGradientSum(multiplier=2.0, clip=1.0),
        200,
        adjacency="add_or_remove_one",
    ),
    "full": li.Run(LOSS, li.FullBatch(1000), 0.5, li.OnMeanGradient(std=0.05), 50),
}


def main() -> None:
    found = counted()
    if sys.argv[1:] == ["--write"]:
        DOCUMENT.write_text(with_tables(DOCUMENT.read_text(), found))
    print(found)
    every_name, science = seconds_of_a_process(EVERY_NAME), seconds_of_a_process(numpy_and_scipy())
    print(f"\nCPU seconds: import lastiterate {seconds_of_a_process('import lastiterate'):.2f}, ", end="")
    print(f"lastiterate --help {seconds_of_a_process(HELP):.2f}, ", end="")
    print(f"every public name, beyond numpy and scipy, {every_name - science:.2f}")


def counted() -> str:
    """The tables of docs/architecture.md."""
    return "\n\n".join((table(rooms()), table(walks()), table(facts())))


def with_tables(document: str, tables: str) -> str:
    """The document with these tables between its two marks."""
    before, rest = document.split("<!-- make house -->\n")
    return f"{before}<!-- make house -->\n\n{tables}\n\n<!-- end -->{rest.split('<!-- end -->')[1]}"


def table(rows: Iterator[tuple[object, ...]]) -> str:
    """A table of Markdown, whose first row is its head."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * (lines[0].count("|") - 1) + "|", *lines[1:]])


def rooms() -> Iterator[tuple[object, ...]]:
    """Files and hundreds of lines of each package of the core, and of everything."""
    yield "room", "files", "lines, at most"
    for name, folders in {**{one: [one] for one in CORE}, "the core": [*CORE], "everything": [""]}.items():
        files = [path for one in folders for path in (SOURCE / one).rglob("*.py")]
        lines = sum(len(path.read_text().splitlines()) for path in files)
        yield name, len(files), -(-lines // 100) * 100


def walks() -> Iterator[tuple[object, ...]]:
    """How far one question travels: functions and files that are called, and pairs of files that call each other."""
    yield "question", "functions, at most", "files", "pairs of files that call each other"
    for name, run in RUNS.items():
        li.account(run.with_noise(1.7), 1e-5)  # everything is imported
        report, *counts = walk(lambda run=run: li.account(run, 1e-5))
        yield f"account, {name}", *counts
        yield f"print, {name}", *walk(lambda report=report: str(report))[1:]
        certificate = report.certificate
        yield f"verify, {name}", *walk(lambda certificate=certificate: li.verify(certificate))[1:]


def walk(question: Callable[[], Any]) -> tuple[Any, int, int, int]:
    """The answer, functions of the library that were called, rounded up to tens, their files, and mutual pairs of files."""
    functions: set[tuple[str, str]] = set()
    edges: set[tuple[str, str]] = set()

    def called(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(SOURCE)):
            return
        here, caller = frame.f_code.co_filename, frame.f_back
        functions.add((here, frame.f_code.co_qualname))
        while caller is not None and not caller.f_code.co_filename.startswith(str(SOURCE)):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != here:
            edges.add((caller.f_code.co_filename, here))

    sys.setprofile(called)
    try:
        answer = question()
    finally:
        sys.setprofile(None)
    pairs = sum((b, a) in edges for a, b in edges) // 2
    return answer, -(-len(functions) // 10) * 10, len({file for file, _ in functions}), pairs


def facts() -> Iterator[tuple[object, ...]]:
    """What else can be counted."""
    yield "counted", ""
    yield "files for a new noise, loss, batches, theorem", f"{files_of_walks()}, and a line in a list each"
    yield "modules of ours that the kernel's check loads", modules_loaded()
    yield "names at the top", len(li.__all__)


def files_of_walks() -> str:
    """New files in the walks of CONTRIBUTING.md, which tests/test_walks.py goes."""
    found = (ROOT / "CONTRIBUTING.md").read_text().split("## Extend the library")[-1]
    return ", ".join("1" for _ in re.findall(r"^# src/", found, re.M))


def modules_loaded() -> int:
    """Modules of the library that are loaded with the kernel's check: those of the kernel and no others."""
    code = "import lastiterate.kernel.check, sys; print(sum(m.startswith('lastiterate.kernel') for m in sys.modules))"
    loaded = "print(sum(m.startswith('lastiterate.') for m in sys.modules))"
    inside, all_of_ours = said_by(f"{code}; {loaded}").split()
    assert inside == all_of_ours
    return int(all_of_ours)


if __name__ == "__main__":
    main()
