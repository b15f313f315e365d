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

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT, Adjacency
from lastiterate.display import summary
from lastiterate.facts import Fact, fact, own
from lastiterate.kernel.prepaid import Smooth
from lastiterate.runs.batches import Turns
from lastiterate.runs.optimizers import EMA, SGD, Average, Last, Optimizer, Released
from lastiterate.runs.per_step import extremes
from lastiterate.runs.process import Process


@dataclass(frozen=True)
class Assumption:
    """What a theorem needs. `failure` returns None if a process has it, else a fact with the numbers that are wrong.

    `code` names the assumption, and `report/english/refusals.py` has its words. Theorems outside the library state theirs in
    their own words: `Assumption.own(statement, failure)`.
    """

    code: str
    failure: Callable[[Process], Fact | None]
    text: str = ""

    @classmethod
    def own(cls, statement: str, failure: Callable[[Process], str | Fact | None]) -> Assumption:
        """An assumption in your own words. `failure` returns None if a process has it, else a sentence such as "needs at
        least 500 steps; this run has 20", without a capital letter and a full stop.
        """

        def refusal(process: Process) -> Fact | None:
            reason = failure(process)
            return own(reason) if isinstance(reason, str) else reason

        return cls("own", refusal, statement)

    def __repr__(self) -> str:
        return summary(self, repr(self.statement))

    @property
    def statement(self) -> str:
        """What the theorem needs of a run, in words."""
        from lastiterate.report.english.refusals import statement

        return self.text or statement(self.code)


@dataclass(frozen=True, repr=False)
class Feature(Assumption):
    """Something that runs may have. `statement` is about runs that lack it.

    `group`: features of one group exclude each other, and every run has one of them: its batches, its neighbours. Those of
    the group `update` are about the optimiser and the average that is released.
    """

    group: str | None = None

    def __repr__(self) -> str:
        return summary(self, repr(self.name))

    @property
    def name(self) -> str:
        """What tables call it."""
        from lastiterate.report.english.refusals import name

        return name(self.code)

    def present(self, process: Process) -> bool:
        """Whether the process has it."""
        return self.failure(process) is not None


def _where(code: str, present: Callable[[Process], bool], group: str | None = None) -> Feature:
    """A feature that is there or not, of which there is nothing more to say."""
    not_covered = fact("not_covered", feature=code)
    return Feature(code, lambda process: not_covered if present(process) else None, group=group)


def _batches(code: str, turns: Turns) -> Feature:
    return _where(code, lambda process: process.batches.turns is turns, "batches")


def _neighbours(adjacency: Adjacency) -> Feature:
    code = adjacency.name.lower()
    not_proved = fact("adjacency_not_proved", adjacency=code)
    return Feature(code, lambda process: not_proved if process.adjacency is adjacency else None, group="adjacency")


FULL_BATCHES = _batches("full_batches", Turns.EVERY_STEP)
FIXED_ORDER = _batches("fixed_order", Turns.FIXED_ORDER)
ONE_ORDER = _batches("one_order", Turns.ONE_ORDER)
NEW_ORDERS = _batches("new_orders", Turns.NEW_ORDERS)
OWN_PLACES = _batches("own_places", Turns.OWN_PLACE)
RANDOM_BATCHES = _batches("random_batches", Turns.FRESH)

UNEVEN_BATCHES = _where("uneven_batches", lambda process: process.batches.uneven)
RANDOM_SIZES = _where("random_sizes", lambda process: not process.batches.constant_size)


def _changing(process: Process) -> Fact | None:
    if process.constant:
        return None
    values = {"sensitivity": process.sensitivity, "noise": process.noise, "lipschitz": process.lipschitz}
    name, array = next((name, array) for name, array in values.items() if np.ptp(array) > 0 or array.strides != (0,))
    return fact("steps_change", quantity=name, least=float(np.min(array)), most=float(np.max(array)))


def _checkpoints(process: Process) -> Fact | None:
    return fact("releases_more", checkpoints=len(process.releases)) if process.releases else None


def _inside_epochs(process: Process) -> Fact | None:
    every = process.batches.per_epoch if process.batches.passes else 1
    cut = next((release for release in process.releases if release % every), None)
    return None if cut is None else fact("release_inside_epoch", every=every, step=cut)


def _unfinished(process: Process) -> Fact | None:
    every = process.batches.per_epoch
    left = len(process) % every if process.batches.passes else 0
    return fact("epoch_unfinished", every=every, steps=len(process), left=left) if left else None


