"""`make as-people-train`: sixteen trainings as people run them: ε under each adjacency, and the ε that is printed.

"ours" is the smallest ε that a theorem proves for the last iterate, "all" that of releasing every iterate. "printed" is
what the accountant of the source prints, and "covers" whether that number is about the batches that were drawn. The last
columns are ε with other batches under zero-out. Also written to out/as-people-train.json; the peers' numbers are kept
beside it.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import lastiterate as li
from benchmarks.environments import ROOT, peers_python
from benchmarks.peers.training_setups import CYCLIC, FULL, POISSON, SETUPS, Setup
from lastiterate.curves.adjacency import Adjacency
from lastiterate.errors import LastIterateError

OUT = ROOT / "out" / "as-people-train.json"
KEPT = ROOT / "out" / "as-people-train-peers.json"
PATIENCE = 900  # seconds for all peers together
ADJACENCIES = (li.REPLACE_ONE, li.ZERO_OUT, li.ADD_OR_REMOVE_ONE)

INSTEAD: dict[str, Callable[[Setup], Any]] = {
    "as Poisson": lambda setup: li.Poisson(setup.records, setup.batch_size / setup.records),
    "as balls and bins": lambda setup: li.BallsAndBins(setup.records, setup.per_epoch),
}

Row = dict[str, Any]


def main() -> None:
    rows = [row_of(setup) for setup in SETUPS]
    for row, printed in zip(rows, printed_by_peers(), strict=True):
        row["printed"] = printed
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    print(table(rows), table_of_others(rows), sep="\n\n")
    print()
    for row in rows:
        print(f"- **{row['name']}** ({row['source']}): {row['sentence']}")


def _used(setup: Setup) -> int:
    """How many records there are in whole batches."""
    return setup.records - setup.records % setup.batch_size


def batches_of(setup: Setup) -> Any:
    if setup.drawn == FULL:
        return li.FullBatch(setup.records)
    if setup.drawn == POISSON:
        return li.Poisson(setup.records, setup.rate)
    kind = li.Cyclic if setup.drawn == CYCLIC else li.Shuffled
    if setup.last is not None:
        return kind(setup.records, setup.batch_size, last=setup.last)
    return kind(_used(setup), setup.batch_size)


def run_of(setup: Setup, adjacency: Adjacency, batches: Any = None) -> li.Run:
    """The training, with these batches or its own."""
    drawn = batches_of(setup) if batches is None else batches
    loss = li.losses.network(clip=setup.clip) if setup.loss is None else setup.loss
    noise: Any = li.OnGradientSum(setup.multiplier, setup.clip)
    if loss.linear and math.isfinite(loss.gradient_bound) and loss.gradient_bound <= setup.clip * (1 + 1e-9):
        noise = li.OnMeanGradient(setup.multiplier * setup.clip / setup.batch_size)  # nothing is ever clipped
    steps = (
        setup.count if setup.steps is not None or drawn.per_epoch == setup.per_epoch else setup.epochs * drawn.per_epoch
    )
    run = li.Run(loss, drawn, setup.step_size, noise, steps, adjacency=adjacency)
    return replace(run, optimizer=setup.optimizer()) if setup.optimizer else run


def row_of(setup: Setup) -> Row:
    print(f"{setup.name} …", file=sys.stderr, flush=True)
    row: Row = {
        "name": setup.name,
        "source": setup.source,
        "sentence": setup.sentence,
        "drawn": setup.drawn,
        "multiplier": setup.multiplier,
        "delta": setup.delta,
        "covers": setup.covers,
        "peer": setup.peer,
        "run": {"steps": run_of(setup, li.REPLACE_ONE).steps, "batches": batches_of(setup).described},
    }
    for adjacency in ADJACENCIES:
        row[str(adjacency.unit())] = _priced(setup, adjacency)
    for name, make in INSTEAD.items():
        row[name] = _instead(setup, make)
    return row


def _priced(setup: Setup, adjacency: Adjacency) -> Row | None:
    if adjacency not in batches_of(setup).adjacencies:
        return None
    report = li.account(run_of(setup, adjacency), setup.delta)
    return {"ours": report.epsilon, "all": report.epsilon_all_released, "theorem": report.best.theorem.name}


def _instead(setup: Setup, make: Callable[[Setup], Any]) -> float | None:
    """ε under zero-out, if batches had been drawn like this; nothing where they were, or where there are no batches."""
    if setup.drawn in (FULL, POISSON):
        return None
    try:
        return li.account(run_of(setup, li.ZERO_OUT, make(setup)), setup.delta).epsilon
    except LastIterateError:
        return None


def question(setup: Setup) -> Row:
    """What the accountant of the source is told."""
    told = setup.multiplier if setup.told_noise is None else setup.told_noise
    rate = 1.0 if setup.drawn == FULL else setup.rate
    return {"accountant": setup.peer, "rate": rate, "steps": setup.told_steps, "multiplier": told, "delta": setup.delta}


def printed_by_peers() -> list[float | str]:
    """Asked once for each question; a peer that takes too long has no number."""
    kept: dict[str, float | str] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    questions = {json.dumps(question(setup)): question(setup) for setup in SETUPS}
    new = [key for key in questions if key not in kept]
    if new:
        print("asking the peers (minutes) …", file=sys.stderr, flush=True)
        kept.update(zip(new, _asked([questions[key] for key in new]), strict=True))
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    return [kept[json.dumps(question(setup))] for setup in SETUPS]


def _asked(questions: list[Row]) -> list[float | str]:
    asked = ROOT / "out" / "as-people-train-questions.json"
    asked.parent.mkdir(exist_ok=True)
    asked.write_text(json.dumps(questions))
    command = [str(peers_python()), "-m", "benchmarks.peers.training_setups_peers", str(asked)]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=PATIENCE)
    found: list[float | str] = json.loads(answer.stdout.strip().splitlines()[-1])
    return found


def table(rows: list[Row]) -> str:
    """Our numbers, as Markdown."""
    titles = ["training", "batches", "replace: ours", "all", "zero-out: ours", "all", "add or remove"]
    return _markdown(titles, [_proved(row) for row in rows])


def table_of_others(rows: list[Row]) -> str:
    """What is printed, and what other batches would give, as Markdown."""
    instead = [name for name in INSTEAD if any(row[name] is not None for row in rows)]
    cells = [
        [
            row["name"],
            _number(row["printed"]),
            "yes" if row["covers"] else "no",
            *(_number(row[name]) for name in instead),
        ]
        for row in rows
    ]
    return _markdown(["training", "printed", "covers", *instead], cells)


def _proved(row: Row) -> list[str]:
    replaced, zeroed, removed = (row[str(one.unit())] for one in ADJACENCIES)
    both = [_cell(priced, which) for priced in (replaced, zeroed) for which in ("ours", "all")]
    return [row["name"], row["drawn"], *both, _cell(removed, "ours")]


def _markdown(titles: list[str], rows: list[list[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _cell(priced: Row | None, which: str) -> str:
    return "–" if priced is None else _number(priced[which])


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
