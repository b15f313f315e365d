"""Are the gradients those of single records? Some of them are computed one at a time, by autograd alone, and compared.

A layer that mixes records, weights that are used in more than one place, statistics of a batch: whatever makes the gradient
of a batch another thing than that of its records shows here, before the first step.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import torch

from lastiterate.torch.gradients import ByVmap, Gradients, LayerByLayer
from lastiterate.torch.network import Network, NotByRecord
from lastiterate.torch.records import count_of, pieces

_RECORDS = 4
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-3}  # of the clip, for each record; others have few digits
_ROUGH = 0.1


def agreeing(network: Network, inputs: Any, targets: Any, most: float) -> Gradients:
    """Gradients of this network that are what autograd says of single records, the quickest that are."""
    _check_separate(network, *next(pieces(inputs, targets, _RECORDS)))
    for way in (LayerByLayer, ByVmap):
        with contextlib.suppress(NotByRecord):
            found = way(network)
            check_agreement(found, inputs, targets, most)
            return found
    raise MixedRecords()


def check_agreement(gradients: Gradients, inputs: Any, targets: Any, most: float) -> None:
    """An error if the gradients of some of these records are not what autograd says of each alone."""
    if not _agree(gradients, *next(pieces(inputs, targets, _RECORDS)), most):
        raise MixedRecords()


def _check_separate(network: Network, inputs: Any, targets: Any) -> None:
    """Each record's loss is the same whatever else is in its batch."""
    with _without_dropout(network.working), torch.no_grad():
        try:
            together = network.losses(inputs, targets)
        except NotByRecord:  # a loss of the whole batch, which is asked for single records only
            return
        alone = torch.cat([network.losses(*record) for record in pieces(inputs, targets, 1)])
    network.check_buffers()
    limit = _tolerance(network) * (1 + alone.abs().max())
    if not bool(((together - alone).abs() <= limit).all()) and bool(alone.isfinite().all()):
        raise MixedRecords()


def _tolerance(network: Network) -> float:
    return _ROUGH if network.autocast is not None else _TOLERANCE.get(network.dtype, _ROUGH)


class MixedRecords(NotByRecord):
    """Gradients of a batch that are not those of its records."""

    def __init__(self) -> None:
        super().__init__(
            "the model must treat records one by one, but its gradients of a batch are not those of single records. Look "
            "for layers that mix records, or that torch.func.vmap cannot take.",
            field="model",
        )


def _agree(gradients: Gradients, inputs: Any, targets: Any, most: float) -> bool:
    network = gradients.network
    with _without_dropout(network.working):
        apart = torch.zeros(network.size, dtype=torch.float64, device=network.device)
        gradients.add(inputs, targets, network.views(apart), most)
        longest = most if most < float("inf") else float(torch.linalg.vector_norm(apart))
        for record in pieces(inputs, targets, 1):
            _subtract_alone(network, record, network.views(apart), most)
    worst = float(torch.linalg.vector_norm(apart))
    return worst <= _tolerance(network) * longest * count_of((inputs, targets))


def _subtract_alone(network: Network, record: tuple[Any, Any], totals: dict[str, Any], most: float) -> None:
    """By autograd, from the loss of this record alone."""
    found = torch.autograd.grad(network.losses(*record).sum(), list(network.parameters.values()), allow_unused=True)
    norms = [float(torch.linalg.vector_norm(row, dtype=torch.float64)) for row in found if row is not None]
    for total, row in zip(totals.values(), found, strict=True):
        if row is not None:
            total.sub_(row, alpha=min(1.0, most / max(math.hypot(*norms), 1e-300)))


@contextlib.contextmanager
def _without_dropout(module: Any) -> Iterator[None]:
    """Masks are drawn for each batch, so that two computations would differ."""
    dropping = [
        one for one in module.modules() if isinstance(one, torch.nn.modules.dropout._DropoutNd) and one.training
    ]
    for one in dropping:
        one.eval()
    try:
        yield
    finally:
        for one in dropping:
            one.train()
