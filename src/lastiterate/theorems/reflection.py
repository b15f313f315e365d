"""Bounded domains by reflection: what steps leave of a distance and of a loss at once, and blocks of them in layers.

Noise on a bounded set does more than hide a distance: reflected, it makes two runs meet. Sharper than block mixing where the
domain is not much wider than the noise; in a secret order the place of the record is hidden inside the blocks as well.
Proof: docs/proofs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from lastiterate.curves.notion import Notion
from lastiterate.curves.profile import Profile
from lastiterate.facts import Fact, fact
from lastiterate.mixing.layers import BlockEnds, settled
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.rounding import up
from lastiterate.runs.batches import Turns
from lastiterate.runs.per_step import extremes
from lastiterate.runs.process import Process
from lastiterate.theorems import features
from lastiterate.theorems.block_mixing import WHOLE_EPOCHS_IF_SHUFFLED, lengths
from lastiterate.theorems.bounded_steps import Bounded, PlaceTables, in_parts
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import BOUNDED, Assumption
from lastiterate.theorems.theorem import Theorem
from lastiterate.theorems.typical_batches import BOUNDED_RECORDS

_WIDEST = 16.0  # in units of the noise: a wider domain would need too many rows, or too coarse ones
_LARGEST_PUSH = 12.0  # in units of the noise: ε is 130 then, at δ = 1e-6, and the levels of a table end
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # of blocks, in steps
_NARROW, _LONG_ENOUGH = 4.0, 16  # domains, in units of the noise, where so many steps are: longer ones gain nothing
_MOST_STEPS = 12_000  # of a block in a fixed order, times rows: limits of effort
_MOST_PLACES = 2_000  # batches of an epoch in a secret order, times rows
_FINE, _EVERY = 2.0, 2  # every second level, on narrow domains, is looked at for a hidden place: chords lie above
_EVEN = 160  # levels of a profile for ever, before its place is hidden
_SAMPLED = (1, 2, 4, 8, 16, 32, 64)  # steps of blocks on random batches whose sampling is credited: each takes its time
_SPARSE, _MOST_LONGER = 3, 4  # of the blocks that are longer than tables: every third of a ladder, and so many


OneStep = tuple[Floats, Callable[[Floats], Floats]]  # the table of the last step, and what a step before makes of one


def _every_step(domain: Bounded) -> OneStep:
    return domain.turn.last, domain.turn.before


def _at_random(domain: Bounded) -> OneStep:
    """Return the steps of random batches: each sees the record or does not, by a coin that is no secret."""
    rate = float(domain.process.inclusion[0])

    def mixed(seen: Floats, unseen: Floats) -> Floats:
        return up(rate * seen + (1 - rate) * unseen)

    def before(table: Floats) -> Floats:
        return mixed(domain.turn.before(table), domain.free.before(table))

    return mixed(domain.turn.last, domain.free.last), before


_STEPS = {Turns.EVERY_STEP: _every_step, Turns.FRESH: _at_random}


def _at_each_step(domain: Bounded) -> Notion:
    """Return the guarantee of blocks of a few steps, also of more than there are; and of the run itself, if it is short."""
    tables = _step_tables(domain, _LENGTHS[-1] if domain.width > _NARROW else _LONG_ENOUGH)
    found = _profile(*settled(_blocks(domain, tables)))
    whole = tables.get(len(domain.process))
    return found if whole is None else _best(found, domain.scale.levels, whole[0])


def _step_tables(domain: Bounded, most: int) -> dict[int, Floats]:
    """Return the tables of 1, 2, … steps, until nothing changes."""
    table, before = _STEPS[domain.process.batches.turns](domain)
    tables: dict[int, Floats] = {}
    for length in range(1, most + 1):
        table = tables[length] = table if length == 1 else before(table)
        if domain.settled(table):
            break
    return tables


def _blocks(domain: Bounded, tables: dict[int, Floats]) -> list[BlockEnds]:
    """Return blocks of each length, in steps or epochs: the better of its table and of the shift engine and composition."""
    chosen = {length: table for length, table in tables.items() if length in _LENGTHS}
    sampled = _SAMPLED if domain.process.batches.random else _LENGTHS
    known = [domain.block(length, table) for length, table in chosen.items() if length in sampled]
    others = [domain.ends(table) for length, table in chosen.items() if length not in sampled]
    return [*known, *others, *_longer(domain, max(tables))]


def _longer(domain: Bounded, than: int) -> list[BlockEnds]:
    """Return blocks without a table; where the domain is narrow there are none, as short ones do it all."""
    if domain.width <= _NARROW:
        return []
    found = [length for length in lengths(domain.process) if length > than]
    return [domain.block(length) for length in found[::_SPARSE][:_MOST_LONGER]]


def _best(found: Profile, epsilons: Floats, deltas: Floats) -> Profile:
    return _profile(epsilons, np.minimum(deltas, found.delta(epsilons)))


def _profile(epsilons: Floats, deltas: Floats) -> Profile:
    return Profile(epsilons=epsilons, deltas=np.minimum(deltas, 1.0))


def _in_fixed_order(domain: Bounded) -> Notion:
    """Return the guarantee of a record in the last batch of each epoch: what follows its last turn is post-processing."""
    every = domain.process.batches.per_epoch
    tables: dict[int, Floats] = {}
    for epochs in range(1, min(_LENGTHS[-1], max(_MOST_STEPS // (every * len(domain.scale.rows)), 1)) + 1):
        last = domain.turn.before(tables[epochs - 1]) if tables else domain.turn.last
        tables[epochs] = domain.carried(last, every - 1)
        if domain.settled(tables[epochs]):
            break
    return _profile(*settled(_blocks(domain, tables)))


def _in_new_orders(domain: Bounded) -> Notion:
    """Return the guarantee of new orders: an epoch's own d and M with a hidden place, and then epoch after epoch."""
    return _profile(*settled([_hidden_epoch(domain), *_longer(domain, 0)]))


