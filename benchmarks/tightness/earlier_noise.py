"""What prepayment and hidden places save, beside the papers, composition, Poisson sampling and lower bounds.

`python -m benchmarks.tightness.earlier_noise`: the tables of docs/new.md, and out/earlier-noise.json.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

import lastiterate as li
from benchmarks.tightness.random_batches import by_theorem
from benchmarks.timing import measured
from lastiterate.auditing.linear_instances import epsilon_of
from lastiterate.runs.per_step import each
from lastiterate.shift.prepay import best_slopes

Row = dict[str, str | int | float | None]

MNIST = Path(__file__).parents[2] / "examples" / "mnist.toml"
RECORDS, BATCH = 4000, 200
PER_EPOCH = RECORDS // BATCH
DELTA = 1e-5
EPOCHS = (1, 3, 10, 30)
_PARAMETERS = 1000  # of a network
MULTIPLIERS = (0.7, 1.0, 2.0, 4.0)
ORDERS = {
    "cyclic": li.Cyclic(RECORDS, BATCH),
    "shuffled once": li.Shuffled(RECORDS, BATCH, each_epoch=False),
    "reshuffled": li.Shuffled(RECORDS, BATCH),
}
KINDS = {
    "shuffled": ORDERS["reshuffled"],
    "bins": li.BallsAndBins(RECORDS, PER_EPOCH),
    "Poisson": li.Poisson(RECORDS, 1 / PER_EPOCH),
}
PAPERS = ("bok2024", "kong2025", "boninsegna2023", "feldman2018", "balle2019", "chourasia2021", "ye2022", "asoodeh2023")
COMPOSITION = "bok2024/cyclic/composition"
THEOREMS = {one.name: one for one in li.theorems.ALL}
_PREPAID, _AVERAGED = "prepayment/random-order", "random-order"


def logistic(batches: object, step_size: float, epochs: int, multiplier: float = 2.0) -> li.Run:
    """Logistic regression with features of norm 1, so that ηM is a quarter of the step size."""
    noise = li.OnGradientSum(multiplier=multiplier, clip=1.0)
    return li.Run(li.losses.logistic(feature_norm=1.0), batches, step_size, noise, li.epochs(epochs))  # type: ignore[arg-type]


def orders_table(step_sizes: Iterable[float] = (0.1, 0.4), epochs: Iterable[int] = EPOCHS) -> list[Row]:
    """The three orders, with noise multiplier 2."""
    return [
        {"batches": order, "step size": size, "epochs": count} | bounds(logistic(ORDERS[order], size, count))
        for size in step_sizes
        for order in ORDERS
        for count in epochs
    ]


def bounds(run: li.Run, delta: float = DELTA) -> Row:
    """What there was before and what there is now; None where a theorem does not apply."""
    report = li.account(run, delta, theorems=li.theorems.ALL)
    found = by_theorem(report)
    shuffled = run.batches.shuffled
    return {
        "composition": found[COMPOSITION],
        "papers": papers(run, found, delta),
        "engine": found.get("random-order" if shuffled else "shift-engine"),
        "prepaid": found.get("prepayment/random-order" if shuffled else "prepayment"),
        "hidden": found.get("hidden-place"),
        "both": found.get("hidden-place/prepaid"),
        "chain": None if shuffled else chain(run, delta),
        "instance": report.lower_bound.epsilon,
    }


def papers(run: li.Run, found: dict[str, float], delta: float) -> float:
    """The best that a theorem of a paper gives, composition included, corrected and converted as in the catalogue.

    One random order is a mixture of fixed ones, so what a paper proves of cyclic batches holds for it.
    """
    batches = run.batches
    if batches.shuffled and not batches.reshuffled:
        fixed = li.Cyclic(batches.records, batches.batch_size)  # type: ignore[attr-defined]
        found = by_theorem(li.account(replace(run, batches=fixed), delta, theorems=li.theorems.ALL))
    return min(epsilon for name, epsilon in found.items() if name.startswith(PAPERS))


def chain(run: li.Run, delta: float) -> float:
    """ε of the best linear chain with slopes in [1 − ηM, L] that change over time.

    No bound that knows only the pushes, the noise and these slopes can be below. It is not a lower bound for the run itself,
    whose loss is one and the same at every step; that is what the column `instance` has.
    """
    process = run.process
    pushes = process.sensitivity * process.inclusion
    lowest = each(lambda size: 1 - size * run.loss.smoothness, np.full(run.steps, run.step_size))
    weights = best_slopes(pushes, process.noise, lowest, process.lipschitz)
    mu = float(np.sum(pushes * weights)) / math.sqrt(float(np.sum(np.square(process.noise * weights))))
    return epsilon_of(run, mu, delta)


def shuffled_mnist(epochs: int) -> li.Run:
    """The run of Bok et al. 2024 as the paper describes it, in a new order each epoch; its gradients have no bound."""
    run = li.read_run(MNIST)
    return li.Run(run.loss, li.Shuffled(60_000, 1_500), run.step_size, run.noise, li.epochs(epochs))


def readme_run(epochs: int) -> li.Run:
    loss, batches = li.losses.logistic(feature_norm=1.0, l2=0.01), li.Shuffled(records=60_000, batch_size=1_500)
    return li.Run(loss, batches, 0.5, li.OnMeanGradient(std=0.002), li.epochs(epochs))


def mnist_table() -> list[Row]:
    """60,000 records, batches of 1,500, a new order each epoch."""
    runs = {("Bok et al. 2024", count): shuffled_mnist(count) for count in (1, 10, 50)}
    runs |= {("README", count): readme_run(count) for count in (10, 50)}
    return [{"run": name, "epochs": count} | bounds(run) for (name, count), run in runs.items()]


def hard_losses_table(delta: float = 1e-6) -> list[Row]:
    """A new order each epoch, three epochs, sensitivity half the noise; gradients unbounded, or clipped and not convex."""
    convex = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=2.0)
    runs = [
        ("convex, ηM = 1", 20, convex),
        ("convex, ηM = 1", 50, convex),
        ("network, ηM = 0.05", 20, li.losses.network(clip=1.0, smoothness=0.05)),
        ("network, ηM = 0.2", 20, li.losses.network(clip=1.0, smoothness=0.2)),
        ("network, M unknown", 20, li.losses.network(clip=1.0)),
    ]
    return [_hard_loss(*one, delta) for one in runs]


def _hard_loss(name: str, batches: int, loss: li.Loss, delta: float) -> Row:
    domain = li.Unbounded(dimension=_PARAMETERS)
    run = li.Run(loss, li.Shuffled(100 * batches, 100), 1.0, li.OnMeanGradient(std=0.04), li.epochs(3), domain)
    report = li.account(run, delta, theorems=li.theorems.ALL)
    found = by_theorem(report)
    prepaid = {name: found.pop(name) for name in list(found) if "prepa" in name}
    hidden = {theorem: epsilon for theorem, epsilon in found.items() if theorem.startswith("hidden-place")}
    return {
        "loss": name,
        "per epoch": batches,
        "composition": found[COMPOSITION],
        "before": min(epsilon for theorem, epsilon in found.items() if theorem not in hidden),
        "hidden": min(hidden.values(), default=None),
        "and prepaid": min(prepaid.values(), default=None),
        "instance": report.lower_bound.epsilon,
    }


def network_table() -> list[Row]:
    """Clipped networks that are smooth, cyclic batches, three epochs: the push sees all parameters."""
    return [{"parameters": count} | bounds(_network(count)) for count in (10**2, 10**4, 10**6)]


def _network(parameters: int) -> li.Run:
    loss, noise = li.losses.network(clip=1.0, smoothness=1.0), li.OnGradientSum(multiplier=2.0, clip=1.0)
    return li.Run(loss, ORDERS["cyclic"], 0.01, noise, li.epochs(3), li.Unbounded(dimension=parameters))


def kinds_row(multiplier: float, epochs: int, step_size: float = 0.08) -> Row:
    """ε under zero-out, which for balls and bins and for Poisson batches is that of adding or removing a record."""
    row: Row = {"multiplier": multiplier, "ηM": step_size / 4, "epochs": epochs}
    for name, batches in KINDS.items():
        run = replace(logistic(batches, step_size, epochs, multiplier), adjacency=li.ZERO_OUT)
        report = li.account(run, DELTA)
        row |= {f"{name}, all": report.epsilon_all_released, f"{name}, last": report.epsilon}
    return row


def kinds_table(multipliers: Iterable[float] = MULTIPLIERS, epochs: Iterable[int] = EPOCHS) -> list[Row]:
    """Every iterate released, or the last alone, for three ways to draw batches of the same expected size."""
    return [kinds_row(multiplier, count) for multiplier in multipliers for count in epochs]


def step_size_table() -> list[Row]:
    """The same with larger steps: the push turns faster, and less is prepaid."""
    return [kinds_row(1.0, epochs, step_size) for step_size in (0.08, 0.4, 1.2, 4.0) for epochs in (1, 10)]


def time_table() -> list[Row]:
    """CPU seconds of the theorem `prepayment`, from the run to ε, cyclic batches of 1,500 of 60,000 records."""
    return [_timed(count, repeats) for count, repeats in ((2_000, 9), (10**6, 5), (10**7, 3))]


def _timed(steps: int, repeats: int) -> Row:
    loss = li.losses.logistic(feature_norm=1.0, l2=0.01)

    def epsilon(factor: float) -> float:
        run = li.Run(loss, li.Cyclic(60_000, 1_500), 0.5, li.OnMeanGradient(std=0.002 * factor), steps)
        return float(THEOREMS["prepayment"].notion(run.process).epsilon(DELTA))

    found = measured(epsilon, repeats)
    return {"steps": steps, "epsilon": found["value"], "seconds": found["seconds"]}


def lines(rows: list[Row]) -> list[str]:
    """A heading and a line for each row; how wide a column is does not depend on the rows that are there."""
    names = list(rows[0])
    return ["".join(_cell(name, name) for name in names)] + [
        "".join(_cell(name, row[name]) for name in names) for row in rows
    ]


_WIDTHS = {"batches": 14, "run": 16, "loss": 20}


def _cell(name: str, value: str | int | float | None) -> str:
    if isinstance(value, float):
        value = f"{value:g}" if name in ("step size", "multiplier", "ηM") else f"{value:.3f}"
    text = "–" if value is None else str(value)
    width = _WIDTHS.get(name, max(len(name) + 2, 9))
    return f"{text:<{width}}" if name in _WIDTHS else f"{text:>{width}}"


TABLES = {
    f"a. Logistic regression, {RECORDS} records, batches of {BATCH}, multiplier 2, delta = {DELTA:g}": orders_table,
    f"b. A new order each epoch, 60000 records, batches of 1500, delta = {DELTA:g}": mnist_table,
    f"c. A new order each epoch, 3 epochs, {_PARAMETERS} parameters, s/noise = 0.5, delta = 1e-06": hard_losses_table,
    "   Clipped networks, ηM = 0.01, cyclic batches, multiplier 2, 3 epochs, delta = 1e-05": network_table,
    f"d. Zero-out: every iterate released, or the last alone; delta = {DELTA:g}": kinds_table,
    "   The same with larger steps": step_size_table,
    "e. CPU seconds of the theorem prepayment, all steps alike": time_table,
}


def main() -> None:
    tables = {}
    for title, table in TABLES.items():
        tables[title] = table()
        print(title, *lines(tables[title]), "", sep="\n", flush=True)
    target = Path("out") / "earlier-noise.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(tables, indent=1, ensure_ascii=False))
    print(f"written to {target}")


if __name__ == "__main__":
    main()
