"""The gradient of every record: layer by layer from one backward pass, by `torch.func.vmap`, or one record at a time.

Layer by layer, weights get no gradient of their own in the backward pass: what comes back to each layer gives the norms, and
one more product the clipped sum. This needs layers of known kinds, each used once.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from lastiterate.torch.clipped import LayerPart, Looked, Products, Rows, Sequences, add_clipped
from lastiterate.torch.network import Network, NotByRecord, count_of, mapped, pieces
from lastiterate.torch.working_copy import first_line, working_copy

Look = Callable[[Any, Any, Any, list[Any]], None]
"""At inputs, targets, losses, and what came out of the layers."""


class Gradients(ABC):
    """A way to find the gradients of single records of a network."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.formed = 0  # bytes of gradients that were formed for each record

    @abstractmethod
    def parts(self, inputs: Any, targets: Any, totals: dict[str, Any]) -> list[LayerPart]:
        """Return the clippable parts of these records' gradients."""

    def add(self, inputs: Any, targets: Any, totals: dict[str, Any], most: float) -> None:
        """Add these records' gradients, each cut to the norm `most`, to the totals in double precision."""
        parts = self.parts(inputs, targets, totals)
        self.formed = sum(part.rows[0].nbytes for part in parts if isinstance(part, Rows))
        add_clipped(parts, most)


class ByVmap(Gradients):
    """Gradients of all records, each formed in full by `torch.func.vmap`."""

    def parts(self, inputs: Any, targets: Any, totals: dict[str, Any]) -> list[LayerPart]:
        # functional_call leaves a layer that has two names with the parameters it was called with (PyTorch 2.13).
        module = working_copy(self.network.working)
        parameters = {name: one.detach() for name, one in self.network.parameters.items()}
        buffers = dict(self.network.working.named_buffers(remove_duplicate=False))

        def loss(trained: dict[str, Any], one: Any, target: Any) -> Any:
            def call(*args: Any, **named: Any) -> Any:
                return functional_call(module, (trained, buffers), args, named)

            alone = mapped(lambda part: part.unsqueeze(0), one), mapped(lambda part: part.unsqueeze(0), target)
            return self.network.losses(*alone, call=call).sum()

        try:
            with sdpa_kernel(SDPBackend.MATH):  # the others have no rule for vmap, and warn
                found = vmap(grad(loss), in_dims=(None, 0, 0), randomness="different")(parameters, inputs, targets)
        except NotByRecord:
            raise
        except (RuntimeError, ValueError) as error:
            raise NotByRecord("gradients_not_by_record", reason=first_line(error)) from error
        return [Rows(found[name], total) for name, total in totals.items()]


class OneByOne(Gradients):
    """Gradients from each record's loss by itself: slow, and possible for every model that autograd can take."""

    def parts(self, inputs: Any, targets: Any, totals: dict[str, Any]) -> list[LayerPart]:
        """Return the parts of the gradient of a single record."""
        trained = list(self.network.parameters.values())
        rows = torch.autograd.grad(self.network.losses(inputs, targets).sum(), trained, allow_unused=True)
        both = zip(rows, totals.values(), strict=True)
        return [Rows(row.unsqueeze(0), total) for row, total in both if row is not None]

    def add(self, inputs: Any, targets: Any, totals: dict[str, Any], most: float) -> None:
        """Add the clipped gradients one record at a time; no record sees buffers that the one before has changed."""
        for place, record in enumerate(pieces(inputs, targets, 1)):
            if place:
                self.network.forget()
            super().add(*record, totals, most)


class _Seen:
    """Activations and output of a layer in one forward pass."""

    def __init__(self, path: str, layer: Any, activations: Any, output: Any) -> None:
        self.path, self.layer, self.activations, self.output = path, layer, activations, output
        self.versions = activations._version, output._version

    @property
    def input_changed(self) -> bool:
        return bool(self.activations._version != self.versions[0])

    @property
    def output_changed(self) -> bool:
        return bool(self.output._version != self.versions[1])


