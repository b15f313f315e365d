"""Two hundred runs on random batches: what each theorem says of them, now and before searches were shortened.

`python -m benchmarks.speed.random_runs` compares with `random_runs_before.json`; `--write` writes that file, which is to be
done on the commit that is compared with.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

import lastiterate as li

BEFORE = Path(__file__).with_name("random_runs_before.json")
RUNS = 200


def random_run(seed: int) -> tuple[li.Run, float]:
    """A run on random batches, and a δ: every loss, domain and kind of random batches in turn."""
    source = np.random.default_rng(seed)
    records = round(10 ** source.uniform(2.5, 5))
    batch = max(1, round(records * 10 ** source.uniform(-3, -0.7)))
    steps = round(10 ** source.uniform(1, 5))
    step_size = float(10 ** source.uniform(-1.5, 0))
    batches = (
        li.Poisson(records, batch / records)
        if source.random() < 0.4
        else li.parts.PoissonMean(records, batch / records)
        if source.random() < 0.2
        else li.FixedSize(records, batch)
    )
    l2 = float(10 ** source.uniform(-2, 0)) if source.random() < 0.7 else 0.0
    loss = (
        li.losses.logistic(feature_norm=1.0, l2=l2, clip=1.0),
        li.losses.logistic(feature_norm=1.0, l2=l2),
        li.losses.softmax(feature_norm=1.0, l2=l2, clip=0.5),
        li.losses.network(clip=1.0, l2=l2),
    )[int(source.integers(4))]
    std = float(10 ** source.uniform(-0.5, 1)) / batch
    radius = step_size * std * float(10 ** source.uniform(-0.5, 1.5))
    domain = li.Ball(radius) if source.random() < 0.5 else li.Unbounded(dimension=20)
    noise = li.OnMeanGradient(std)
    return li.Run(loss, batches, step_size, noise, steps, domain), float(10 ** source.uniform(-9, -3))


def found(seed: int) -> dict[str, Any]:
    """ε by theorem, and CPU seconds."""
    try:
        run, delta = random_run(seed)
        started = time.process_time()
        report = li.account(run, delta)
        seconds = time.process_time() - started
    except li.errors.LastIterateError as error:
        return {"refused": str(error)}
    names = [one.theorem.name for one in report.guarantees]
    return {"seconds": seconds, "best": report.epsilon, "epsilons": dict(zip(names, report.epsilons, strict=True))}


def compared(before: dict[str, Any], now: dict[str, Any]) -> tuple[float, dict[str, float]]:
    """How much larger the best ε is, as a part of it, and the same of every theorem."""
    if "epsilons" not in before or "epsilons" not in now:
        return 0.0, {}
    old, new = before["epsilons"], now["epsilons"]
    each = {name: _larger(new[name], old[name]) for name in old.keys() & new.keys()}
    return _larger(now["best"], min(old.values())), each


def _larger(new: float, old: float) -> float:
    return 0.0 if new == old or math.isinf(old) else new / old - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write what is compared with")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    now = [found(seed) for seed in range(options.runs)]
    if options.write:
        BEFORE.write_text(json.dumps(now, indent=0) + "\n")
        return
    before = json.loads(BEFORE.read_text())[: options.runs]
    pairs = [compared(*pair) for pair in zip(before, now, strict=True)]
    best = np.array([pair[0] for pair in pairs])
    print(f"{len(best)} runs; CPU seconds {_seconds(before):.1f} before, {_seconds(now):.1f} now")
    print(f"best epsilon: at most {best.max():+.2e} larger (seed {best.argmax()}), at most {-best.min():.2e} smaller")
    for name in sorted({name for _, each in pairs for name in each}):
        changes = np.array([each.get(name, 0.0) for _, each in pairs])
        count = sum(name in each for _, each in pairs)
        where = f"(seed {changes.argmax()})"
        print(f"  {name:32} {count:4} runs: from {changes.min():+.2e} to {changes.max():+.2e} {where}")
    target = Path("out") / "random-runs.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"before": before, "now": now}, indent=2))
    print(f"written to {target}")


def _seconds(rows: list[dict[str, Any]]) -> float:
    return sum(row.get("seconds", 0.0) for row in rows)


if __name__ == "__main__":
    main()