CHANGING_STEPS = Feature("changing_steps", _changing)
CHECKPOINTS = Feature("checkpoints", _checkpoints)
CHECKPOINTS_INSIDE = Feature("checkpoints_inside", _inside_epochs)
UNFINISHED_EPOCH = Feature("unfinished_epoch", _unfinished)

PROJECTION = _where("projection", lambda process: math.isfinite(process.diameter))
PROX = _where("prox", lambda process: process.proximal)
WEIGHT_DECAY = _where(
    "weight_decay",
    lambda process: process.decays or (isinstance(process.smooth, Smooth) and extremes(process.smooth.decay)[1] > 0),
)


def _update(code: str, present: Callable[[Optimizer, Released], bool]) -> Feature:
    """A feature of the optimiser, or of what is released; the refusal names the update as the run has it."""

    def failure(process: Process) -> Fact | None:
        optimizer, released = process.update.optimizer, process.update.released
        if not present(optimizer, released):
            return None
        return fact(
            "update_not_covered",
            feature=code,
            optimizer=optimizer.fact,
            released=released.kind,
            parameter=released.parameter,
        )

    return Feature(code, failure, group="update")


def _other(optimizer: Optimizer, released: Released) -> bool:
    return type(optimizer) is not SGD or type(released) not in (Last, EMA, Average)


def _number(name: str) -> Callable[[Optimizer, Released], bool]:
    return lambda optimizer, _: bool(getattr(optimizer, name, 0))


MOMENTUM = _update("momentum", _number("momentum"))
NESTEROV = _update("nesterov", _number("nesterov"))
DAMPENING = _update("dampening", _number("dampening"))
OTHER_OPTIMIZER = _update("other_optimizer", _other)
AVERAGE = _update("average", lambda _, released: not released.plain)
LATE_AVERAGE = _where("late_average", lambda process: process.update.released.begins(len(process)) > 0, group="update")

REPLACED, ZEROED_OUT, ADDED_OR_REMOVED = (_neighbours(one) for one in (REPLACE_ONE, ZERO_OUT, ADD_OR_REMOVE_ONE))

SEVERAL_RECORDS = _where("several_records", lambda process: process.group > 1 or bool(process.members))
BEFOREHAND = _where("beforehand", lambda process: process.prior_mu > 0)
ROUNDING = _where("rounding", lambda process: process.displacement > 0)

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
        *("prior_mu", "displacement", "reason", "inside"),
    }
)


def _unknown(process: Process) -> Fact | None:
    """Return a field of a process that no feature knows and that has a value of its own."""
    for field in fields(process):
        if field.name not in _FIELDS and getattr(process, field.name) != field.default:
            return fact("unknown_field", field=field.name)
    return None


UNKNOWN = Feature("unknown", _unknown)

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
def features_of(process: Process) -> tuple[tuple[Feature, Fact], ...]:
    """The features that a process has, each with the reason of a theorem that does not cover it."""
    found = ((feature, feature.failure(process)) for feature in FEATURES)
    return tuple((feature, reason) for feature, reason in found if reason is not None)


# The assumptions that theorems share. Each answers with a fact, which has the number that failed.


def _contracting(process: Process) -> Fact | None:
    return None if process.contraction < 1 else fact("not_contracting", because=process.reason)


def _nonexpansive(process: Process) -> Fact | None:
    return None if process.contraction <= 1 else fact("not_nonexpansive", because=process.reason)


def _finite(process: Process) -> Fact | None:
    return None if math.isfinite(process.contraction) else fact("lipschitz_infinite", because=process.reason)


def _bounded(process: Process) -> Fact | None:
    return None if math.isfinite(process.diameter) else fact("lacks", what="bounded_domain")


def _one_pass(process: Process) -> Fact | None:
    every = process.batches.per_epoch
    return None if len(process) <= every else fact("used_again", every=every, steps=len(process))


def _long_enough(process: Process) -> Fact | None:
    """The closed forms spread the diameter over D/s uses of the record."""
    turns, needed = len(process) // process.batches.per_epoch, process.diameter / float(process.sensitivity[0])
    if turns >= needed or math.isinf(needed):
        return None
    return fact("used_too_rarely", needed=needed, turns=turns)


CONTRACTING = Assumption("contracting", _contracting)
NONEXPANSIVE = Assumption("nonexpansive", _nonexpansive)
FINITE_LIPSCHITZ = Assumption("finite_lipschitz", _finite)
BOUNDED = Assumption("bounded_domain", _bounded)
ONE_PASS = Assumption("one_pass", _one_pass)
LONG_ENOUGH = Assumption("long_enough", _long_enough)