class LayerByLayer(Gradients):
    """Gradients from one pass forward, one backward to the layers, and one product for each layer."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.rules, self._names = _rules(network), _names(network)
        self._copied: set[str] = set()  # layers whose output is changed in place afterwards
        self.look: Look | None = None  # at the next pass, and at no other

    def parts(self, inputs: Any, targets: Any, totals: dict[str, Any]) -> list[LayerPart]:
        with self._watched(count_of((inputs, targets))) as seen:
            losses = self.network.losses(inputs, targets)
        if len(seen) != len({one.path for one in seen}):
            raise NotByRecord("layer_used_twice")
        if any(one.input_changed for one in seen):
            raise NotByRecord("layer_input_changed")
        if changed := {one.path for one in seen if one.output_changed}:
            self._copied |= changed
            return self.parts(inputs, targets, totals)
        (look, self.look), outputs = (self.look, None), [one.output for one in seen]
        backprops = torch.autograd.grad(losses.sum(), outputs, retain_graph=look is not None, allow_unused=True)
        if look is not None:
            look(inputs, targets, losses, outputs)
        return [
            part
            for one, backprop in zip(seen, backprops, strict=True)
            if backprop is not None
            for part in self.rules[one.path](one.layer, one.activations, backprop, self._totals(one.path, totals))
        ]

    def among_all(self, inputs: Any, targets: Any, places: Any) -> tuple[Any, bool]:
        """Return the losses of some records, and whether they depend on the passes of others through a layer."""
        with self._watched(count_of((inputs, targets))) as seen:
            losses = self.network.losses(inputs, targets)
        return losses[places].detach(), reaches_others(losses, [one.output for one in seen], places)

    def _totals(self, path: str, totals: dict[str, Any]) -> dict[str, Any]:
        return {name: totals[full] for name, full in self._names[path].items()}

    @contextlib.contextmanager
    def _watched(self, count: int) -> Iterator[list[_Seen]]:
        """Watch each layer during a pass: it must see the records along its first axis, and clipping treats them so.

        A table that is looked at once for all of them, as for positions, is looked at once for each.
        """
        seen: list[_Seen] = []

        def watch(path: str, layer: Any, given: tuple[Any, ...], output: Any) -> Any:
            if len(given) != 1 or not isinstance(output, torch.Tensor):
                raise NotByRecord("layer_not_of_one_tensor")
            into = given[0]
            if isinstance(layer, torch.nn.Embedding) and len(into) == len(output) == 1 < count:
                into, output = into.expand(count, *into.shape[1:]), output.expand(count, *output.shape[1:])
            if not len(output) == len(into) == count:
                raise NotByRecord("layer_records_not_first")
            seen.append(_Seen(path, layer, into.detach(), output))
            return output.clone() if path in self._copied else output

        layers = {path: self.network.working.get_submodule(path) for path in self.rules}
        handles = [layer.register_forward_hook(partial(watch, path)) for path, layer in layers.items()]
        try:
            yield seen
        finally:
            for handle in handles:
                handle.remove()


def reaches_others(losses: Any, outputs: list[Any], places: Any) -> bool:
    """Whether the losses of some records depend on the passes of others through a layer."""
    others = torch.ones(len(losses), dtype=torch.bool, device=losses.device)
    others[places] = False
    backprops = torch.autograd.grad(losses[places].sum(), outputs, allow_unused=True)
    return any(bool(one[others].any()) for one in backprops if one is not None)


def _names(network: Network) -> dict[str, dict[str, str]]:
    """For each layer with trained parameters, by its path: its own names of them and those in the model."""
    found: dict[str, dict[str, str]] = {}
    for path, layer in network.module.named_modules():
        for name, parameter in layer.named_parameters(recurse=False):
            if parameter.requires_grad:
                found.setdefault(path, {})[name] = f"{path}.{name}" if path else name
    return found


def _rules(network: Network) -> dict[str, Rule]:
    """Return the rule for each layer's gradients; raise an error if a layer has none."""
    names = _names(network)
    if sorted(one for inside in names.values() for one in inside.values()) != sorted(network.parameters):
        raise NotByRecord("layers_share_parameters")
    layers = {path: network.module.get_submodule(path) for path in names}
    rules = {path: rule for path, layer in layers.items() if (rule := rule_of(layer)) is not None}
    unknown = {type(layer).__name__ for path, layer in layers.items() if path not in rules}
    if unknown:
        raise NotByRecord("layers_unknown", layers=sorted(unknown))
    return rules


# Gradients of single layers from activations and backprops, formed only where there is no shorter way.


Totals = dict[str, Any]
"""Where to add up, by the name of the layer's parameter."""
_PATCHED_AT_ONCE = 64  # records, whose patches stay in the cache
_PASSES = 50  # as long as it takes to go through a formed gradient, in products of single precision
Rule = Callable[[Any, Any, Any, Totals], list[LayerPart]]


def rule_of(layer: Any) -> Rule | None:
    """Return the rule for a layer's gradients; None for an unknown kind of layer or an unusual setting."""
    if getattr(layer, "max_norm", None) is not None or getattr(layer, "scale_grad_by_freq", False):
        return None
    if getattr(layer, "padding_mode", "zeros") != "zeros":
        return None
    return _RULES.get(type(layer))


def _linear(layer: Any, activations: Any, backprops: Any, totals: Totals) -> list[LayerPart]:
    weight, bias = totals.get("weight"), totals.get("bias")
    if backprops.dim() == 2:
        return [Products(backprops, activations, weight, bias)]
    backprops, activations = backprops.flatten(1, -2), activations.flatten(1, -2)
    if weight is None or _quicker_formed(backprops.shape[1], layer.out_features, layer.in_features):
        return _formed(backprops, activations, weight, bias)
    return [Sequences(backprops.double(), activations.double(), weight, bias)]


