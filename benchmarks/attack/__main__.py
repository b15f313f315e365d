"""`make attack`: every attack that once showed more than was claimed, tried again: claimed beside shown."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from benchmarks.attack.attacks import Shown
from benchmarks.attack.caveats_attacks import CAVEATS
from benchmarks.attack.combined_features import COMBINED_FEATURES
from benchmarks.attack.floating_point import FLOATING_POINT
from benchmarks.attack.leaks import LEAKS
from benchmarks.attack.numerics_attacks import NUMERICS
from benchmarks.attack.outside_attacks import OUTSIDE


def main() -> int:
    attacks: tuple[Callable[[], list[Shown]], ...] = (
        *FLOATING_POINT,
        *LEAKS,
        *COMBINED_FEATURES,
        *OUTSIDE,
        *CAVEATS,
        *NUMERICS,
    )
    failed = 0
    print(f"{'attack':58} {'claimed':>38} {'shown':>38}")
    for attack in attacks:
        started = time.perf_counter()
        for one in attack():
            failed += not one.holds
            verdict = "" if one.holds else "   DOES NOT HOLD"
            print(f"{one.what:58.58} {one.claimed:>38} {one.shown:>38}{verdict}", flush=True)
        print(f"{'':58} {time.perf_counter() - started:.1f} s", flush=True)
    print(f"{failed} claims do not hold")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
