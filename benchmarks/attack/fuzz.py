"""Thousands of command lines and calls with all kinds of input; none may end in a traceback, NaN, 1 GB or 30 seconds.

    python -m benchmarks.attack.fuzz [--cases 5000] [--calls 10000] [--fresh]
    python -m benchmarks.attack.fuzz --only command:17      # or call:17: this one alone, with what it says

What was found is kept in out/attack/fuzz.json after every hundred: interrupted, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

_STATE = Path("out/attack/fuzz.json")
_SECONDS, _GIGABYTES = 30.0, 1.0
_HANGS = 240.0  # on the clock: other work on the machine is not the library's fault
_FAULTS = {"traceback": "tracebacks", "nan": "NaN", "memory": "over 1 GB", "time": "over 30 s"}
_EVERY = 100


def _processor_seconds(pid: int) -> float:
    """What a process has used so far, where the system says; else the time on the clock."""
    try:
        used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return time.monotonic()
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process for the cases, started anew when one of them took too long or too much."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def case(self, kind: str, seed: int) -> dict[str, Any]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        began, before = time.monotonic(), _processor_seconds(process.pid)
        try:
            process.stdin.write(f"{kind} {seed}\n".encode())
            process.stdin.flush()
        except BrokenPipeError:
            pass
        ready = False
        while not ready and _processor_seconds(process.pid) - before < _SECONDS and time.monotonic() - began < _HANGS:
            ready = bool(select.select([process.stdout], [], [], 1.0)[0])
        line = process.stdout.readline() if ready else b""
        seconds = _processor_seconds(process.pid) - before
        if not line:
            self.end()
            fault = "time" if not ready else "traceback"
            return {
                "what": f"{kind}:{seed}",
                "outcome": "answered",
                "fault": fault,
                "detail": "the process ended" * bool(ready),
                "seconds": seconds,
            }
        found: dict[str, Any] = json.loads(line) | {"seconds": seconds}
        if found["peak"] > _GIGABYTES:
            self.end()
            found["fault"] = found["fault"] or "memory"
        return found

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            command = [sys.executable, "-m", "benchmarks.attack.worker"]
            alone = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
            search = os.pathsep.join([str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])])
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={**os.environ, **alone, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, search.split(os.pathsep)))},
            )  # fmt: skip
        return self.process

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def attack(kind: str, count: int, state: dict[str, Any], worker: Worker) -> None:
    """The cases of one kind, from where the state is."""
    counts = Counter(state["counts"].get(kind, {}))
    for seed in range(state["next"].get(kind, 0), count):
        found = worker.case(kind, seed)
        counts["cases"] += 1
        counts[found["outcome"]] += 1
        if found["fault"]:
            counts[found["fault"]] += 1
            state["failures"].append(
                {"case": f"{kind}:{seed}", **{name: found.get(name) for name in ("what", "fault", "detail", "seconds")}}
            )
            print(f"{kind}:{seed} {found['fault']} {found['what'][:300]}\n    {found['detail'][:300]}", file=sys.stderr)
        state["next"][kind], state["counts"][kind] = seed + 1, dict(counts)
        if (seed + 1) % _EVERY == 0:
            _keep(state)
    _keep(state)


def table(state: dict[str, Any]) -> str:
    """One line for each kind of case."""
    columns = ["cases", "refused", "answered", *_FAULTS]
    lines = [f"{'':14}" + "".join(f"{_FAULTS.get(name, name):>12}" for name in columns)]
    for kind, name in (("command", "command lines"), ("call", "calls")):
        counts = state["counts"].get(kind, {})
        lines.append(f"{name:14}" + "".join(f"{counts.get(column, 0):>12}" for column in columns))
    return "\n".join(lines)


def _keep(state: dict[str, Any]) -> None:
    _STATE.parent.mkdir(parents=True, exist_ok=True)
    part = _STATE.with_suffix(".part")
    part.write_text(json.dumps(state, indent=1))
    os.replace(part, _STATE)


def _found(fresh: bool) -> dict[str, Any]:
    if not fresh and _STATE.exists():
        return dict(json.loads(_STATE.read_text()))
    return {"next": {}, "counts": {}, "failures": []}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5_000, help="command lines (default: 5000)")
    parser.add_argument("--calls", type=int, default=10_000, help="calls from Python (default: 10000)")
    parser.add_argument("--fresh", action="store_true", help="forget what was found before")
    parser.add_argument("--only", metavar="KIND:SEED", help="replay one case, such as command:17 or call:17")
    options = parser.parse_args()
    worker = Worker()
    try:
        if options.only:
            kind, seed = options.only.split(":")
            print(json.dumps(worker.case(kind, int(seed)), indent=1))
            return 0
        state = _found(options.fresh)
        attack("command", options.cases, state, worker)
        attack("call", options.calls, state, worker)
    finally:
        worker.end()
    print(table(state))
    return 1 if any(counts.get(fault) for counts in state["counts"].values() for fault in _FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
