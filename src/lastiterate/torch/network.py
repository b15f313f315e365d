"""A module and its loss: which parameters are trained, the loss of each record, and what may not change on the way."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import torch

from lastiterate.errors import InvalidInput, must_be
from lastiterate.facts import Fact, fact
from lastiterate.torch.team import check_whole
from lastiterate.torch.tensors import SpareVector
from lastiterate.torch.working_copy import buffers_of, check_buffers, working_copy

Criterion = Callable[..., Any]
_SUMS = ("sum", "batchmean")
PUBLIC_STATISTICS = fact("statistics_public")


class Network:
    """`module(inputs)` and `criterion(output, targets)`, record by record, on a `working` copy that shares its parameters.

    Trained are the parameters that require gradients. What is released are these alone, so buffers must stay as they are.
    """

    def __init__(self, module: Any, criterion: Criterion, autocast: Any = None) -> None:
        if not isinstance(module, torch.nn.Module):
            raise must_be("model", "a torch.nn.Module", type(module).__name__)
        if not callable(criterion):
            raise must_be("loss", "a function of outputs and targets", type(criterion).__name__)
        self.module = module.module if isinstance(module, torch.nn.parallel.DistributedDataParallel) else module
        self._given = criterion
        self._criterion, self._summed = _unreduced(criterion)
        self._ignored = _setting(criterion, "ignore_index")
        self.autocast = autocast
        self.collated: tuple[Fact, ...] = ()
        check_whole(self.module)
        _check_layers(self.module)
        self.parameters = {name: one for name, one in self.module.named_parameters() if one.requires_grad}
        _check_parameters(self.parameters)
        self.spare = SpareVector(self.size, self.device)
        self.renew()

    @property
    def assumed(self) -> tuple[Fact, ...]:
        """Assumptions about the model that nobody can check, and about the function that collates its batches."""
        kept = any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in self.module.modules())
        return (*((PUBLIC_STATISTICS,) if kept else ()), *self.collated)

    def forget(self) -> None:
        """Renew the working copy, after a check that forward passes have left the buffers alone."""
        self.check_buffers()
        self.renew()

    def renew(self) -> None:
        """Make a new working copy, which forgets what forward passes have stored."""
        _check_layers(self.module)  # somebody may have called train() on it
        self.working = working_copy(self.module)
        self._buffers = buffers_of(self.working)
        stateful = isinstance(self._criterion, torch.nn.Module)
        self.criterion = working_copy(self._criterion) if stateful else self._criterion

    def in_doubles(self) -> Network:
        """Return a copy in double precision that shares nothing."""
        module, given = copy.deepcopy(self.module).double(), self._given
        return Network(module, copy.deepcopy(given).double() if isinstance(given, torch.nn.Module) else given)

    @property
    def device(self) -> Any:
        return next(iter(self.parameters.values())).device

    @property
    def dtype(self) -> Any:
        """Type of the inputs."""
        return next(iter(self.parameters.values())).dtype

    @property
    def size(self) -> int:
        """The number of trained parameters."""
        return sum(one.numel() for one in self.parameters.values())

    def losses(self, inputs: Any, targets: Any, call: Callable[..., Any] | None = None) -> Any:
        """Return the loss of each record; `call` replaces the module where its parameters are others."""
        call, count = call or self.working, count_of((inputs, targets))
        with self._precision():
            if isinstance(inputs, Mapping):
                check_columns(self.module, inputs)
                output = call(**inputs)
            else:
                output = call(*inputs) if isinstance(inputs, tuple | list) else call(inputs)
            found = self.criterion(output, targets)
        if not isinstance(found, torch.Tensor) or (found.dim() == 0 and count != 1):
            raise NotByRecord("loss_of_whole_batch")
        found = found.reshape(1) if found.dim() == 0 else found
        if len(found) != count:
            raise NotByRecord("losses_not_one_per_record", records=count, losses=len(found))
        return found if found.dim() == 1 else self._joined(found, targets)

    def _joined(self, found: Any, targets: Any) -> Any:
        """Join the losses of a record's places; places that the criterion ignores do not count."""
        parts = found.flatten(1)
        if self._summed:
            return parts.sum(1)
        if self._ignored is None or not isinstance(targets, torch.Tensor) or targets.shape != found.shape:
            return parts.mean(1)
        return parts.sum(1) / (targets != self._ignored).flatten(1).sum(1).clamp(min=1)

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext() if self.autocast is None else torch.autocast(self.device.type, self.autocast)

    def views(self, flat: Any) -> dict[str, Any]:
        """The parts of a vector that belong to each parameter, sharing its memory."""
        parts, first = {}, 0
        for name, parameter in self.parameters.items():
            parts[name] = flat[first : first + parameter.numel()].view(parameter.shape)
            first += parameter.numel()
        return parts

    def named(self, flat: Any) -> dict[str, Any]:
        """A copy of the parts of a vector, each in the precision of its parameter."""
        return {name: part.to(self.parameters[name].dtype, copy=True) for name, part in self.views(flat).items()}

    def flat(self, into: Any = None) -> Any:
        """Return the trained parameters as one vector in double precision: a new one, or this."""
        found = torch.empty(self.size, dtype=torch.float64, device=self.device) if into is None else into
        for name, part in self.views(found).items():
            part.copy_(self.parameters[name].detach())
        return found

    def put(self, flat: Any) -> None:
        """Copy this vector into the parameters."""
        with torch.no_grad():
            for name, part in self.views(flat).items():
                self.parameters[name].copy_(part)

    def holds(self, flat: Any) -> bool:
        """Whether the parameters are this vector, in their precision."""
        return all(torch.equal(self.parameters[name], part) for name, part in self.named(flat).items())

    def check_buffers(self) -> None:
        """Raise an error if forward passes since `renew` have changed a buffer."""
        check_buffers(self.working, self._buffers)


