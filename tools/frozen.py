"""Freeze the numbers of the library, and compare them to the bit after a change that should change none.

    python tools/frozen.py write out/frozen.json [--runs 300] [--processes 300]
    python tools/frozen.py compare out/frozen.json

Random runs and random processes, each with every theorem of the catalogue: whether it applies, and ε at three δ as
`float.hex`; of the runs also the certificate. `compare` computes all of it again, prints what differs, and verifies the
certificates that were written. Both print the CPU seconds of all accounts together.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import lastiterate as li
from lastiterate.progress import progress_bar, tracked
from lastiterate.runs.process import Process
from lastiterate.testing.draws import draws, with_updates
from lastiterate.testing.pairs import IMPOSSIBLE, PAIRS, UNKNOWN, Case, around, constructed
from lastiterate.theorems.theorem import Guarantee

DELTAS = (1e-2, 1e-5, 1e-9)
_POSSIBLE = [pair for pair in PAIRS if pair not in IMPOSSIBLE | UNKNOWN]


def answers(process: Process) -> dict[str, list[str] | None]:
    """For each theorem ε at three δ, or None where it does not apply."""
    found: dict[str, list[str] | None] = {}
    for theorem in li.theorems.ALL:
        answer = theorem.apply(process)
        applies = isinstance(answer, Guarantee)
        found[theorem.name] = [float(answer.epsilon(delta)).hex() for delta in DELTAS] if applies else None
    return found


def random_process(seed: int) -> Process:
    """The first of the processes that are drawn from this seed, with momentum or an average every fourth time."""
    return next(islice(with_updates(seed) if seed % 4 == 3 else draws(seed), 1))


def random_run(seed: int) -> Case | None:
    """A small run around a pair of features; None where none was found."""
    source = np.random.default_rng(seed)
    return constructed(around(_POSSIBLE[seed * 7919 % len(_POSSIBLE)], source), source)


def of_run(seed: int) -> dict[str, Any]:
    """The report of a run: its theorem and ε, and its certificate."""
    case = random_run(seed)
    if case is None:
        return {}
    try:
        report = li.account(case.small.run, DELTAS[1], case.small.releases, case.group, theorems=li.theorems.ALL)
    except li.errors.Unavailable as error:
        return {"unavailable": str(error)}
    epsilons = {one.theorem.name: value.hex() for one, value in zip(report.guarantees, report.epsilons, strict=True)}
    return {"theorem": report.best.theorem.name, "epsilons": epsilons, "certificate": report.certificate}


def frozen(runs: int, processes: int) -> dict[str, Any]:
    """All numbers, and how long they took."""
    begun = time.process_time()
    with progress_bar():
        found = {
            "processes": [answers(random_process(seed)) for seed in tracked(range(processes), "processes")],
            "runs": [of_run(seed) for seed in tracked(range(runs), "runs")],
        }
    return {**found, "seconds": time.process_time() - begun}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """One line for each number that is another one, and each certificate of before that is no longer accepted."""
    told = []
    for place, (one, two) in enumerate(zip(before["processes"], after["processes"], strict=True)):
        changed = [name for name in {**one, **two} if one.get(name, "absent") != two.get(name, "absent")]
        told += [f"process {place}, {name}: {one.get(name)} became {two.get(name)}" for name in changed]
    for place, (one, two) in enumerate(zip(before["runs"], after["runs"], strict=True)):
        names = [name for name in ("theorem", "epsilons", "unavailable") if one.get(name) != two.get(name)]
        told += [f"run {place}, {name}: {one.get(name)} became {two.get(name)}" for name in names]
        if "certificate" in one and not (verdict := li.verify(one["certificate"])).accepted:
            told.append(f"run {place}: its certificate is {verdict}")
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--processes", type=int, default=300)
    chosen = parser.parse_args()
    if chosen.what == "write":
        found = frozen(chosen.runs, chosen.processes)
        chosen.file.parent.mkdir(parents=True, exist_ok=True)
        chosen.file.write_text(json.dumps(found) + "\n", encoding="utf-8")
        print(f"{chosen.processes} processes and {chosen.runs} runs: {found['seconds']:.0f} CPU seconds")
        return 0
    before = json.loads(chosen.file.read_text(encoding="utf-8"))
    after = frozen(len(before["runs"]), len(before["processes"]))
    told = differences(before, after)
    print(*told, sep="\n")
    print(f"{len(told)} differences; {before['seconds']:.0f} CPU seconds before, {after['seconds']:.0f} now")
    return bool(told)


if __name__ == "__main__":
    sys.exit(main())
