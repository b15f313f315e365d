"""What a run may have that a theorem has to name before it is asked: deny by default.

A feature is an assumption that every theorem makes, that runs do not have it, unless it lists the feature among those that
its proof covers. So a new feature is refused by all theorems until each has been looked at, and a field of `Process` that
no feature knows is refused whenever it has a value of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np

from lastiterate.algorithms.batches import Turns
from lastiterate.algorithms.optimizers import SGD, Optimizer
from lastiterate.algorithms.per_step import extremes
from lastiterate.algorithms.process import Process
from lastiterate.algorithms.released import EMA, Average, Last, Released
from lastiterate.display import summary
from lastiterate.kernel.prepaid import Smooth
from lastiterate.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT, Adjacency


@dataclass(frozen=True)
class Assumption:
    """What a theorem needs. `failure` returns None if a process has it, else what is missing, as "needs …; this run …"."""

    statement: str
    failure: Callable[[Process], str | None]

    def __repr__(self) -> str:
        return summary(self, repr(self.statement))


@dataclass(frozen=True, repr=False)
class Feature(Assumption):
    """Something that runs may have. `statement` is about runs that lack it; `name` is what tables call it.

    `group`: features of one group exclude each other, and every run has one of them: its batches, its neighbours. Those of
    the group `update` are about the optimiser and the average that is released.
    """

    name: str
    group: str | None = None

    def __repr__(self) -> str:
        return summary(self, repr(self.name))

    def present(self, process: Process) -> bool:
        """Whether the process has it."""
        return self.failure(process) is not None


def _batches(name: str, turns: Turns) -> Feature:
    def failure(process: Process) -> str | None:
        return f"does not cover {name}" if process.batches.turns is turns else None

    return Feature(f"no {name}", failure, name, "batches")


def _neighbours(adjacency: Adjacency) -> Feature:
    def failure(process: Process) -> str | None:
        return f"is not proved for {adjacency!r}" if process.adjacency is adjacency else None

    return Feature(f"another adjacency than {adjacency!r}", failure, adjacency.said, "adjacency")


def _where(statement: str, name: str, present: Callable[[Process], bool], group: str | None = None) -> Feature:
    return Feature(statement, lambda process: f"does not cover {name}" if present(process) else None, name, group)


FULL_BATCHES = _batches("full batches", Turns.EVERY_STEP)
FIXED_ORDER = _batches("batches in a fixed order", Turns.FIXED_ORDER)
ONE_ORDER = _batches("shuffled batches with one order for all epochs", Turns.ONE_ORDER)
NEW_ORDERS = _batches("shuffled batches with a new order each epoch", Turns.NEW_ORDERS)
OWN_PLACES = _batches("balls and bins", Turns.OWN_PLACE)
RANDOM_BATCHES = _batches("random batches, drawn independently at each step", Turns.FRESH)

UNEVEN_BATCHES = _where(
    "all batches of an epoch are equally large", "a smaller last batch", lambda process: process.batches.uneven
)
RANDOM_SIZES = _where(
    "batches have a fixed size", "batches of random size", lambda process: not process.batches.constant_size
)


def _changing(process: Process) -> str | None:
    if process.constant:
        return None
    values = {"sensitivity": process.sensitivity, "noise": process.noise, "Lipschitz constant": process.lipschitz}
    name, array = next((name, array) for name, array in values.items() if np.ptp(array) > 0 or array.strides != (0,))
    return f"needs identical steps; the {name} runs from {np.min(array):.6g} to {np.max(array):.6g}"


def _checkpoints(process: Process) -> str | None:
    count = len(process.releases)
    if not count:
        return None
    also = f"{count} checkpoint{'s' if count > 1 else ''}"
    return f"covers the release of the last iterate alone; this run also releases {also}"


def _inside_epochs(process: Process) -> str | None:
    every = process.batches.per_epoch if process.batches.passes else 1
    cut = next((release for release in process.releases if release % every), None)
    return (
        None if cut is None else f"needs releases at the end of epochs of {every} steps; this run has one at step {cut}"
    )


def _unfinished(process: Process) -> str | None:
    left = len(process) % process.batches.per_epoch if process.batches.passes else 0
    if not left:
        return None
    ends = f"this run's {len(process)} steps end {left} step{'s' if left > 1 else ''} into an epoch"
    return f"needs whole epochs of {process.batches.per_epoch} steps; {ends}"


CHANGING_STEPS = Feature("all steps are identical", _changing, "steps that change")
CHECKPOINTS = Feature("only the last iterate is released", _checkpoints, "checkpoints")
CHECKPOINTS_INSIDE = Feature("releases at the end of epochs", _inside_epochs, "checkpoints inside an epoch")
UNFINISHED_EPOCH = Feature("the run consists of whole epochs", _unfinished, "an unfinished epoch")

PROJECTION = _where("no projection", "a bounded domain", lambda process: math.isfinite(process.diameter))
PROX = _where("no proximal map", "a proximal map", lambda process: process.proximal)
WEIGHT_DECAY = _where(
    "no weight decay or l2 term",
    "weight decay or an l2 term",
    lambda process: process.decays or (isinstance(process.smooth, Smooth) and extremes(process.smooth.decay)[1] > 0),
)


def _update(statement: str, name: str, present: Callable[[Optimizer, Released], bool]) -> Feature:
    """A feature of the optimiser, or of what is released; the sentence names the update as the run has it."""

    def failure(process: Process) -> str | None:
        update = process.update
        if not present(update.optimizer, update.released):
            return None
        return f"does not cover {name}; this run has {update.described}"

    return Feature(statement, failure, name, "update")


def _other(optimizer: Optimizer, released: Released) -> bool:
    return type(optimizer) is not SGD or type(released) not in (Last, EMA, Average)


def _number(name: str) -> Callable[[Optimizer, Released], bool]:
    return lambda optimizer, _: bool(getattr(optimizer, name, 0))


MOMENTUM = _update("no momentum", "momentum", _number("momentum"))
NESTEROV = _update("no Nesterov momentum", "Nesterov momentum", _number("nesterov"))
DAMPENING = _update("no dampening", "dampening", _number("dampening"))
OTHER_OPTIMIZER = _update("no optimiser but SGD", "Adam or another optimiser", _other)
AVERAGE = _update("the last iterate is released", "an average of iterates", lambda _, released: not released.plain)
LATE_AVERAGE = Feature(
    "no average that begins after the start",
    lambda process: (
        "does not cover an average that begins after the start"
        if process.update.released.begins(len(process))
        else None
    ),
    "an average that begins after the start",
    "update",
)

REPLACED, ZEROED_OUT, ADDED_OR_REMOVED = (_neighbours(one) for one in (REPLACE_ONE, ZERO_OUT, ADD_OR_REMOVE_ONE))

SEVERAL_RECORDS = _where(
    "one record differs", "several records of a user", lambda process: process.group > 1 or bool(process.members)
)
BEFOREHAND = _where(
    "nothing was released beforehand", "what was released beforehand", lambda process: process.beforehand_mu > 0
)
ROUNDING = _where("no rounding of iterates", "rounding of iterates", lambda process: process.displacement > 0)

_FIELDS = frozenset(
    {
        *(
            "batches",
            "sensitivity",
            "noise",
            "lipschitz",
            "drift",
            "retain",
            "sampled",
            "levels",
            "diameter",
            "dimension",
        ),
        *("smooth", "usual", "update", "proximal", "decays", "releases", "adjacency", "group", "members"),
        *("beforehand_mu", "displacement", "reason", "inside"),
    }
)


def _unknown(process: Process) -> str | None:
    """A field that was added to `Process` and that nobody has told the theorems of."""
    for field in fields(process):
        if field.name not in _FIELDS and getattr(process, field.name) != field.default:
            return f"does not know of {field.name}, which this run has"
    return None


UNKNOWN = Feature("nothing that theorems do not know of", _unknown, "anything unknown")

FEATURES: tuple[Feature, ...] = (
    UNKNOWN,
    FULL_BATCHES,
    FIXED_ORDER,
    ONE_ORDER,
    NEW_ORDERS,
    OWN_PLACES,
    RANDOM_BATCHES,
    UNEVEN_BATCHES,
    RANDOM_SIZES,
    CHANGING_STEPS,
    UNFINISHED_EPOCH,
    CHECKPOINTS,
    CHECKPOINTS_INSIDE,
    PROJECTION,
    PROX,
    WEIGHT_DECAY,
    MOMENTUM,
    NESTEROV,
    DAMPENING,
    OTHER_OPTIMIZER,
    AVERAGE,
    LATE_AVERAGE,
    REPLACED,
    ZEROED_OUT,
    ADDED_OR_REMOVED,
    SEVERAL_RECORDS,
    BEFOREHAND,
    ROUNDING,
)

Features = frozenset[Feature]

ANY_BATCHES: Features = frozenset({FULL_BATCHES, FIXED_ORDER, ONE_ORDER, NEW_ORDERS, OWN_PLACES, RANDOM_BATCHES})
SECRET_PLACES: Features = frozenset({ONE_ORDER, NEW_ORDERS, OWN_PLACES})
ANY_PASSES: Features = SECRET_PLACES | {FIXED_ORDER}
ANY_NEIGHBOURS: Features = frozenset({REPLACED, ZEROED_OUT, ADDED_OR_REMOVED})
"""For theorems that see of the neighbour only how far it moves a step."""
ANY_CHECKPOINTS: Features = frozenset({CHECKPOINTS, CHECKPOINTS_INSIDE})
ANY_UPDATE: Features = frozenset({MOMENTUM, NESTEROV, DAMPENING, OTHER_OPTIMIZER, AVERAGE, LATE_AVERAGE})
"""For bounds on every iterate, which cover whatever is computed from the noisy gradients."""
ANY_MAP: Features = frozenset({PROJECTION, PROX, WEIGHT_DECAY})
"""For theorems that see of a step its Lipschitz constant alone, which has all of these in it."""
IN_ORDER: Features = frozenset({UNEVEN_BATCHES, UNFINISHED_EPOCH})
"""For theorems that look at each step, or at each place of an epoch with its own probability."""
BY_THE_FRAME: Features = frozenset({SEVERAL_RECORDS, BEFOREHAND, ROUNDING})
"""What `Theorem.apply` itself adds to the bound of any theorem."""


ONLY_WITH: dict[Feature, Features] = {
    UNEVEN_BATCHES: ANY_PASSES - {OWN_PLACES},
    RANDOM_SIZES: frozenset({OWN_PLACES, RANDOM_BATCHES}),
    UNFINISHED_EPOCH: ANY_PASSES,
    CHECKPOINTS_INSIDE: frozenset({CHECKPOINTS}),
}
"""Features that a run can only have together with one of others."""


@lru_cache(maxsize=16)
def features_of(process: Process) -> tuple[tuple[Feature, str], ...]:
    """The features that a process has, each with what a theorem that does not cover it says."""
    found = ((feature, feature.failure(process)) for feature in FEATURES)
    return tuple((feature, reason) for feature, reason in found if reason is not None)
