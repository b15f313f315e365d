"""`make balls-and-bins`: our bracket on ε beside that of PLD_accounting (Feldman and Shenfeld), CPU seconds on both sides.

The peer runs in an environment of its own; `--accuracy` is the relative width it is asked for, its own choice unless told.
Exits with 1 if the two brackets do not meet in some setting, or ours ends above theirs.
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
settings, accuracy = json.loads(sys.argv[1]), float(sys.argv[2])
for (multiplier, batches, epochs, delta), about in settings:
    start = time.process_time()
    wanted = accuracy * about if accuracy > 0 else -1.0
    upper, lower = epsilon_range(
        delta=delta, sigma=multiplier, num_steps=batches, num_epochs=epochs, epsilon_accuracy=wanted
    )
    print(json.dumps([lower, upper, time.process_time() - start]), flush=True)
"""


def ours() -> list[tuple[float, float, float, float]]:
    """Lower, upper, seconds of the upper end, seconds of the lower end."""
    from lastiterate.privacy.balls_and_bins import BallsAndBinsDP

    found = []
    for multiplier, batches, epochs, delta in SETTINGS:
        start = time.process_time()
        given = BallsAndBinsDP(1 / multiplier, batches, epochs)
        upper = float(given.epsilon(delta))
        middle = time.process_time()
        lower = float(given.bracket(delta)[0])  # type: ignore[arg-type]
        found.append((lower, upper, middle - start, time.process_time() - middle))
    return found


def theirs(about: list[float], accuracy: float) -> list[tuple[float, float, float]]:
    asked = json.dumps(list(zip(SETTINGS, about, strict=True)))
    answer = subprocess.run(
        [str(environment("pld-accounting")), "-c", _THEIRS, asked, str(accuracy)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [tuple(json.loads(line)) for line in answer.stdout.splitlines() if line.startswith("[")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accuracy", type=float, default=0.0)
    own = ours()
    peer = theirs([upper for _, upper, _, _ in own], parser.parse_args().accuracy)
    print(f"{'multiplier, batches, epochs, delta':36} {'ours':>22} {'CPU s':>12} {'PLD_accounting':>22} {'CPU s':>8}")
    apart = 0
    for setting, (low, high, first, second), (their_low, their_high, seconds) in zip(SETTINGS, own, peer, strict=True):
        meets = their_low <= high <= their_high and low <= their_high
        apart += not meets
        print(
            f"{', '.join(f'{one:g}' for one in setting):36} {low:10.5f} – {high:9.5f} {first:5.2f} + {second:4.2f} "
            f"{their_low:10.5f} – {their_high:9.5f} {seconds:8.2f}{'' if meets else '   APART'}"
        )
    print("every upper end of ours is inside the peer's bracket" if not apart else f"{apart} are APART")
    return int(apart > 0)


if __name__ == "__main__":
    sys.exit(main())
