"""Which data sets are neighbours, in its words and in ours.

Its REPLACE_SPECIAL replaces a record by one that contributes nothing (arXiv 2103.00039, Definition 1.1): our zero-out. Its
noise multipliers are noise over the norm of one record's contribution, whatever the relation, so that replacing a record
moves a sum by up to twice that norm, and adding, removing or zeroing out one by once.
"""

from __future__ import annotations

from typing import Any

from dp_accounting import NeighboringRelation

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT, Adjacency
from lastiterate.errors import InvalidInput, checked_choice, shown

_ADJACENCIES = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_OR_REMOVE_ONE,
    NeighboringRelation.REPLACE_ONE: REPLACE_ONE,
    NeighboringRelation.REPLACE_SPECIAL: ZERO_OUT,
}


def adjacency_of(neighboring_relation: Any) -> Adjacency:
    """The adjacency for a neighboring relation of dp-accounting: REPLACE_SPECIAL is li.ZERO_OUT, other names agree."""
    if not isinstance(neighboring_relation, NeighboringRelation):
        got = f"{shown(neighboring_relation):.60}"
        raise InvalidInput("dp_relation_kind", field="neighboring_relation", got=got)
    return _ADJACENCIES[neighboring_relation]


def relation_of(adjacency: Adjacency) -> NeighboringRelation:
    """The neighboring relation of dp-accounting for an adjacency."""
    wanted = checked_choice("adjacency", adjacency, Adjacency)
    return next(relation for relation, one in _ADJACENCIES.items() if one is wanted)


def records_apart(adjacency: Adjacency) -> float:
    """How far a neighbour moves a sum, over the largest norm of one record's contribution."""
    return 2.0 if adjacency.replaces else 1.0
