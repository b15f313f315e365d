"""Does a collate function leave records alone? What it makes of one must not depend on the others of the batch.

Padding to the longest record of the batch is the usual case: a model that does not ignore it gives every record another
gradient where one record is long.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import default_collate

from lastiterate.errors import InvalidInput
from lastiterate.facts import Basis, Fact, fact
from lastiterate.torch.agreement import tolerance_of
from lastiterate.torch.network import Network, NotByRecord
from lastiterate.torch.records import moved, pair_of, pieces
from lastiterate.torch.without_dropout import WithoutDropout

Collate = Callable[[list[Any]], Any]
_RECORDS = 6
COMPARED = fact("collate_separate", compared="once").on(Basis.CHECKED)
NOT_COMPARED = fact("collate_separate", compared="impossible")
_CANNOT = (TypeError, ValueError, LookupError, RuntimeError, AttributeError)


def check_collate(network: Network, dataset: Any, collate_fn: Collate | None) -> tuple[Fact, ...]:
    """What the report states of a collate function; an error if the loss of some record is another one collated alone.

    A few records are compared once. Where chance changes the loss of a record by more than rounding does, nothing can be.
    """
    if collate_fn is None or collate_fn is default_collate or len(dataset) < 2:
        return ()
    places = secrets.SystemRandom().sample(range(len(dataset)), min(len(dataset), _RECORDS))
    records = [dataset[place] for place in places]
    try:
        alone, again = ([_collated(network, collate_fn, [one]) for one in records] for _ in range(2))
        together = list(pieces(*_collated(network, collate_fn, records), 1))
        if not _alike(network, alone, again):
            return (NOT_COMPARED,)
        differ = not _alike(network, alone, together)
    except _CANNOT:  # that batches are what they have to be is seen when they come
        return (NOT_COMPARED,)
    if differ:
        raise NotByRecord("collate_mixes_records", field="collate_fn")
    return (COMPARED,)


def _collated(network: Network, collate_fn: Collate, records: list[Any]) -> tuple[Any, Any]:
    inputs, targets = pair_of(collate_fn(copy.deepcopy(records)))
    return moved(inputs, network.device, network.dtype), moved(targets, network.device, network.dtype)


def _alike(network: Network, alone: list[Any], together: list[Any]) -> bool:
    network.renew()
    with WithoutDropout(), torch.no_grad():
        first, second = (torch.cat([network.losses(*one) for one in each]) for each in (alone, together))
    network.renew()
    if len(first) != len(second) or not bool(first.isfinite().all()):
        raise InvalidInput("losses_not_comparable")
    return bool(((first - second).abs() <= tolerance_of(network) * (1 + first.abs().max())).all())
