"""`make balls-and-bins`: our bracket on ε beside that of PLD_accounting (Feldman and Shenfeld), CPU seconds on both sides.

The peer runs in an environment of its own, each setting for `--patience` seconds at most; `--accuracy` is the relative width
it is asked for, its own choice unless told. Exits with 1 if the two brackets do not meet in some setting, or ours ends above
theirs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

from benchmarks.environments import ROOT, environment

# Noise multiplier, batches, epochs, δ.
SETTINGS = (
    (1.0, 20, 2, 1e-5),
    (1.0, 20, 1, 1e-5),
    (1.0, 20, 10, 1e-5),
    (0.5, 20, 1, 1e-5),
    (0.3, 10, 1, 1e-5),
    (0.3, 100, 1, 1e-6),
    (2.0, 20, 1, 1e-6),
    (2.0, 20, 50, 1e-6),
    (5.0, 10, 10, 1e-5),
    (5.0, 100, 100, 1e-5),
    (20.0, 10, 100, 1e-5),
    (0.8, 10, 1, 1e-5),
    (0.8, 50, 5, 1e-5),
    (0.6, 200, 3, 1e-5),
    (1.0, 100, 1, 1e-5),
    (1.0, 100, 20, 1e-6),
    (1.0, 1000, 10, 1e-5),
    (0.7, 1000, 1, 1e-8),
    (1.0, 2, 1, 1e-5),
    (1.5, 5, 4, 1e-8),
)
_THEIRS = """
import json, sys, time
from PLD_accounting import gaussian_allocation_epsilon_range as epsilon_range
(multiplier, batches, epochs, delta), wanted = json.loads(sys.argv[1])
start = time.process_time()
upper, lower = epsilon_range(
    delta=delta, sigma=multiplier, num_steps=batches, num_epochs=epochs, epsilon_accuracy=wanted
)
print(json.dumps([lower, upper, time.process_time() - start]))
"""

Setting = tuple[float, int, int, float]


def ours(setting: Setting) -> tuple[float, float, float, float]:
    """Lower, upper, seconds of the upper end, seconds of the lower end."""
    from lastiterate.curves.balls_and_bins import BallsAndBinsDP

    multiplier, batches, epochs, delta = setting
    start = time.process_time()
    given = BallsAndBinsDP(1 / multiplier, batches, epochs)
    upper = float(given.epsilon(delta))
    middle = time.process_time()
    lower = float(given.bracket(delta)[0])  # type: ignore[arg-type]
    return lower, upper, middle - start, time.process_time() - middle


def theirs(setting: Setting, wanted: float, patience: float) -> tuple[float, float, float] | None:
    """Lower, upper, seconds; None if it takes longer."""
    command = [str(environment("pld-accounting")), "-c", _THEIRS, json.dumps([setting, wanted])]
    try:
        answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return None
    lower, upper, seconds = json.loads(answer.stdout.splitlines()[-1])
    return lower, upper, seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accuracy", type=float, default=0.0)
    parser.add_argument("--patience", type=float, default=120.0, help="seconds for one setting of the peer")
    options = parser.parse_args()
    print(f"{'multiplier, batches, epochs, delta':36} {'ours':>22} {'CPU s':>12} {'PLD_accounting':>22} {'CPU s':>8}")
    apart = late = 0
    for place, (multiplier, *others) in enumerate(SETTINGS):
        # Some settings differ in their epochs alone, of which a cache remembers one: no two have the same multiplier.
        setting = (multiplier * (1 + 1e-6 * place), *others)
        low, high, first, second = ours(setting)
        peer = theirs(setting, options.accuracy * high if options.accuracy else -1.0, options.patience)
        said = f"{'no answer in time':>22} {f'> {options.patience:g}':>8}"
        if peer is None:
            late += 1
        else:
            meets = peer[0] <= high <= peer[1] and low <= peer[1]
            apart += not meets
            said = f"{peer[0]:10.5f} – {peer[1]:9.5f} {peer[2]:8.2f}{'' if meets else '   APART'}"
        named = ", ".join(f"{one:g}" for one in setting)
        print(f"{named:36} {low:10.5f} – {high:9.5f} {first:5.2f} + {second:4.2f} {said}", flush=True)
    print(f"{len(SETTINGS) - late} settings compared, {late} without an answer of the peer, {apart} apart")
    return int(apart > 0)


if __name__ == "__main__":
    sys.exit(main())
