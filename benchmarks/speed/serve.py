"""How long a reader of the planner waits for an answer, through HTTP, beside `li.account` itself. `make bench-serve`.

Of every run of docs/choose.md: until the claim is there, and with lower bound, attacker's chance and whole report. Curves
come after that.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import lastiterate as li
from benchmarks.speed.engine import show
from benchmarks.timing import measured
from lastiterate.web.form import as_form
from lastiterate.web.serve import planner

PAGE = Path(__file__).parents[2] / "docs" / "choose.md"
DELTA = 1e-6
LIMIT = 0.2  # seconds, for runs with closed forms
CLOSED = 0.03  # seconds of `li.account`: those that have them


def runs() -> dict[str, li.Run]:
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(code.partition("\nreports = ")[0], names)
    return dict(names["settings"])


@contextmanager
def served() -> Iterator[str]:
    page = planner(None, DELTA)
    server = page.server()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [page.listening]})
    thread.start()
    yield page.address
    server.should_exit = True
    thread.join()


def seconds(address: str, run: li.Run, parts: list[str]) -> float:
    """Until the last of these parts has come."""
    place = urlsplit(address)
    question = json.dumps({"ask": "account", "run": as_form(run), "delta": DELTA, "parts": parts})
    connection = HTTPConnection(place.netloc)
    begun = time.perf_counter()
    connection.request("POST", f"{place.path}ask", question, {"Content-Type": "application/json"})
    lines = connection.getresponse().read().splitlines()
    spent = time.perf_counter() - begun
    connection.close()
    assert json.loads(lines[-1])["part"] == parts[-1]
    return spent


def accounted(run: li.Run, repeats: int, warm: bool = True) -> float:
    """Median wall-clock seconds of `li.account` on this run, each time with its noise changed by a part in a million."""
    work = partial(li.account, delta=DELTA)
    return float(measured(work, repeats, warm, prepare=run.with_noise, clock=time.perf_counter)["seconds"])


def table(names: list[str], repeats: int) -> list[dict[str, Any]]:
    rows = []
    everything = ["answer", "lower", "attack", "report"]
    with served() as address:
        for _ in range(4):  # both processes are awake
            seconds(address, runs()["full, convex"], everything)
        for name in names:
            run = runs()[name]
            count = repeats if accounted(run, 1, warm=False) < 1 else 1
            claims, whole = (
                [seconds(address, run.with_noise(1 + 1e-6 * (first + place)), parts) for place in range(count)]
                for first, parts in ((100, everything[:1]), (200, everything))
            )
            rows.append(
                {
                    "run": name,
                    "li.account, ms": 1e3 * accounted(run, count),
                    "claim, ms": 1e3 * median(claims),
                    "all but curves, ms": 1e3 * median(whole),
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only runs that are answered in a second")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    names = [name for name, run in runs().items() if not options.quick or accounted(run, 1, warm=False) < 1]
    rows = table(names, options.repeats)
    show(rows)
    closed = [row for row in rows if row["li.account, ms"] < 1e3 * CLOSED]
    late = max(closed, key=lambda row: row["claim, ms"])
    print(
        f"{len(closed)} of these runs have closed forms (li.account below {1e3 * CLOSED:.0f} ms): their claims come within"
    )
    print(f"{late['claim, ms']:.0f} ms ({late['run']}); the limit is {1e3 * LIMIT:.0f} ms.")
    target = Path("out") / "bench-serve.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(rows, indent=2))
    print(f"written to {target}")


if __name__ == "__main__":
    main()