def _quicker_formed(places: int, out: int, into: int) -> bool:
    """Whether forming gradients is quicker than products of places with places in double precision."""
    by_places = 2 * places * (places * (out + into) + out * into)
    return by_places > (places + _PASSES) * out * into


def _formed(backprops: Any, activations: Any, weight: Any, bias: Any) -> list[LayerPart]:
    parts: list[LayerPart] = []
    if weight is not None:
        parts.append(Rows(torch.einsum("nlo,nli->noi", backprops, activations.to(backprops.dtype)), weight))
    if bias is not None:
        parts.append(Rows(backprops.sum(1, dtype=torch.float64), bias))
    return parts


def _embedding(layer: Any, places: Any, backprops: Any, totals: Totals) -> list[LayerPart]:
    places, backprops = places.reshape(len(places), -1), backprops.reshape(len(places), -1, layer.embedding_dim)
    backprops = backprops.double()
    if layer.padding_idx is not None:
        backprops = backprops * (places != layer.padding_idx)[:, :, None]
    return [Looked(backprops, places, totals["weight"], None)]


def _convolution(layer: Any, activations: Any, backprops: Any, totals: Totals) -> list[LayerPart]:
    """Parts of a convolution's gradient: products of patches of the input with the backprops of the output's places."""
    sides = len(layer.kernel_size)
    if activations.dim() != sides + 2:
        raise NotByRecord("convolution_without_batch")
    parts: list[LayerPart] = []
    if "weight" in totals:
        padded = functional.pad(activations.to(backprops.dtype), _padding(layer))
        pieces = zip(padded.split(_PATCHED_AT_ONCE), backprops.split(_PATCHED_AT_ONCE), strict=True)
        rows = [_of_patches(layer, some, back) for some, back in pieces]
        parts.append(Rows(rows[0] if len(rows) == 1 else torch.cat(rows), totals["weight"]))
    if "bias" in totals:
        parts.append(Rows(backprops.flatten(2).sum(2, dtype=torch.float64), totals["bias"]))
    return parts


def _of_patches(layer: Any, padded: Any, backprops: Any) -> Any:
    records, sides, step = len(padded), len(layer.kernel_size), padded.stride()
    inside = [apart * one for apart, one in zip(step[2:], layer.dilation, strict=True)]
    between = [apart * one for apart, one in zip(step[2:], layer.stride, strict=True)]
    shape = (records, layer.in_channels, *layer.kernel_size, *backprops.shape[2:])
    patches = padded.as_strided(shape, (*step[:2], *inside, *between))
    patches = patches.reshape(records * layer.groups, -1, math.prod(shape[-sides:]))
    grouped = backprops.reshape(records * layer.groups, -1, patches.shape[2])
    return torch.bmm(grouped, patches.transpose(1, 2)).view(records, -1)


def _padding(layer: Any) -> list[int]:
    """Padding at both ends of each side, the last side first."""
    found: list[int] = []
    for side in reversed(range(len(layer.kernel_size))):
        whole = layer.dilation[side] * (layer.kernel_size[side] - 1)
        given = (whole // 2, whole - whole // 2) if layer.padding == "same" else (0, 0)
        found += given if isinstance(layer.padding, str) else (layer.padding[side],) * 2
    return found


def _scaled(normalised: Callable[[Any, Any], Any], last: bool) -> Rule:
    """Rule for layers that normalise, then scale and shift: along the `last` axes, or along the channels."""

    def rule(layer: Any, activations: Any, backprops: Any, totals: Totals) -> list[LayerPart]:
        factors = {"bias": backprops}
        if "weight" in totals:
            factors["weight"] = normalised(layer, activations.to(backprops.dtype)) * backprops
        parts: list[LayerPart] = []
        for name, total in totals.items():
            terms = factors[name].reshape(len(backprops), *((-1, *total.shape) if last else (len(total), -1)))
            parts.append(Rows(terms.sum(1 if last else 2, dtype=torch.float64), total))
        return parts

    return rule


_over_last = partial(_scaled, last=True)
_over_channels = partial(_scaled, last=False)
_RULES: dict[type, Rule] = {
    torch.nn.Linear: _linear,
    torch.nn.Embedding: _embedding,
    torch.nn.Conv1d: _convolution,
    torch.nn.Conv2d: _convolution,
    torch.nn.Conv3d: _convolution,
    torch.nn.LayerNorm: _over_last(lambda layer, x: functional.layer_norm(x, layer.normalized_shape, eps=layer.eps)),
    torch.nn.RMSNorm: _over_last(lambda layer, x: functional.rms_norm(x, layer.normalized_shape, eps=layer.eps)),
    torch.nn.GroupNorm: _over_channels(lambda layer, x: functional.group_norm(x, layer.num_groups, eps=layer.eps)),
    **dict.fromkeys(
        (torch.nn.InstanceNorm1d, torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d),
        _over_channels(lambda layer, x: functional.instance_norm(x, eps=layer.eps)),
    ),
}
