"""How close exact instances come to the bound of each theorem: `make sharpness`."""

from __future__ import annotations

import lastiterate as li
from benchmarks.tightness.sharp_instances import INSTANCES, closeness


def main() -> None:
    print(f"{'theorem':36} {'floor':>6} {'δ':>9} {'ε':>9}  largest exact/bound, on")
    for theorem in li.theorems.ALL:
        instances, floor = INSTANCES[theorem.name]
        best = max((closeness(theorem, one) for one in instances), key=lambda found: found.largest)
        of_epsilon = f"{best.epsilon:9.6f}" if best.epsilon else " " * 9
        print(f"{theorem.name:36} {floor:6.3f} {best.delta:9.6f} {of_epsilon}  {best.what}")


if __name__ == "__main__":
    main()