def _hidden_epoch(domain: Bounded) -> BlockEnds:
    places, levels = PlaceTables(domain), domain.scale.levels
    common, apart = (
        places.hidden(
            [table[row] for table in places.own],
            [{index: table[row] for index, table in one.items()} for one in places.pairs],
            levels,
        )
        for row in (0, -1)
    )
    few, fewer = levels[:: 1 if domain.width > _FINE else _EVERY], levels[:: 2 * _EVERY]
    profile = _profile(few, common.delta(few))
    return BlockEnds(lambda epsilons: np.asarray(profile.delta(epsilons)), fewer, apart.delta(fewer))


def _in_own_places(domain: Bounded) -> Notion:
    """Return the guarantee of balls and bins: an epoch's d and M on average over the place, and then epoch after epoch.

    No other record shares the place of a record, or takes it.
    """
    places, levels = PlaceTables(domain), domain.scale.levels
    common, apart = (up(places.weights @ np.array([table[row] for table in places.own])) for row in (0, -1))
    profile = _profile(levels, common)
    ends = BlockEnds(lambda epsilons: np.asarray(profile.delta(epsilons)), levels, np.minimum(apart, 1.0))
    return _profile(*settled([ends, *_longer(domain, 0)]))


def _in_one_order(domain: Bounded) -> Notion:
    """Return the guarantee of one order: each place, and each two, for ever; and then the place is hidden."""
    places = PlaceTables(domain)
    reach = float(settled([domain.ends(places.own[0])])[0][-1])  # of the last place, the hardest to hide
    levels = reach * (np.arange(_EVEN + 1) / _EVEN)

    def ever(table: Floats) -> Floats:
        return np.asarray(_profile(*settled([domain.ends(table)])).delta(levels))

    own = [ever(table) for table in places.own]
    pairs = [{index: ever(table) for index, table in one.items()} for one in places.pairs]
    found = places.hidden(own, pairs, levels)
    return _profile(levels, found.delta(levels))


_KINDS = {
    Turns.EVERY_STEP: _at_each_step,
    Turns.FIXED_ORDER: _in_fixed_order,
    Turns.ONE_ORDER: _in_one_order,
    Turns.NEW_ORDERS: _in_new_orders,
    Turns.OWN_PLACE: _in_own_places,
    Turns.FRESH: _at_each_step,
}


