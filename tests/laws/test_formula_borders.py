"""Formulas that take over above a size: never below the finer ones, and larger by little, on runs small enough for both."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cold import forget_everything

import lastiterate as li
from lastiterate.curves.balls_and_bins import BallsAndBinsDP
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.hidden_participation import AveragedGaussianDP, present_or_absent
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.mixing.contraction import CurvedContraction
from lastiterate.runs.process import Process, Update
from lastiterate.shift.distance_bounds import Maps, remaining_mu
from lastiterate.testing.draws import random_smooth
from lastiterate.theorems.balls_and_bins import composed_epochs
from lastiterate.theorems.groups import placed_by_chance
from lastiterate.theorems.papers.bok2024 import _sampled
from lastiterate.theorems.places import Place, place_evidence
from lastiterate.theorems.typical_batches import released_window, sampled_window
from lastiterate.theorems.window_tail import window_of
from processes import process

SOURCE = Path(li.__file__).parent
ROOMS = ("theorems", "kernel", "shift", "mixing", "curves")
DELTAS = (1e-3, 1e-8)
BY_NAME = {theorem.name: theorem for theorem in li.theorems.ALL}
Ask = Callable[[Any], list[float]]

ONE_ORDER, NEW_ORDERS = li.Shuffled(120, 10, each_epoch=False), li.Shuffled(120, 10)
FIXED_SIZE = li.FixedSize(120, 12)
STEPS = 48
VARIED = np.random.default_rng(0).uniform(0.1, 0.4, STEPS + 5)


def epsilons(ask: Callable[[Any], Any]) -> Ask:
    """ε at each δ of the guarantee that is asked for."""

    def found(given: Any) -> list[float]:
        guarantee = ask(given)
        return [float(guarantee.epsilon(delta)) for delta in DELTAS]

    return found


def by(name: str) -> Ask:
    """ε of a theorem; it has to apply."""
    return epsilons(lambda given: BY_NAME[name].apply(given))


def prepaid_mus(given: Process) -> list[float]:
    """μ of each two places: ε also depends on which of them are compared, and there a good choice is found, not the best."""
    notion = place_evidence(given, Place.HIDDEN, slack=1e-9).notion
    return notion.pair_mus[~np.eye(len(notion.mus), dtype=bool)].tolist()


@dataclass(frozen=True)
class Border:
    """Beyond `name` in `module`, lowered to `small`, other formulas are used, which are at most `factor` times as large."""

    module: str
    name: str
    small: Any
    ask: Ask
    runs: dict[str, Any]
    factor: float
    also: tuple[tuple[str, str, Any], ...] = ()  # other constants, on both sides of the border
    least: float = 1 - 1e-9


def in_epochs(sensitivity: Any = 0.4, lipschitz: Any = 0.95, whole: int = 3) -> dict[str, Process]:
    """Whole epochs in one order or in new ones; and with part of an epoch at the end, or alone."""
    return {
        f"{batches.each_epoch=} {steps}": process(batches, steps, sensitivity, 1.0, lipschitz)
        for batches in (ONE_ORDER, NEW_ORDERS)
        for steps in (12 * whole + 7, 7)
    }


def with_momentum(given: Process) -> dict[str, Process]:
    ways = ((li.SGD(momentum=0.5), li.LAST), (li.SGD(momentum=0.9), li.EMA(decay=0.9)))
    return {f"{way}": replace(given, update=Update(*way, (0.3, 0.2))) for way in ways}


def smooth(given: Process) -> Process:
    found = random_smooth(np.random.default_rng(3), given)
    center, radius, decay = (np.broadcast_to(one, len(given)) for one in (1.0, float(given.lipschitz[0]) - 1, 0.0))
    growing = replace(found, center=center, radius=radius, decay=decay)
    return replace(given, smooth=growing if given.contraction > 1 else found)


def named(runs: Iterable[Any]) -> dict[str, Any]:
    return {str(place): one for place, one in enumerate(runs)}


MOMENTUM = {
    f"{name} {way}": one
    for name, given in in_epochs(lipschitz=1.0).items()
    for way, one in with_momentum(given).items()
}
CHANGING = named(
    process(NEW_ORDERS, steps, VARIED[:steps], 1.0, np.where(np.arange(steps) % 2, 0.97, 1.03))
    for steps in (STEPS, STEPS + 5)
)
RELEASED = {
    "alike": process(NEW_ORDERS, STEPS, 0.3, 1.0, 1.02, releases=(5, 15, 17, 19, 30)),
    "cut at the end": process(NEW_ORDERS, STEPS + 5, 0.3, 1.0, 0.97, releases=(5, 15, 17, 19, 30, 50)),
    "changing": process(NEW_ORDERS, STEPS, VARIED[:STEPS], 1.0, 1.02, releases=(5, 15, 17, 19, 30)),
}
ALIKE = {
    f"{factor} {diameter}": process(FIXED_SIZE, 30, 0.2, 1.0, factor, diameter)
    for factor in (0.0, 0.5, 0.9, 1.0, 1.1, math.inf)
    for diameter in (math.inf, 1.0, 0.1)
}
SAMPLED = named(process(batches, 4, VARIED[:4], 1.0, 0.95) for batches in (FIXED_SIZE, li.Poisson(120, 0.1)))
LONGER = {
    "changing": process(FIXED_SIZE, 8, VARIED[:8], 1.0, 0.95),
    "alike": process(FIXED_SIZE, 8, 0.4, 1.0, 0.8),
}
ZEROED = {
    "alike": process(FIXED_SIZE, 3, 0.4, 1.0, 0.95),
    "changing": process(FIXED_SIZE, 3, [0.3, 0.4, 0.5], 1.0, 0.95),
}
ZEROED = {name: replace(one, adjacency=li.ZERO_OUT, sampled=2 * one.sensitivity) for name, one in ZEROED.items()}
MANY_MUS = np.linspace(0.05, 1.0, 40)
OWN_PLACES = replace(process(li.BallsAndBins(120, 2), 6, VARIED[:6], 1.0, 0.95), adjacency=li.ZERO_OUT)


def hidden_place(mus: np.ndarray) -> HiddenPlaceDP:
    return HiddenPlaceDP(mus=mus, pair_mus=np.hypot(mus[:, None], mus), weights=np.full(len(mus), 1 / len(mus)))


def averaged(mus: np.ndarray) -> AveragedGaussianDP:
    return AveragedGaussianDP(mus=mus, weights=np.full(len(mus), 1 / len(mus)))


def maps(factor: float) -> Maps:
    values = (0.2, factor, 0.5, 0.9, 1.0)
    return Maps(*(np.broadcast_to(value, 30) for value in values))


BORDERS = (
    Border("theorems.linear_optimiser", "_MOST_PLACES", 4, by("linear-optimiser/random-order"), MOMENTUM, 1.3),
    Border(
        "kernel.places",
        "MOST_PLACES",
        5,
        by("random-order"),
        in_epochs(),
        1.01,
        (("kernel.places", "_NEAR_THE_END", 2),),
    ),
    Border(
        "kernel.places",
        "MOST_PLACES",
        5,
        by("hidden-place"),
        in_epochs(),
        2.2,
        (("kernel.places", "_NEAR_THE_END", 2),),
    ),
    Border("theorems.shift_engine", "_FEW_STEPS", 5, by("shift-engine"), ALIKE, 1 + 1e-6),
    Border(
        "shift.distance_bounds",
        "_MOST_STEPS",
        4,
        by("shift-engine"),
        ALIKE,
        1.02,
        (("theorems.shift_engine", "_FEW_STEPS", 5),),
    ),
    Border(
        "shift.distance_bounds",
        "_MOST_ENDS",
        3,
        epsilons(lambda one: GaussianDP(remaining_mu(*one))),
        named((maps(f), z) for f in (1.05, math.inf) for z in (0.0, 2.0)),
        1.01,
    ),
    Border("shift.momentum", "_LONGEST", 5, by("linear-optimiser/random-order"), MOMENTUM, 1.5),
    Border("theorems.epochs", "_MOST_GROUPS", 2, by("random-order/epoch-by-epoch"), CHANGING, 1.2),
    Border("theorems.epochs", "_MOST_PATTERNS", 2, by("random-order/epoch-by-epoch"), RELEASED, 1.5),
    Border("theorems.epochs", "_MOST_LEVELS", 4, by("random-order/epoch-by-epoch"), CHANGING, 1.3),
    Border(
        "theorems.epochs",
        "_MOST_GROUPED",
        5,
        by("hidden-place/epoch-by-epoch"),
        {"alike": process(NEW_ORDERS, 24, 0.3, 1.0, 1.02)},
        1.2,
    ),
    Border("theorems.places", "MOST_REPRESENTED", 6, by("hidden-place"), in_epochs(), 1.5),
    Border(
        "theorems.places",
        "_MOST_PREPAID",
        4,
        prepaid_mus,
        {name: smooth(one) for name, one in in_epochs(whole=2).items()},
        1.5,
    ),
    Border(
        "theorems.epochs",
        "MOST_REPRESENTED",
        5,
        by("prepayment/epoch-by-epoch"),
        {"alike": smooth(process(NEW_ORDERS, 24, 0.4, 1.0, 1.02))},
        1.1,
        least=0.999,  # the finer one keeps three functions apart in place of one, and is put into a table
    ),
    Border("theorems.typical_batches", "_MOST_LEVELS", 2, epsilons(lambda one: sampled_window(one, 3)), SAMPLED, 1.5),
    Border(
        "theorems.typical_batches",
        "_FEW_LEVELS",
        2,
        epsilons(lambda one: released_window(one, 3)),
        {"changing": ZEROED["changing"]},
        1.5,
    ),
    Border(
        "theorems.typical_batches", "_MOST_ON_A_LATTICE", 2, epsilons(lambda one: released_window(one, 3)), ZEROED, 1.8
    ),
    Border(
        "theorems.typical_batches",
        "_LARGEST_ON_A_LATTICE",
        0.1,
        epsilons(lambda one: released_window(one, 3)),
        {"alike": ZEROED["alike"]},
        1.8,
    ),
    Border(
        "theorems.window_tail", "_LONGEST", 1, by("window-tail"), {"alike": process(FIXED_SIZE, 20, 0.4, 1.0, 0.3)}, 2.5
    ),
    Border(
        "theorems.window_tail",
        "_MOST_WEIGHTS",
        3,
        epsilons(lambda one: window_of(one, 1)),
        LONGER,
        1.5,
    ),
    Border(
        "theorems.balls_and_bins",
        "_MOST_LEVELS",
        2,
        epsilons(composed_epochs),
        {"changing": OWN_PLACES},
        1.5,
        (("curves.compose", "_MOST_CELLS", 300),),
    ),
    Border(
        "theorems.groups",
        "_MOST_LEVELS",
        20,
        epsilons(lambda one: placed_by_chance(one, averaged(MANY_MUS[:12]))),
        {"two": replace(in_epochs()["batches.each_epoch=False 43"], group=2)},
        1.1,
    ),
    Border(
        "theorems.papers.bok2024",
        "_LARGEST_SAMPLED",
        0.1,
        epsilons(lambda mu: _sampled(process(FIXED_SIZE, 1), mu, GaussianDP(0.05))),
        named((0.5, 2.0)),
        10.0,
    ),
    Border(
        "mixing.contraction",
        "_MOST_STEPS",
        3,
        epsilons(lambda one: CurvedContraction(*one)),
        named([(1.0, 0.1, 5), (2.0, 0.1, 20), (0.5, 1.0, 4)]),
        1.01,
    ),
    Border(
        "curves.hidden_participation",
        "MOST_LEVELS",
        8,
        epsilons(lambda mus: present_or_absent(mus, np.full(len(mus), 1 / len(mus)))),
        {"40": MANY_MUS},
        1.2,
    ),
    Border("curves.hidden_place", "_MOST_COLUMNS", 8, epsilons(hidden_place), {"40": MANY_MUS}, 1.2),
    Border("curves.hidden_place", "_MOST_NUMBERS", 4, epsilons(hidden_place), {"40": MANY_MUS}, 1.2),
    Border(
        "curves.balls_and_bins",
        "_MOST_BATCHES",
        4,
        epsilons(lambda mu: BallsAndBinsDP(mu, 8, 2, li.ZERO_OUT)),
        named((0.5, 2.0)),
        1.6,
    ),
    Border(
        "curves.balls_and_bins",
        "_LARGEST_MU",
        0.1,
        epsilons(lambda mu: BallsAndBinsDP(mu, 8, 2, li.ZERO_OUT)),
        named((0.5, 2.0)),
        3.5,
    ),
    Border(
        "curves.compose",
        "_MOST_CELLS",
        200,
        epsilons(lambda mus: compose_counted([(averaged(mus), 3)])),
        {"40": MANY_MUS},
        1.01,
    ),
    Border(
        "curves.compose",
        "_MOST_LOSS_CELLS",
        10,
        epsilons(lambda mus: compose_counted([(averaged(mus), 3)]).after(0.5)),
        {"40": MANY_MUS},
        1.01,
    ),
)


EFFORT = "a limit of effort: whatever is left out is one of several valid bounds, or found by a search that is checked"
REFUSES = "beyond it, the theorem does not apply"
FLOATS = "keeps numbers within floats"
NO_BORDERS = {
    "theorems.papers.asoodeh2023._LARGEST_RATIO": REFUSES,
    "theorems.block_mixing._LARGEST_APART": EFFORT,
    "theorems.block_mixing._LONGEST": EFFORT,
    "theorems.bounded_steps._FEW_CUTS": EFFORT,
    "theorems.bounded_steps._MOST_ROWS": EFFORT,
    "theorems.epochs._LARGEST_HIDDEN": FLOATS,
    "theorems.epochs._LARGEST_MU": REFUSES,
    "theorems.epochs._MOST_STEPS": REFUSES,
    "theorems.groups._MOST_RECORDS": REFUSES,
    "theorems.epochs._MOST_PLACES": REFUSES,
    "theorems.participation._LONGEST": EFFORT,
    "theorems.participation._MOST_TURNS": EFFORT,
    "theorems.participation._MOST_STEPS": REFUSES,
    "theorems.papers.langevin._MOST_STEPS": REFUSES,
    "theorems.linear_optimiser._LARGEST_MU": REFUSES,
    "theorems.linear_optimiser._MOST_STEPS": REFUSES,
    "theorems.catalogue._LONGEST": "characters of a name",
    "theorems.linear_optimiser._MOST_PREPAID_STEPS": REFUSES,
    "theorems.participation._FEW_STEPS": EFFORT,
    "theorems.participation._MOST_PREPAID_TURNS": EFFORT,
    "theorems.prepayment._MOST_ALIKE": REFUSES,
    "theorems.prepayment._MOST_DIFFERENT": REFUSES,
    "theorems.reflection._LARGEST_PUSH": REFUSES,
    "theorems.reflection._MOST_LONGER": EFFORT,
    "theorems.reflection._MOST_PLACES": REFUSES,
    "theorems.reflection._MOST_STEPS": EFFORT,
    "theorems.bounded_steps._MOST_BLOCKS": EFFORT,
    "theorems.bounded_steps._MOST_PARTS": EFFORT,
    "theorems.bounded_steps._MOST_ROUNDS": EFFORT,
    "theorems.shift_engine.MOST_WORK": REFUSES,
    "theorems.shift_engine._MOST_GROWN": REFUSES,
    "theorems.window_tail._MOST_HIDDEN": EFFORT,
    "kernel.check.MOST_PAIRS": "other pairs of a certificate are not looked at, and count as not compared",
    "kernel.check.MOST_STEPS": REFUSES,
    "shift.momentum._LARGEST_LOG": FLOATS,
    "shift.distance_bounds._LARGEST_LOG": FLOATS,
    "mixing.distances._LARGEST_PAYMENT": EFFORT,
    "mixing.layers._MOST_BLOCKS": EFFORT,
    "curves.transformed._FEW_QUESTIONS": "more are answered together, by a table whose chords lie above",
    "curves.baselines._LARGEST_MU": FLOATS,
    "curves.gaussian_cover._MOST_SECANTS": EFFORT,
    "curves.hidden_place._FEW_MIXES": "used beyond _MOST_COLUMNS, which is in the table",
    "curves.renyi._LARGEST_EPSILON": FLOATS,
    "curves.selected._LARGEST_DELTA": FLOATS,
    "curves.subsampled._MOST_STEPS": "beyond it, sampling is not credited",
    "curves.subsampled._MOST_ANSWERED": "how many answers are remembered",
    "curves.subsampled._FEW_QUESTIONS": "more are answered together, by the same transform",
    "curves.subsampled._FEW_STEPS": EFFORT,
    "curves.subsampled._LARGEST_VARIANCE": "beyond it, sampling is not credited",
    "curves.trials._LARGEST_LOG": FLOATS,
    "curves.zeroed_out._FEW_QUESTIONS": "more are answered together, by a table whose chords lie above",
}


def patch(monkeypatch: pytest.MonkeyPatch, module: str, name: str, value: Any) -> None:
    monkeypatch.setattr(import_module(f"lastiterate.{module}"), name, value)


def answers(border: Border) -> dict[str, np.ndarray]:
    forget_everything()
    return {name: np.array(border.ask(run)) for name, run in border.runs.items()}


@pytest.mark.parametrize("border", BORDERS, ids=lambda one: f"{one.module}.{one.name}")
def test_beyond_a_border_nothing_is_smaller_and_little_is_lost(border: Border, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant in border.also:
        patch(monkeypatch, *constant)
    finer = answers(border)
    patch(monkeypatch, border.module, border.name, border.small)
    coarser = answers(border)
    assert any((coarser[name] != finer[name]).any() for name in finer)  # another formula was used
    for name in finer:
        assert (coarser[name] >= finer[name] * border.least).all(), name
        assert (coarser[name] <= finer[name] * border.factor).all(), name


PASSES = {
    "random-order": lambda steps: process(ONE_ORDER, steps, 0.4, 1.0, 0.95),
    "linear-optimiser/random-order": lambda steps: replace(
        process(ONE_ORDER, steps, 0.4, 1.0, 1.0), update=Update(li.SGD(momentum=0.5), li.LAST, (0.3, 0.2))
    ),
    "random-order/epoch-by-epoch": lambda steps: process(NEW_ORDERS, steps, 0.4, 1.0, 1.02),
}
LOWERED = (
    ("kernel.places", "_NEAR_THE_END", 2),
    ("kernel.places", "MOST_PLACES", 5),
    ("theorems.linear_optimiser", "_MOST_PLACES", 4),
    ("theorems.epochs", "_MOST_LEVELS", 4),
)


@pytest.mark.parametrize("lowered", [(), LOWERED], ids=["below", "beyond"])
@pytest.mark.parametrize("name", PASSES)
def test_many_epochs_reveal_more_than_one_and_one_more_than_its_first_step(
    name: str, lowered: tuple[tuple[str, str, Any], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for constant in lowered:
        patch(monkeypatch, *constant)
    forget_everything()
    first_step, epoch, epochs = (np.array(by(name)(PASSES[name](steps))) for steps in (1, 12, 120))
    assert (first_step <= epoch * (1 + 1e-9)).all()
    assert (1.05 * epoch < epochs).all()


def constants(path: Path) -> set[str]:
    """Names of a module that say of a number where something ends."""
    pattern = re.compile(r"_?MOST_\w+|_LONGEST|_FEW_\w+|_LARGEST_\w+")
    assigned = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)]
    names = [
        node.id for one in assigned for target in one.targets for node in ast.walk(target) if isinstance(node, ast.Name)
    ]
    return {name for name in names if pattern.fullmatch(name)}


def test_every_border_is_in_the_table_or_is_known_not_to_be_one() -> None:
    found = {
        ".".join((*path.relative_to(SOURCE).with_suffix("").parts, name))
        for room in ROOMS
        for path in (SOURCE / room).rglob("*.py")
        for name in constants(path)
    }
    tested = {f"{one.module}.{one.name}" for one in BORDERS} & found
    assert tested & set(NO_BORDERS) == set()
    assert found == tested | set(NO_BORDERS)
