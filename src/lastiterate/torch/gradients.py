"""The gradient of every record, two ways: layer by layer from one backward pass, or by `torch.func.vmap`.

Layer by layer, weights get no gradient of their own in the backward pass: what comes back to each layer gives the norms, and
one more product the clipped sum. This needs layers of known kinds, each used once.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch.func import functional_call, grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

import torch
from lastiterate.torch.clipped import Part, Rows, add_clipped
from lastiterate.torch.layers import Rule, rule_of
from lastiterate.torch.network import Network, NotByRecord
from lastiterate.torch.records import mapped


class Gradients(ABC):
    """Of a network."""

    def __init__(self, network: Network) -> None:
        self.network = network

    @abstractmethod
    def parts(self, inputs: Any, targets: Any, totals: dict[str, Any]) -> list[Part]:
        """What is known of the gradients of these records."""

    def add(self, inputs: Any, targets: Any, totals: dict[str, Any], most: float) -> None:
        """The gradients of these records, each cut to this norm, to the totals in double precision."""
        add_clipped(self.parts(inputs, targets, totals), most)


class ByVmap(Gradients):
    """Every gradient is formed."""

    def parts(self, inputs: Any, targets: Any, totals: dict[str, Any]) -> list[Part]:
        module, parameters = self.network.module, {n: p.detach() for n, p in self.network.parameters.items()}
        buffers = dict(module.named_buffers(remove_duplicate=False))

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
            raise NotByRecord(f"the model cannot be trained record by record: {first_line(error)}") from error
        return [Rows(found[name], total) for name, total in totals.items()]


@dataclass
class _Seen:
    """What went through a layer."""

    layer: Any
    activations: Any
    output: Any
    versions: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.versions = self.activations._version, self.output._version

    @property
    def input_changed(self) -> bool:
        return bool(self.activations._version != self.versions[0])

    @property
    def output_changed(self) -> bool:
        return bool(self.output._version != self.versions[1])


class LayerByLayer(Gradients):
    """One pass forward, one backward to the layers, one product for each."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.rules, self._names = _rules(network), _names(network)
        self._copied: set[Any] = set()  # layers whose output is changed in place afterwards

    def parts(self, inputs: Any, targets: Any, totals: dict[str, Any]) -> list[Part]:
        with self._watched() as seen:
            losses = self.network.losses(inputs, targets)
        if len(seen) != len({one.layer for one in seen}):
            raise NotByRecord("a layer is used more than once for each record.")
        if any(one.input_changed for one in seen):
            raise NotByRecord("what went into a layer is changed in place afterwards.")
        if changed := {one.layer for one in seen if one.output_changed}:
            self._copied |= changed
            return self.parts(inputs, targets, totals)
        backprops = torch.autograd.grad(losses.sum(), [one.output for one in seen], allow_unused=True)
        return [
            part
            for one, backprop in zip(seen, backprops, strict=True)
            if backprop is not None
            for part in self.rules[one.layer](one.layer, one.activations, backprop, self._totals(one.layer, totals))
        ]

    def _totals(self, layer: Any, totals: dict[str, Any]) -> dict[str, Any]:
        return {name: totals[full] for name, full in self._names[layer].items()}

    @contextlib.contextmanager
    def _watched(self) -> Iterator[list[_Seen]]:
        seen: list[_Seen] = []

        def watch(layer: Any, given: tuple[Any, ...], output: Any) -> Any:
            if len(given) != 1 or not isinstance(output, torch.Tensor) or len(output) != len(given[0]):
                raise NotByRecord("a layer does not take one tensor of records and return one.")
            seen.append(_Seen(layer, given[0].detach(), output))
            return output.clone() if layer in self._copied else output

        handles = [layer.register_forward_hook(watch) for layer in self.rules]
        try:
            yield seen
        finally:
            for handle in handles:
                handle.remove()


def _names(network: Network) -> dict[Any, dict[str, str]]:
    """For each layer with trained parameters, their own names and those in the model."""
    found: dict[Any, dict[str, str]] = {}
    for path, layer in network.module.named_modules():
        for name, parameter in layer.named_parameters(recurse=False):
            if parameter.requires_grad:
                found.setdefault(layer, {})[name] = f"{path}.{name}" if path else name
    return found


def _rules(network: Network) -> dict[Any, Rule]:
    """How each layer's gradients are found."""
    names = _names(network)
    if sorted(one for inside in names.values() for one in inside.values()) != sorted(network.parameters):
        raise NotByRecord("layers share parameters.")
    rules = {layer: rule_of(layer) for layer in names}
    unknown = {type(layer).__name__ for layer, rule in rules.items() if rule is None}
    if unknown:
        raise NotByRecord(f"no gradients of single layers are known for {', '.join(sorted(unknown))}.")
    return {layer: rule for layer, rule in rules.items() if rule is not None}


def first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return f"{line[:180].rstrip('.')}."
