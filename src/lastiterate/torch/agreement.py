"""Are the gradients those of single records? Some of them are computed one at a time, by autograd alone, and compared.

A layer that mixes records, weights that are used in more than one place, statistics of a batch: whatever makes the gradient
of a batch another thing than that of its records shows here, before the first step.
"""

from __future__ import annotations

import contextlib
import math
import secrets
from functools import partial
from typing import Any

import torch

from lastiterate.torch.clipped import NotFinite
from lastiterate.torch.gradients import ByVmap, Gradients, LayerByLayer, OneByOne, reaches_others
from lastiterate.torch.network import Network, NotByRecord, count_of, mapped, moved, pieces
from lastiterate.torch.working_copy import WithoutDropout

_RECORDS = 4
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-3}  # of the clip, for each record; others have few digits
_ROUGH = 0.1
_FEW = 30  # times the tolerance: a gradient that is shorter, beside the clip, may be rounding
_NUMBERS_AT_ONCE = 1 << 16  # that become doubles
_TINY = 1e-300


def agreeing(network: Network, inputs: Any, targets: Any, most: float) -> Gradients:
    """Return the quickest gradients of this network that agree with autograd on single records."""
    some = _at(_some_places(inputs, targets), inputs, targets)
    _check_separate(network, *some, torch.arange(count_of(some)))
    ways = (LayerByLayer, ByVmap, OneByOne)
    found = next((one for way in ways if (one := _if_agreeing(way, network, (inputs, targets), most))), None)
    if found is None:
        raise NotByRecord("model_mixes_records", field="model")
    _check_among_all(found, inputs, targets)
    return found


def _if_agreeing(way: type[Gradients], network: Network, records: tuple[Any, Any], most: float) -> Gradients | None:
    with contextlib.suppress(NotByRecord):
        found = way(network)
        return found if _some_agree(found, *records, most, WithoutDropout()) else None
    return None


def check_agreement(gradients: Gradients, inputs: Any, targets: Any, most: float) -> None:
    """Raise an error if the gradients of some records differ from those of autograd for each alone.

    Layer by layer, the next pass will be looked at, too. Where something is dropped in it, losses say nothing there: then
    there is a pass for that alone.
    """
    dropout = WithoutDropout()
    if not _some_agree(gradients, inputs, targets, most, dropout):
        raise NotByRecord("model_mixes_records", field="model")
    if isinstance(gradients, LayerByLayer) and not dropout.applied:
        gradients.look = partial(_check_seen, gradients.network)
    else:
        _check_among_all(gradients, inputs, targets)


def _check_seen(network: Network, inputs: Any, targets: Any, losses: Any, outputs: list[Any]) -> None:
    places = _some_places(inputs, targets)
    if reaches_others(losses, outputs, places):
        raise NotByRecord("model_mixes_records", field="model")
    alone = _losses_alone(network, *_at(places, inputs, targets)).detach()
    network.check_buffers()
    _check_alike(network, losses[places].detach(), alone)


def _check_among_all(gradients: Gradients, inputs: Any, targets: Any) -> None:
    """Check that a record's loss and gradient do not depend on the others; vmap keeps records apart by construction."""
    if not isinstance(gradients, LayerByLayer):
        return
    network, places = gradients.network, _some_places(inputs, targets)
    with WithoutDropout() as dropout:
        together, reached = gradients.among_all(inputs, targets, places)
        alone = _losses_alone(network, *_at(places, inputs, targets)).detach()
    network.check_buffers()
    _check_alike(network, together, alone)
    if reached or (dropout.applied and gradients.among_all(inputs, targets, places)[1]):
        raise NotByRecord("model_mixes_records", field="model")


def _some_places(inputs: Any, targets: Any) -> Any:
    """Draw some places unpredictably: a model could treat the first records of a batch in its own way."""
    count = count_of((inputs, targets))
    return torch.tensor(secrets.SystemRandom().sample(range(count), min(count, _RECORDS)))


def _at(places: Any, inputs: Any, targets: Any) -> tuple[Any, Any]:
    return mapped(lambda one: one[places], inputs), mapped(lambda one: one[places], targets)


def _check_separate(network: Network, inputs: Any, targets: Any, places: Any) -> None:
    """Raise an error if the loss of a record depends on what else is in its batch."""
    with WithoutDropout(), torch.no_grad():
        try:
            together = network.losses(inputs, targets)[places]
        except NotByRecord:  # a loss of the whole batch, which is asked for single records only
            return
        alone = _losses_alone(network, *_at(places, inputs, targets))
    network.check_buffers()
    _check_alike(network, together, alone)


def _losses_alone(network: Network, inputs: Any, targets: Any) -> Any:
    return torch.cat([network.losses(*record) for record in pieces(inputs, targets, 1)])


