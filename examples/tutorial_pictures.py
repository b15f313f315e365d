"""Draws one picture for each tutorial, docs/images/tutorial-*.svg, from the runs that the page describes.

`python -m examples.tutorial_pictures` draws all of them, `python -m examples.tutorial_pictures plan pandas` some.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tools.document_outputs import BLOCK

import lastiterate as li
from examples.accuracy_pictures import data_scientist, pandas
from examples.picture_style import BLACK, BLUE, GREEN, GREY, RED, YELLOW, curve, name, picture, save
from examples.processes_picture import distributed

TUTORIALS = Path(__file__).parent.parent / "docs" / "tutorials"


def names_of(page: str, blocks: int = 1) -> dict[str, Any]:
    """What the first blocks of Python of a tutorial define."""
    code = [body for language, body in BLOCK.findall((TUTORIALS / f"{page}.md").read_text()) if language == "python"]
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for body in code[:blocks]:
            exec(compile(body, page, "exec"), names)
    return names


def whole(low: float, high: float, count: int) -> list[int]:
    """Whole numbers, each about as many times the one before."""
    return [int(one) for one in np.unique(np.round(np.geomspace(low, high, count)))]


def engineer() -> None:
    run, passes = names_of("engineer")["run"], whole(1, 100, 14)
    reports = [li.account(replace(run, steps=li.epochs(count)), delta=1e-6) for count in passes]
    figure, axes = picture("Only the last iterate is released: ε stops growing")
    curve(axes, passes, [one.epsilon_all_released for one in reports], "every iterate\nreleased", GREY)
    last = [one.epsilon for one in reports]
    curve(axes, passes, last, "last iterate only", RED, above=3)
    lower = [one.lower_bound.epsilon for one in reports]
    curve(axes, passes, lower, "lower bound", BLACK, ":", above=-3)
    axes.set(xscale="log", xlim=(1, 340), yscale="log", ylim=(0.2, 45), xlabel="epochs", ylabel="ε at δ = 1e-6")
    axes.set_yticks([0.3, 1, 3, 10, 30], ["0.3", "1", "3", "10", "30"])
    axes.minorticks_off()
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    save(figure, "engineer")


def calibrate() -> None:
    plan, passes = names_of("calibrate")["plan"], whole(1, 1000, 13)
    needed = [
        li.calibrate(replace(plan, steps=li.epochs(count)), epsilon=1.0, delta=1e-6).noise.std for count in passes
    ]
    sensitivity, mu = 2 / 500, li.notions.largest_mu(epsilon=1.0, delta=1e-6)
    figure, axes = picture("Noise that is needed for ε = 1")
    curve(axes, passes, [sensitivity * count**0.5 / mu for count in passes], "every iterate\nreleased", GREY)
    curve(axes, passes, needed, "last iterate only", RED)
    axes.set(xscale="log", xlim=(1, 5500), yscale="log", xlabel="epochs")
    axes.set_ylabel("standard deviation on the mean gradient")
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    axes.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    save(figure, "calibrate")


def plan() -> None:
    epsilons = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
    figure, axes = picture("Expected error of the best plan")
    for records, colour in ((5_000, GREY), (50_000, RED), (500_000, BLUE)):
        plans = li.plan(
            loss=li.losses.logistic(feature_norm=1.0),
            records=records,
            features=20,
            epsilon=2.0,
            delta=1e-5,
            adjacency=li.ZERO_OUT,
        )
        curve(axes, epsilons, [error for _, error in plans.frontier(epsilons)], f"{records:,} records", colour)
    axes.set(xscale="log", xlim=(0.22, 19), yscale="log", xlabel="ε at δ = 1e-5")
    axes.set_ylabel("loss above the optimum, reference problem")
    axes.set_xticks([0.25, 0.5, 1, 2, 4, 8], ["¼", "½", "1", "2", "4", "8"])
    axes.minorticks_off()
    save(figure, "plan")


def deep_learning() -> None:
    names = names_of("deep-learning", 5)
    delta, run = names["delta"], names["run"]
    rows = {
        "network, shuffled, replace one": (names["report"].epsilon, GREY),
        "network, shuffled, zero out": (names["zeroed"].epsilon, GREY),
        "network of smoothness 0.5, shuffled, replace one": (li.account(names["smooth"], delta=delta).epsilon, BLUE),
        "network, Poisson, replace one": (names["replaced"].compose(run.steps).epsilon(delta), YELLOW),
        "last layer only, shuffled, replace one": (li.account(names["last_layer"], delta=delta).epsilon, RED),
        "network, Poisson, add or remove one": (names["added"].epsilon(delta), YELLOW),
    }
    figure, axes = picture("Noise multiplier 2, 50,000 records, batches of 500, 20 epochs: six different ε", height=3.2)
    for place, (epsilon, colour) in enumerate(rows.values()):
        axes.barh(-place, epsilon, color=colour, height=0.6)
        name(axes, epsilon, -place, f"{epsilon:.3g}", BLACK)
    axes.set_yticks([-place for place in range(len(rows))], list(rows))
    axes.set(xlim=(0, 33), xlabel="ε at δ = 1e-5")
    axes.grid(visible=False, axis="y")
    save(figure, "deep-learning")


def opacus() -> None:
    loss, noise = li.losses.logistic(feature_norm=1.0), li.OnGradientSum(multiplier=1.5, clip=1.0)
    run = li.Run(loss, li.Shuffled(600, 50), 0.5, noise, li.epochs(4), adjacency=li.ZERO_OUT)
    passes = [1, 2, 3, 4, 6, 8, 12, 16, 20]
    reports = [li.account(replace(run, steps=li.epochs(count)), delta=1e-5) for count in passes]
    step = li.notions.subsampled_gaussian(mu=1 / 1.5, inclusion=1 / 12)
    figure, axes = picture("Logistic regression with Opacus and a shuffled loader: which ε holds?")
    curve(axes, passes, [one.epsilon_all_released for one in reports], "holds: every\niterate released", GREY)
    curve(axes, passes, [one.epsilon for one in reports], "holds: last iterate\nonly", RED, above=-10)
    printed = [step.compose(12 * count).epsilon(1e-5) for count in passes]
    curve(axes, passes, printed, "printed by Opacus,\nfor Poisson batches", YELLOW, "--", above=10)
    axes.set(xlim=(0, 26.5), ylim=(0, 18), xlabel="epochs", ylabel="ε at δ = 1e-5, zero out")
    axes.set_xticks([1, 4, 8, 12, 16, 20])
    save(figure, "opacus")


def releases() -> None:
    run = names_of("releases")["run"]
    counts = [0, 1, 2, 3, 4, 5, 9, 11, 14, 19]
    steps = {count: [run.steps * place // (count + 1) for place in range(1, count + 1)] for count in counts}
    reports = [li.account(run, delta=1e-5, releases=steps[count]) for count in counts]
    figure, axes = picture("60 steps: every checkpoint that is released raises ε")
    axes.plot(counts, [one.epsilon for one in reports], "o-", color=RED, linewidth=2.2, markersize=4)
    every = reports[0].epsilon_all_released
    axes.axhline(every, linestyle=":", color=GREY, linewidth=1.6)
    name(axes, 0, every, f"every iterate released: {every:.2f}", GREY, above=8)
    name(axes, 0, reports[0].epsilon, f"last iterate only: {reports[0].epsilon:.2f}", BLACK, above=-6)
    name(axes, 2, reports[2].epsilon, f"and checkpoints at steps 20 and 40: {reports[2].epsilon:.2f}", BLACK, above=-8)
    axes.set(xlim=(-0.5, 20), ylim=(0, 6.5), xlabel="released checkpoints, evenly spaced", ylabel="ε at δ = 1e-5")
    axes.set_xticks([0, 5, 10, 15, 20])
    save(figure, "releases")


def privacy_officer() -> None:
    report = names_of("privacy-officer")["report"]
    alarms = np.linspace(0, 1, 101)
    every = next(one for one in report.guarantees if one.theorem.name == "bok2024/cyclic/composition")
    figure, axes = picture("What an attacker can detect at most")
    axes.plot(100 * alarms, 100 * (1 - every.notion.tradeoff(alarms)), color=GREY, linewidth=1.6)
    axes.plot(100 * alarms, 100 * (1 - report.tradeoff(alarms)), color=RED, linewidth=2.2)
    axes.plot([0, 100], [0, 100], ":", color=BLACK, linewidth=1.6)
    name(axes, 15, 76, f"every iterate released: ε = {report.epsilon_all_released:.1f}", GREY)
    name(axes, 22, 58, f"this claim: ε = {report.epsilon:.2f}", RED)
    name(axes, 62, 52, "guessing", BLACK)
    axes.set(xlim=(0, 100), ylim=(0, 100), xlabel="false positives, % of unchanged data sets")
    axes.set_ylabel("detected changes of a record, %")
    save(figure, "privacy-officer")


def researcher() -> None:
    run, steps = names_of("researcher")["run"], whole(10, 10_000, 10)
    shown = {
        "bok2024/random/composition": ("every iterate: composition", GREY),
        "ye2022/random": ("Ye & Shokri 2022, corrected", YELLOW),
        "bok2024/random/strongly-convex": ("Bok et al. 2024", BLUE),
        "hidden-participation": ("hidden-participation", GREEN),
        "window-tail": ("window-tail", RED),
    }
    figure, axes = picture("Upper bounds by theorem, and the lower bound of an exact instance")
    processes = [replace(run, steps=count).process for count in steps]
    theorems = {one.name: one for one in li.theorems.CATALOGUE}
    for theorem, (text, colour) in shown.items():
        curve(axes, steps, [theorems[theorem].apply(one).epsilon(1e-6) for one in processes], text, colour)
    lower = [li.lower_bound(replace(run, steps=count), delta=1e-6).epsilon for count in steps]
    curve(axes, steps, lower, "lower bound", BLACK, ":")
    axes.set(xscale="log", xlim=(10, 160_000), yscale="log", xlabel="steps", ylabel="ε at δ = 1e-6")
    axes.set_xticks([10, 100, 1000, 10_000], ["10", "100", "1000", "10 000"])
    axes.set_yticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    axes.minorticks_off()
    save(figure, "researcher")


PICTURES: dict[str, Callable[[], None]] = {
    "engineer": engineer,
    "calibrate": calibrate,
    "plan": plan,
    "data-scientist": lambda: data_scientist(names_of("data-scientist")),
    "pandas": lambda: pandas(names_of("pandas", 3)),
    "deep-learning": deep_learning,
    "opacus": opacus,
    "releases": releases,
    "distributed": distributed,
    "privacy-officer": privacy_officer,
    "researcher": researcher,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore", li.errors.PrivacyLeak)  # models of a picture have seeds, and are not released
    for chosen in sys.argv[1:] or PICTURES:
        PICTURES[chosen]()
