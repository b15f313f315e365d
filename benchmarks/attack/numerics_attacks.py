"""Numbers that once were above what was asked for, far above the truth, or not there at all: claimed beside shown."""

from __future__ import annotations

from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.attack.attacks import Shown
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.testing.draws import process
from lastiterate.theorems.bounded_steps import Bounded, PlaceTables

DELTA = 1e-5
LOGISTIC = li.losses.logistic(feature_norm=1.0, l2=0.1)


def calibrated_runs() -> list[Shown]:
    """One step on two records of four: the run that calibrate returns is accounted for again, without its rounding."""
    found = []
    for batches in (li.Shuffled(records=4, batch_size=2), li.FixedSize(records=4, batch_size=2)):
        loss = li.losses.logistic(feature_norm=1.0, l2=0.01)
        run = li.calibrate(li.Run(loss, batches, 0.5, li.OnMeanGradient(std=1.0), 1), epsilon=1.0, delta=1e-8)
        epsilon = li.account(run, 1e-8).epsilon
        found.append(_at_most(f"calibrated, {type(batches).__name__}", 1.0, epsilon))
    return found


def hidden_places() -> list[Shown]:
    """A place with μ = .2 beside one that costs nothing, each as likely: ε was .995."""
    places = HiddenPlaceDP(mus=[0.2, 0.0], pair_mus=[[0.0, 0.2], [0.2, 0.0]], weights=[0.5, 0.5])
    return [_at_most("a place hidden by one that costs nothing", 0.62, places.epsilon(1e-8))]


def balls_and_bins() -> list[Shown]:
    """Noise multipliers of .13 to .2 were not answered; never more than as if the record were in a known bin."""
    found = []
    for multiplier in (0.13, 0.15, 0.175, 0.2):
        noise, bins = li.OnGradientSum(multiplier=multiplier, clip=1.0), li.BallsAndBins(records=40, batches=4)
        loss = li.losses.logistic(feature_norm=1.0)
        epsilon = li.account(li.Run(loss, bins, 0.1, noise, 4, adjacency=li.ZERO_OUT), DELTA).epsilon
        found.append(
            _at_most(
                f"balls and bins, multiplier {multiplier}",
                li.notions.GaussianDP(1 / multiplier).epsilon(DELTA),
                epsilon,
            )
        )
    return found


def tiny_rates() -> list[Shown]:
    """72 steps at a rate of 5.8e-6: ε was .131 for .00047, and the δ of an answer above the one that was asked for."""
    steps = li.notions.subsampled_gaussian(mu=0.667, inclusion=5.8e-6).compose(72)
    epsilon = steps.epsilon(1e-14)
    return [
        _at_most("few steps at a tiny rate", 1e-3, epsilon),
        _at_most("the δ of that ε", 1e-14 * (1 + 1e-9), steps.delta(epsilon)),
    ]


def declared_checkpoints() -> list[Shown]:
    """An epoch that is not finished: one more iterate that is released lowered ε by up to 7 %."""
    loss, batches = li.losses.logistic(feature_norm=1.0, clip=0.3), li.Shuffled(records=60, batch_size=4)
    run = li.Run(loss, batches, 0.1, li.OnIterate(std=0.168), 22, domain=li.Ball(radius=0.5))
    alone = li.account(run, DELTA).epsilon
    released = {step: li.account(run, DELTA, releases=[step]).epsilon for step in (11, 15, 21)}
    return [_at_most(f"no release, and one after step {step}", one, alone) for step, one in released.items()]


def very_long_runs() -> list[Shown]:
    """10⁸ and 10¹² steps that contract were composed, or never answered; they cost what their last steps cost."""
    shuffled = li.Shuffled(records=100, batch_size=20)
    uneven = li.Shuffled(records=101, batch_size=20, last="smaller", each_epoch=False)
    convex, domain = li.losses.logistic(feature_norm=1.0), li.Ball(radius=0.3)
    found = []
    for batches in (
        li.FullBatch(records=100),
        li.Cyclic(records=100, batch_size=20),
        shuffled,
        li.Shuffled(records=100, batch_size=20, each_epoch=False),
        li.BallsAndBins(records=100, batches=5),
        li.Cyclic(records=101, batch_size=20, last="smaller"),
        uneven,
    ):
        found += _for_ever(batches, "shift-engine")
    found += _for_ever(shuffled, "shift-engine", user_records=3)
    found += _for_ever(uneven, "shift-engine", user_records=3)
    found += _for_ever(li.FullBatch(records=100), "linear-optimiser", optimizer=li.SGD(momentum=0.5))
    found += _for_ever(shuffled, "linear-optimiser/random-order", released=li.EMA(decay=0.9))
    found += _for_ever(li.FullBatch(records=100), "linear-optimiser", released=li.AVERAGE(last=30))
    return found + _for_ever(li.Cyclic(records=100, batch_size=20), "reflection", loss=convex, domain=domain)


def _for_ever(batches: Any, name: str, **more: Any) -> list[Shown]:
    """Beside what a theorem says of a few thousand steps, whole epochs of them."""
    given = {"loss": LOGISTIC, "noise": li.OnMeanGradient(std=0.5), **more}
    counts = [steps - steps % batches.per_epoch for steps in (3_000, 10**8, 10**12)]
    short, *runs = [li.Run(batches=batches, step_size=0.5, steps=steps, **given) for steps in counts]
    limit = li.account(short, DELTA, theorems=[one for one in li.theorems.ALL if one.name == name]).epsilon * (1 + 1e-6)
    said = "".join(f", {one!r}" for one in more.values())
    return [_at_most(f"{one.steps:g} steps, {batches!r}{said}", limit, li.account(one, DELTA).epsilon) for one in runs]


def settled_tables() -> list[Shown]:
    """A table for any number of steps before it, row by row beside tables computed step by step."""
    return [
        _settled(push=0.4, lipschitz=0.9, drift=np.inf, diameter=1.0),
        _settled(push=0.4, lipschitz=3.0, drift=0.5, diameter=1.0),
        _settled(push=5.0, lipschitz=1e6, drift=5.0, diameter=5e-5),
    ]


def _settled(push: float, lipschitz: float, drift: float, diameter: float) -> Shown:
    batches = li.Cyclic(records=40, batch_size=1)
    domain = Bounded(process(batches, 40, push, 1.0, lipschitz, diameter=diameter, drift=drift))
    table = domain.turn.last
    while not domain.settled(table):
        table = domain.free.before(table)
    reused = PlaceTables(domain)._without(table)[-1]
    worst = step_by_step = table
    for _ in range(30):
        step_by_step = domain.free.before(step_by_step)
        worst = np.maximum(worst, step_by_step)
    if reused is None:
        return Shown(f"a settled table, Lipschitz constant {lipschitz:g}", "a table", "none", False)
    short = float((worst - reused).max())
    return _at_most(f"a settled table, Lipschitz constant {lipschitz:g}: short by", 1e-9, short)


def _at_most(what: str, most: float, value: float) -> Shown:
    """A number that is claimed to be at most `most`, up to an ulp or so of it."""
    return Shown(what, f"at most {most:.6g}", f"{value:.6g}", value <= most * (1 + 1e-9))


NUMERICS = (
    calibrated_runs,
    hidden_places,
    balls_and_bins,
    tiny_rates,
    declared_checkpoints,
    very_long_runs,
    settled_tables,
)
