"""Random batches and bounded domains: CPU seconds of accounts, curves and calibrations, before and now. `make bench-random`.

One thread, medians. "before" was measured with this very file on the commit that is named, on the machine and in the hour of
the table in docs/benchmarks.md; elsewhere only the ratio to the goal means something. `--plot` draws what an account takes
from 10² to 10⁷ steps; `--quick` leaves out what takes long.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.timing import measured, said_by
from lastiterate.accounting.epsilon_curve import growth

DELTA = 1e-5
COMMIT = "95ff3fc"
IMAGE = Path(__file__).parents[2] / "docs" / "images" / "cost-of-accounts.svg"


def convex(steps: int, domain: li.Ball | None = None) -> li.Run:
    loss = li.losses.logistic(feature_norm=1.0)
    return li.Run(loss, li.FixedSize(1_000, 50), 0.5, li.OnMeanGradient(0.3), steps, domain)


def bounded(steps: int) -> li.Run:
    return convex(steps, li.Ball(0.1))


def logistic(steps: int) -> li.Run:
    loss = li.losses.logistic(feature_norm=1.0, l2=0.01)
    return li.Run(loss, li.FixedSize(10_000, 100), 0.5, li.OnMeanGradient(0.1), steps)


def scheduled(steps: int) -> li.Run:
    """Step sizes that fall."""
    sizes = tuple((0.5 / (1 + 10 * np.arange(steps) / steps)).tolist())
    loss = li.losses.logistic(feature_norm=1.0, l2=0.01)
    return li.Run(loss, li.FixedSize(10_000, 100), sizes, li.OnMeanGradient(0.1), steps)


def network(steps: int) -> li.Run:
    return li.Run(li.losses.network(clip=1.0), li.Poisson(60_000, 256 / 60_000), 0.1, li.OnGradientSum(1.0, 1.0), steps)


def softmax(steps: int) -> li.Run:
    """MNIST with unit rows: 100 epochs of batches of 120, clipped, in a ball."""
    loss = li.losses.softmax(feature_norm=1.0, clip=1.0)
    return li.Run(loss, li.FixedSize(60_000, 120), 0.05, li.OnMeanGradient(0.02), steps, li.Ball(10.0))


def decaying(steps: int) -> li.Run:
    """A network with weight decay."""
    loss = li.losses.network(clip=1.0, l2=0.5)
    return li.Run(loss, li.FixedSize(10_000, 100), 0.1, li.OnMeanGradient(0.1), steps, li.Unbounded(dimension=1_000))


def account(run: li.Run) -> li.results.Report:
    return li.account(run, DELTA)


def curve(run: li.Run) -> Any:
    report = account(run)
    return report.profile(np.linspace(0.0, 2 * report.epsilon, 200))


def errors(run: li.Run) -> Any:
    return account(run).tradeoff(np.linspace(0.0, 1.0, 200))


MEMORY = """
import lastiterate as li
from benchmarks.speed.random_batches import network
li.account(network(10**7), 1e-5)
# Of this program alone: what getrusage says begins with the process that started it.
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024)
"""

# What, of which kind of run, how many steps, the work, seconds before, the goal, repetitions.
ROWS: tuple[tuple[str, Callable[[int], li.Run], int, Callable[[li.Run], Any], float, float, int], ...] = (
    ("account, bounded domain, 68 fixed-size steps", bounded, 68, account, 1.477, 0.3, 5),
    ("account and 200 points of delta(epsilon)", logistic, 2_000, curve, 7.447, 1.0, 3),
    ("account and 200 points of the trade-off", logistic, 2_000, errors, 7.293, 1.0, 3),
    ("epsilon over epochs, 24 points", logistic, 2_000, partial(growth, delta=DELTA), 13.80, 1.0, 3),
    (
        "calibrate logistic, fixed size, 2000 steps",
        logistic,
        2_000,
        partial(li.calibrate, epsilon=1.0, delta=DELTA),
        5.196,
        0.4,
        5,
    ),
    (
        "calibrate network, Poisson, 4700 steps",
        network,
        4_700,
        partial(li.calibrate, epsilon=2.0, delta=DELTA),
        0.264,
        0.1,
        5,
    ),
    ("account of a clipped softmax, fixed size, 50,000 steps", softmax, 50_000, account, 2.465, 1.0, 3),
    ("10^6 fixed-size steps that differ", scheduled, 10**6, account, 20.99, 2.0, 3),
    ("10^6 fixed-size steps, bounded domain", bounded, 10**6, account, 1.949, 2.0, 3),
    ("10^7 Poisson steps", network, 10**7, account, 11.94, 2.0, 3),
)

KINDS: tuple[tuple[str, Callable[[int], li.Run], int], ...] = (
    ("strongly convex, fixed size", logistic, 10**7),
    ("convex, bounded, fixed size", bounded, 10**7),
    ("network, Poisson", network, 10**7),
    ("clipped softmax, bounded, fixed size", softmax, 10**7),
    ("network, weight decay, fixed size", decaying, 10**7),
    ("steps that differ, fixed size", scheduled, 10**6),
)


def table(repeats: int | None) -> list[dict[str, Any]]:
    found = []
    print(f"{'':56} {'before':>8} {'now':>8} {'goal':>8} {'times':>6}")
    for what, kind, steps, work, before, goal, count in ROWS:
        now = measured(work, repeats or count, prepare=kind(steps).with_noise)["seconds"]
        found.append({"what": what, "before": before, "now": now, "goal": goal})
        print(f"{what:56} {before:8.3f} {now:8.3f} {goal:8.3f} {before / now:6.1f}", flush=True)
    memory = float(said_by(MEMORY))
    found.append({"what": "10^7 Poisson steps, MB", "before": MEMORY_BEFORE, "now": memory, "goal": 200.0})
    print(f"{'10^7 Poisson steps, MB at most':56} {MEMORY_BEFORE:8.0f} {memory:8.0f} {200:8.0f}")
    return found


MEMORY_BEFORE = 485.0


def costs() -> dict[str, list[tuple[int, float]]]:
    """CPU seconds of one account, by kind and number of steps."""
    found: dict[str, list[tuple[int, float]]] = {}
    account(bounded(68))
    for name, kind, most in KINDS:
        counts = [10**power for power in range(2, 8) if 10**power <= most]
        found[name] = [(count, _once(kind(count).with_noise(1 + 1e-6 * place))) for place, count in enumerate(counts)]
        print(f"{name:40}", "  ".join(f"{took:.3f}" for _, took in found[name]), flush=True)
    return found


def _once(run: li.Run) -> float:
    started = time.process_time()
    account(run)
    return time.process_time() - started


def draw(found: dict[str, list[tuple[int, float]]]) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "lastiterate"
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, points in found.items():
        axes.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=name)
    axes.set_xlabel("steps")
    axes.set_ylabel("CPU seconds of an account")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(IMAGE, metadata={"Date": None})
    print(f"drawn to {IMAGE}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", action="store_true", help="draw what an account takes, by kind and steps")
    parser.add_argument("--quick", action="store_true", help="each row once")
    options = parser.parse_args()
    print(f"CPU seconds; before: commit {COMMIT}; Python {sys.version.split()[0]}")
    rows: dict[str, Any] = {"rows": table(1 if options.quick else None)}
    if options.plot:
        rows["costs"] = costs()
        draw(rows["costs"])
    target = Path("out") / "bench-random.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(rows, indent=2))
    print(f"written to {target}")


if __name__ == "__main__":
    main()