class NotByRecord(InvalidInput):
    """Error for a model or loss of which no single record's part is known."""


def _unreduced(criterion: Criterion) -> tuple[Criterion, bool]:
    """Return the criterion without reduction, and whether its parts are to be added up instead of averaged."""
    reduction = _setting(criterion, "reduction")
    if isinstance(criterion, torch.nn.Module) and isinstance(reduction, str):
        alone = copy.copy(criterion)
        alone.reduction = "none"
    elif reduction is not None:
        alone = functools.partial(criterion, reduction="none")
    else:
        return criterion, False
    return alone, reduction in _SUMS


def _setting(criterion: Criterion, name: str) -> Any:
    """Setting of a criterion: a module's attribute, or the default of a function's argument; None if it has none."""
    if isinstance(criterion, torch.nn.Module):
        return getattr(criterion, name, None)
    try:
        found = inspect.signature(criterion).parameters.get(name)
    except (TypeError, ValueError):
        return None
    return None if found is None else found.default


def _check_layers(module: Any) -> None:
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            if part.training or part.running_mean is None:
                raise InvalidInput("layer_mixes_records", field="model", got=type(part).__name__)
        elif isinstance(part, torch.nn.modules.batchnorm._NormBase) and part.track_running_stats:
            raise InvalidInput("layer_keeps_statistics", field="model", got=type(part).__name__)


def _check_parameters(trained: dict[str, Any]) -> None:
    if not trained:
        raise InvalidInput("no_trained_parameters", field="model")
    for name, one in trained.items():
        if torch.nn.parameter.is_lazy(one):
            raise InvalidInput("parameter_lazy", field="model", got=name)
        if not one.is_floating_point():
            raise must_be("model", "real numbers", f"{name} of {one.dtype}", called="parameters")
    devices = {one.device for one in trained.values()}
    if len(devices) > 1:
        raise must_be(
            "model", "on one device", f"{', '.join(sorted(map(str, devices)))}", called="the trained parameters"
        )


# Records of a loader: inputs and targets, each a tensor, or tuples, lists and dicts of tensors.


LABELS = "labels"


def pair_of(batch: Any) -> tuple[Any, Any]:
    """Return inputs and targets of a batch: a pair, or a dict whose "labels" are the targets."""
    if isinstance(batch, Mapping):
        if LABELS not in batch:
            raise InvalidInput("batch_without_labels", columns=list(map(str, batch)))
        return {name: part for name, part in batch.items() if name != LABELS}, batch[LABELS]
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[0], batch[1]
    raise InvalidInput("batch_not_a_pair", got=type(batch).__name__)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply the function to every tensor in a value."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, Mapping):
        return {name: mapped(function, part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(mapped(function, part) for part in value)
    return value


def count_of(value: Any) -> int:
    """Number of records, along the first axis of every tensor."""
    counts = {len(tensor) if tensor.dim() else -1 for tensor in tensors_of(value)}
    if len(counts) != 1 or -1 in counts:
        raise InvalidInput("batch_uneven", got="different lengths" if counts else "no tensor")
    return counts.pop()


def pieces(inputs: Any, targets: Any, most: int) -> Iterator[tuple[Any, Any]]:
    """Yield the records in pieces of at most `most`."""
    for first in range(0, count_of((inputs, targets)), most):
        some = itemgetter(slice(first, first + most))
        yield mapped(some, inputs), mapped(some, targets)


def moved(value: Any, device: Any, dtype: Any) -> Any:
    """Return the value on a device, with real numbers in the precision of the model."""
    return mapped(lambda one: one.to(device, dtype if one.is_floating_point() else one.dtype, non_blocking=True), value)


def tensors_of(value: Any) -> Iterator[Any]:
    """Yield all tensors in a value."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from tensors_of(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors_of(part)


# Named entries of a record, and the arguments of a model.


def check_columns(module: Any, inputs: Mapping[str, Any]) -> None:
    """An error if the model has no argument for an entry, or if an entry holds no tensor."""
    unknown = [name for name in inputs if not _takes(module, name)]
    if unknown:
        raise InvalidInput("columns_unknown", field="dataset", columns=unknown, arguments=_arguments(module))
    lists = [
        name for name, part in inputs.items() if isinstance(part, list) and next(tensors_of(part), None) is not None
    ]
    if lists:
        raise InvalidInput("columns_of_lists", field="dataset", columns=lists)
    bare = [name for name, part in inputs.items() if part is not None and next(tensors_of(part), None) is None]
    if bare:
        raise InvalidInput("columns_without_tensors", field="dataset", columns=bare)


def _takes(module: Any, name: str) -> bool:
    parameters = inspect.signature(module.forward).parameters
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def _arguments(module: Any) -> list[str]:
    return [
        name for name, one in inspect.signature(module.forward).parameters.items() if one.kind is not one.VAR_POSITIONAL
    ]