def _check_alike(network: Network, together: Any, alone: Any) -> None:
    limit = tolerance_of(network) * (1 + alone.abs().max())
    if not bool(((together - alone).abs() <= limit).all()) and bool(alone.isfinite().all()):
        raise NotByRecord("model_mixes_records", field="model")


def tolerance_of(network: Network) -> float:
    return _ROUGH if network.autocast is not None else _TOLERANCE.get(network.dtype, _ROUGH)


def _some_agree(gradients: Gradients, inputs: Any, targets: Any, most: float, dropout: WithoutDropout) -> bool:
    """Whether some records agree; if not, rounding may have switched a rectifier: on in a batch, off alone.

    What mixes records does so in any precision, and whichever they are: the same ones have to agree in double precision,
    where such a switch is a thousand million times rarer, and others as they are.
    """
    some = _at(_some_places(inputs, targets), inputs, targets)
    if _agree(gradients, *some, most, dropout):
        return True
    return _agree_in_doubles(gradients, *some, most) and any(
        _agree(gradients, *_at(places, inputs, targets), most, dropout) for places in _other_places(inputs, targets)
    )


def _other_places(inputs: Any, targets: Any) -> list[Any]:
    """Places of further records, at least two at once: others, or all but one of a few; none if there are two."""
    count = count_of((inputs, targets))
    if count > _RECORDS:
        return [_some_places(inputs, targets)]
    every = torch.arange(count)
    return [every[every != without] for without in range(count)] if count > 2 else []


def _agree_in_doubles(gradients: Gradients, inputs: Any, targets: Any, most: float) -> bool:
    """Whether gradients agree in double precision; False if the model cannot be computed in it, or already was."""
    if gradients.network.dtype == torch.float64:
        return False
    with contextlib.suppress(RuntimeError, TypeError, ValueError):
        network = gradients.network.in_doubles()
        inputs, targets = (moved(part, network.device, network.dtype) for part in (inputs, targets))
        return _agree(type(gradients)(network), inputs, targets, most, WithoutDropout())
    return False


def _agree(gradients: Gradients, inputs: Any, targets: Any, most: float, dropout: WithoutDropout) -> bool:
    """Whether gradients agree when clipped so short that each is: otherwise joint clipping would not show.

    What the records should have added is subtracted first. How short that is, is known when all of them were seen: where one
    is shorter still, it is computed again, since no two of them are held in memory.
    """
    network, records = gradients.network, list(pieces(inputs, targets, 1))
    apart = network.spare.zeros()
    totals = network.views(apart)
    norms = [_subtract_direction(_alone(network, record), totals) for record in records]
    if not all(map(math.isfinite, norms)):
        raise NotFinite("record_gradients_not_finite")
    most = _shorter(most, norms, tolerance_of(network))
    apart *= most
    for record, norm in zip(records, norms, strict=True):
        if norm < most:
            _subtract(_alone(network, record), totals, 1 - most / max(norm, _TINY))
    with dropout:
        gradients.add(inputs, targets, totals, most)
    distance = float(torch.linalg.vector_norm(apart))
    network.spare.keep(apart)
    return distance <= tolerance_of(network) * most * len(records)


def _shorter(most: float, norms: list[float], tolerance: float) -> float:
    """Return half of the shortest norm, but no clip so short that only rounding is left."""
    least = min([one / 2 for one in norms if one > 0], default=most)
    return min(most, max(least, min(1.0, _FEW * tolerance) * most if math.isfinite(most) else least))


def _subtract_direction(rows: tuple[Any, ...], totals: dict[str, Any]) -> float:
    """Subtract a record's gradient, scaled to norm 1, from the totals, and return its norm."""
    norm = _norm(rows)
    _subtract(rows, totals, 1 / max(norm, _TINY))
    return norm


def _subtract(rows: tuple[Any, ...], totals: dict[str, Any], kept: float) -> None:
    """Subtract the share `kept` of a record's gradient from the totals."""
    for total, row in zip(totals.values(), rows, strict=True):
        if row is not None:
            for some, part in zip(_numbers(total), _numbers(row), strict=True):
                some.sub_(part, alpha=kept)


def _alone(network: Network, record: tuple[Any, Any]) -> tuple[Any, ...]:
    """Gradient of this record's loss alone, by autograd."""
    with WithoutDropout():
        return torch.autograd.grad(network.losses(*record).sum(), list(network.parameters.values()), allow_unused=True)


def _norm(rows: tuple[Any, ...]) -> float:
    """Norm of a gradient in double precision."""
    parts = (part for row in rows if row is not None for part in _numbers(row))
    return math.hypot(*(float(torch.linalg.vector_norm(part, dtype=torch.float64)) for part in parts))


def _numbers(tensor: Any) -> tuple[Any, ...]:
    """Split a tensor into parts so small that their doubles take little memory."""
    return tuple(tensor.reshape(-1).split(_NUMBERS_AT_ONCE))
