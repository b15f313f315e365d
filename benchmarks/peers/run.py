"""`make bench`: ours against the peers in one run, CPU seconds, medians, both sides warm; the full run is written as JSON.

Every repetition has a noise multiplier, or a target, of its own: no side can answer from a cache.

`--different 100` shortens the slowest row; `--quick` is the fastest rows against dp-accounting only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from benchmarks.environments import ROOT, peers_python
from benchmarks.peers import ours

RESULTS = ROOT / "benchmarks" / "results" / "peers.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--different", type=int, default=1000, help="how many different steps to compose")
    parser.add_argument("--quick", action="store_true", help="equal steps only, dp-accounting only")
    arguments = parser.parse_args()
    count = 0 if arguments.quick else arguments.different
    python = peers_python()
    print("measuring ours …", file=sys.stderr, flush=True)
    table: dict[str, dict[str, Any]] = {"lastiterate": ours.results(count)}
    print("measuring the peers (minutes) …", file=sys.stderr, flush=True)
    answer = subprocess.run(
        [str(python), "-m", "benchmarks.peers.theirs", str(count)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    table.update(json.loads(answer.stdout.strip().splitlines()[-1]))
    show(table)
    if not arguments.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(table, indent=1) + "\n")


def show(table: dict[str, dict[str, Any]]) -> None:
    own = table.pop("lastiterate")
    print(f"{'task':34} {'who':15} {'value':>14} {'CPU s':>10} {'times ours':>10}")
    for task, result in own.items():
        print(f"{task:34} {'lastiterate':15} {result['value']:14.9g} {result['seconds']:10.4f} {'1':>10}")
        for peer, results in table.items():
            if task in results:
                ratio = results[task]["seconds"] / result["seconds"]
                print(
                    f"{'':34} {peer:15} {results[task]['value']:14.9g} {results[task]['seconds']:10.4f} {ratio:10.0f}"
                )
    table["lastiterate"] = own


if __name__ == "__main__":
    main()
