"""Tables 1, 3 and 7 to 12 of Bok2024 beside ours. `make tables`."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import lastiterate as li
from lastiterate.reproduction import bok2024_reference as reference
from lastiterate.runs.process import Process
from lastiterate.theorems import composition
from lastiterate.theorems.papers import bok2024
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from lastiterate.theorems.theorem import Guarantee, Theorem

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from processes import process


def mu_of(theorem: Theorem, given: Process) -> float:
    answer = theorem.apply(given)
    return answer.notion.mu if isinstance(answer, Guarantee) else math.nan  # type: ignore[attr-defined]


def row(cells: list[object]) -> None:
    print("| " + " | ".join(f"{cell:.9g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |")


def header(title: str, names: list[str]) -> None:
    print(f"\n{title}\n")
    row(list(names))
    print("|" + "---|" * len(names))


def cyclic(per_epoch: int, epochs: int, **numbers: float) -> Process:
    return process(li.Cyclic(records=per_epoch * 10, batch_size=10), per_epoch * epochs, **numbers)


def mnist_tables() -> None:
    header("Tables 1 and 3: MNIST", ["l2", "epochs", "μ, authors", "μ, ours", "ε, reference", "ε, ours"])
    for (kind, epochs), mu in reference.TABLE_3_MU.items():
        factor = 1.0 if kind == "composition" else 1 - 0.05 * float(kind)
        given = cyclic(40, epochs, sensitivity=2 / 3, lipschitz=factor)
        ours = mu_of(composition.PASSES_COMPOSITION if kind == "composition" else SHIFT_ENGINE, given)
        row(
            [kind, epochs, mu, ours, reference.TABLE_1_EPSILON[kind, epochs], li.notions.GaussianDP(ours).epsilon(1e-5)]
        )


def full_tables() -> None:
    header("Table 7: strongly convex NoisyGD", ["c", "steps", "μ, authors", "μ, ours"])
    for (factor, steps), mu in reference.TABLE_7_MU.items():
        lipschitz = 1.0 if factor == "composition" else float(factor)
        given = process(li.FullBatch(records=10), steps, sensitivity=0.1, lipschitz=lipschitz)
        row([factor, steps, mu, mu_of(SHIFT_ENGINE, given)])
    header("Table 8: constrained NoisyGD", ["L/n", "η", "t*", "μ*, authors", "μ* by 4.3", "μ*, ours"])
    for (gradient, eta), (crossing, mu) in reference.TABLE_8.items():
        given = process(li.FullBatch(records=10), 1000, sensitivity=eta * gradient, noise=eta * 8, diameter=1.0)
        row([gradient, eta, crossing, mu, mu_of(bok2024.BOUNDED_FULL, given), mu_of(SHIFT_ENGINE, given)])


def cyclic_tables() -> None:
    header("Table 9: strongly convex NoisyCGD", ["batches", "c", "epochs", "μ, authors", "μ, ours"])
    for (per_epoch, factor, epochs), mu in reference.TABLE_9_MU.items():
        if per_epoch == "composition":
            ours = mu_of(composition.PASSES_COMPOSITION, cyclic(10, epochs, sensitivity=0.2))
        else:
            ours = mu_of(SHIFT_ENGINE, cyclic(per_epoch, epochs, sensitivity=0.2, lipschitz=factor))
        row([per_epoch, factor, epochs, mu, ours])
    names = [
        "batches",
        "L/b",
        "η",
        "μ* by 4.6",
        "E* printed",
        "E* correct",
        "4.6 holds from E",
        "ours at E* printed",
        "ours, E → ∞",
    ]
    header("Tables 10 to 12: constrained NoisyCGD", names)
    for (per_epoch, gradient, eta), (mu, printed, *_, valid_from, _) in reference.TABLES_10_TO_12.items():
        numbers = {"sensitivity": eta * gradient, "noise": eta * 3, "diameter": 1.0}
        crossing = math.ceil((mu / (gradient / 3)) ** 2 - 1e-9)
        ours = [mu_of(SHIFT_ENGINE, cyclic(per_epoch, epochs, **numbers)) for epochs in (printed, 20 * valid_from)]
        row([per_epoch, gradient, eta, mu, printed, crossing, valid_from, *ours])


if __name__ == "__main__":
    mnist_tables()
    full_tables()
    cyclic_tables()