def reflected_profile(process: Process) -> Notion:
    """Return the guarantee of steps that count as the worst of them; where they change, of the last parts by themselves."""
    found = _counted_as_the_worst(process)
    if process.constant or process.batches.turns not in (Turns.NEW_ORDERS, *_STEPS):
        return found
    return in_parts(process, found, _counted_as_the_worst, _part_blocks)


def _counted_as_the_worst(process: Process) -> Notion:
    return _known(_Alike(process.worst_alike))


class _Alike:
    """Steps that are alike, the same as others with the same numbers."""

    def __init__(self, process: Process) -> None:
        self.process = process
        names = ("sensitivity", "sampled", "noise", "lipschitz", "drift", "retain")
        numbers = (float(getattr(process, name)[0]) for name in names)
        self._key = (process.batches, process.adjacency, len(process), process.diameter, process.levels, *numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alike) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=8)
def _known(alike: _Alike) -> Notion:
    """Return the guarantee of steps that are alike, once for the same run and its certificate."""
    return _KINDS[alike.process.batches.turns](Bounded(alike.process))


def _part_blocks(process: Process) -> dict[int, Callable[[], BlockEnds]]:
    """Return blocks of a part of a run by how many steps they have, which are at most its own."""
    domain, steps = Bounded(process.worst_alike), len(process)
    if process.batches.turns not in _STEPS:
        return {process.batches.per_epoch: partial(_hidden_epoch, domain)}
    tables = _step_tables(domain, min(_LENGTHS[-1] if domain.width > _NARROW else _LONG_ENOUGH, steps))
    return {length: partial(domain.block, length, table) for length, table in tables.items()}


def _bound(process: Process) -> Evidence:
    """Update: X ← Π(φ(X) + N(0, ν²)), any batches; blocks of steps, one after the other.
    Bound: F_k(r, e), from two states at distance r, is the least of E F_{k−1}(min(D, r' − a), e + a·u − a²/2) over payments
        a, and (1 − x)·F_{k−1}(0, e − c) + x·E F_{k−1}(min(D, v − u), ẽ) over levels c, where noise is reflected.
        r' = L·r + s, x = θ_c(r'). F_k(0, ·) and F_k(D, ·) are a block's d and M: h(ε) ← d(ε − c₂) + Σ w_i·h(g_i) + x·M(ẽ).
        In a secret order the place of the record is hidden in them.
    Assumes: a bounded domain, at most 16 times as wide as the noise; only the last iterate is released.
    Attained by: opposite gradients on a tiny interval, to 3 %.
    Reference: docs/proofs.md.
    """
    return Evidence(reflected_profile(process))


def _narrow(process: Process) -> Fact | None:
    if not math.isfinite(process.diameter):
        return None
    width = process.diameter / float(process.worst_alike.noise[0])
    return None if width <= _WIDEST else fact("domain_too_wide", at_most=_WIDEST, times_noise=width)


def _some_protection(process: Process) -> Fact | None:
    ratio = extremes(process.sensitivity)[1] / extremes(process.noise)[0]
    return None if ratio <= _LARGEST_PUSH else fact("sensitivity_too_large", at_most=_LARGEST_PUSH, times_noise=ratio)


def _few_enough(process: Process) -> Fact | None:
    batches = process.batches
    if not batches.passes or not math.isfinite(process.diameter) or (_narrow(process) or _some_protection(process)):
        return None
    limit = _MOST_PLACES if batches.shuffled else _MOST_STEPS
    most = limit // len(Bounded(process.worst_alike).scale.rows)
    if batches.per_epoch <= most:
        return None
    return fact("too_many_batches_on_domain", at_most=most, batches=batches.per_epoch)


_COVERED = {features.RANDOM_SIZES, features.CHANGING_STEPS} | features.IN_ORDER | features.ANY_MAP

REFLECTION = Theorem(
    "reflection",
    "lastiterate, a distance and a loss on a bounded set, with reflected noise",
    "bounded domain of a few times the noise, any batches and Lipschitz constants",
    _COVERED | features.ANY_BATCHES | features.ANY_NEIGHBOURS,
    (
        BOUNDED,
        BOUNDED_RECORDS,
        Assumption("narrow_domain", _narrow),
        Assumption("hideable_sensitivity", _some_protection),
        Assumption("few_batches", _few_enough),
        WHOLE_EPOCHS_IF_SHUFFLED,
    ),
    _bound,
)
