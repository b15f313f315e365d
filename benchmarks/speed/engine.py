"""How long the shift engine takes, from 10⁴ to 10⁷ steps, and an account of a real run. `make bench-engine`."""

from __future__ import annotations

import argparse
import json
import resource
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.timing import measured
from lastiterate.kernel.steps import Steps
from lastiterate.shift.optimise import best_schedule

MNIST = Path(__file__).parents[2] / "examples" / "mnist.toml"


def random_steps(count: int, diameter: float, factor: float) -> Steps:
    """Steps whose noise is multiplied by `factor`."""
    source = np.random.default_rng(0)
    return Steps(
        source.uniform(0, 0.1, count),
        factor * source.uniform(0.5, 2, count),
        source.uniform(0.9, 1.1, count),
        diameter,
    )


def engine_table(largest: int) -> list[dict[str, Any]]:
    rows = []
    count = 10_000
    while count <= largest:
        repeats = 5 if count <= 10**6 else 1
        plain, bounded = (
            measured(best_schedule, repeats, prepare=partial(random_steps, count, diameter))
            for diameter in (np.inf, 1000.0)
        )
        account = measured(lambda run: li.account(run, 1e-5), repeats, prepare=alike(count).with_noise)
        rows.append(
            {
                "steps": count,
                "random schedule": plain["seconds"],
                "with a diameter": bounded["seconds"],
                "account, all alike": account["seconds"],
                "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
        count *= 10
    return rows


def alike(steps: int) -> li.Run:
    return li.Run(
        li.losses.logistic(feature_norm=1.0, l2=0.001),
        li.FullBatch(records=10_000),
        0.5,
        li.OnMeanGradient(std=0.01),
        steps,
    )


def account_table() -> list[dict[str, Any]]:
    run = li.read_run(MNIST)
    rows = []
    orders = {
        "cyclic": run.batches,
        "shuffled once": li.Shuffled(60_000, 1_500, each_epoch=False),
        "shuffled each epoch": li.Shuffled(60_000, 1_500),
    }
    for name, batches in orders.items():
        changed = li.Run(run.loss, batches, run.step_size, run.noise, run.steps)
        account = measured(lambda run: li.account(run, 1e-5), 9, prepare=changed.with_noise)
        verify = measured(li.verify, 9, prepare=lambda factor: li.account(changed.with_noise(factor), 1e-5).certificate)  # noqa: B023
        report = account["value"]
        rows.append(
            {
                "MNIST, 50 epochs": name,
                "epsilon": report.epsilon,
                "composition": report.epsilon_all_released,
                "account, s": account["seconds"],
                "verify, s": verify["seconds"],
            }
        )
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    names = list(rows[0])
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for row in rows:
        print(
            "| "
            + " | ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values())
            + " |"
        )
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 10⁶ steps only")
    options = parser.parse_args()
    tables = {"account": account_table(), "engine": engine_table(10**6 if options.quick else 10**7)}
    for rows in tables.values():
        show(rows)
    target = Path("out") / "bench-engine.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(tables, indent=2))
    print(f"written to {target}")


if __name__ == "__main__":
    main()
