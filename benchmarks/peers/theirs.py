"""The peers' side, run in an environment of their own: `python -m benchmarks.peers.theirs COUNT` prints JSON."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from benchmarks.peers.settings import (
    CALIBRATION,
    DELTA,
    MULTIPLIER,
    RATE,
    SMALL_DELTA,
    SMALL_DELTA_TASK,
    STEPS,
    different_steps,
)
from benchmarks.timing import measured

warnings.filterwarnings("ignore")


def results(different: int) -> dict[str, dict[str, dict[str, Any]]]:
    """Peer → task → value and CPU seconds; with 0 different steps, the quick tasks only."""
    if not different:
        return {"dp-accounting": dp_accounting_results(different)}
    return {
        "dp-accounting": dp_accounting_results(different),
        "prv_accountant": prv_results(different),
        "opacus": opacus_results(),
    }


def dp_accounting_results(different: int) -> dict[str, dict[str, Any]]:
    import dp_accounting as dp

    def event(multiplier: float, rate: float) -> Any:
        return dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(multiplier))

    def repeated(factor: float, steps: int) -> Any:
        return dp.SelfComposedDpEvent(event(factor * MULTIPLIER, RATE), steps)

    def epsilon(composed: Any, delta: float = DELTA) -> float:
        return dp.pld.PLDAccountant().compose(composed).get_epsilon(delta)

    def multiplier(target: float) -> float:
        return dp.calibrate_dp_mechanism(
            dp.pld.PLDAccountant,
            lambda z: dp.SelfComposedDpEvent(event(z, CALIBRATION["rate"]), CALIBRATION["steps"]),
            target,
            DELTA,
            dp.LowerEndpointAndGuess(0.1, 1.0),
        )

    table = {}
    for steps in STEPS:
        table[f"epsilon of {steps} steps"] = measured(
            lambda factor, steps=steps: epsilon(repeated(factor, steps)), repeats=5
        )
    table[SMALL_DELTA_TASK] = measured(lambda factor: epsilon(repeated(factor, 10_000), SMALL_DELTA), repeats=3)
    if not different:
        return table
    for target in CALIBRATION["epsilons"]:
        table[f"multiplier for epsilon {target:g}"] = measured(
            lambda factor, target=target: multiplier(target * factor), 1, warm=False
        )

    def composed(factor: float) -> Any:
        return dp.ComposedDpEvent([event(factor * z, q) for z, q in different_steps(different)])

    table[f"epsilon of {different} different steps"] = measured(epsilon, 1, warm=False, prepare=composed)
    return table


def prv_results(different: int) -> dict[str, dict[str, Any]]:
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism as Mechanism

    def epsilon(prvs: list[Any], counts: list[int], error: float) -> float:
        accountant = PRVAccountant(prvs=prvs, max_self_compositions=counts, eps_error=error, delta_error=1e-10)
        return float(accountant.compute_epsilon(DELTA, counts)[2])

    table = {}
    for steps in STEPS:
        table[f"epsilon of {steps} steps"] = measured(
            lambda factor, steps=steps: epsilon([Mechanism(RATE, factor * MULTIPLIER)], [steps], 0.1),
            **_patience(steps),
        )
    table[f"epsilon of {different} different steps"] = measured(
        lambda prvs: epsilon(prvs, [1] * different, 0.1),
        repeats=1,
        warm=False,
        prepare=lambda factor: [Mechanism(q, factor * z) for z, q in different_steps(different)],
    )
    return table


def opacus_results() -> dict[str, dict[str, Any]]:
    from opacus.accountants import PRVAccountant

    def epsilon(steps: int, factor: float) -> float:
        accountant = PRVAccountant()
        accountant.history = [(factor * MULTIPLIER, RATE, steps)]
        return float(accountant.get_epsilon(DELTA))

    return {f"epsilon of {n} steps": measured(lambda factor, n=n: epsilon(n, factor), **_patience(n)) for n in STEPS}


def _patience(steps: int) -> dict[str, Any]:
    """A million steps take these accountants a minute or more: once is enough."""
    return {"repeats": 3} if steps < 1_000_000 else {"repeats": 1, "warm": False}


if __name__ == "__main__":
    print(json.dumps(results(int(sys.argv[1]))))
