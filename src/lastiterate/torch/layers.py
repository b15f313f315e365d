"""The gradients of single layers, from what went in and what came back: formed only where there is no shorter way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from lastiterate.torch.clipped import LayerPart, Looked, Products, Rows, Sequences

Totals = dict[str, Any]
"""Where to add up, by the name of the layer's parameter."""
Rule = Callable[[Any, Any, Any, Totals], list[LayerPart]]


def rule_of(layer: Any) -> Rule | None:
    """How gradients of this layer are found; None for a kind of layer that is not known, or an unusual one."""
    if getattr(layer, "max_norm", None) is not None or getattr(layer, "scale_grad_by_freq", False):
        return None
    if getattr(layer, "padding_mode", "zeros") != "zeros":
        return None
    return _RULES.get(type(layer)) or (_by_opacus if type(layer) in _known_to_opacus() else None)


def _linear(layer: Any, activations: Any, backprops: Any, totals: Totals) -> list[LayerPart]:
    weight, bias = totals.get("weight"), totals.get("bias")
    if backprops.dim() == 2:
        return [Products(backprops.double(), activations.double(), weight, bias)]
    backprops, activations = backprops.flatten(1, -2), activations.flatten(1, -2)
    places, out, into = backprops.shape[1], layer.out_features, layer.in_features
    if weight is None or places * (out + into) > out * into:
        return _formed(backprops, activations, weight, bias)
    return [Sequences(backprops.double(), activations.double(), weight, bias)]


def _formed(backprops: Any, activations: Any, weight: Any, bias: Any) -> list[LayerPart]:
    parts: list[LayerPart] = []
    if weight is not None:
        parts.append(Rows(torch.einsum("nlo,nli->noi", backprops, activations.to(backprops.dtype)), weight))
    if bias is not None:
        parts.append(Rows(backprops.double().sum(1), bias))
    return parts


def _embedding(layer: Any, places: Any, backprops: Any, totals: Totals) -> list[LayerPart]:
    places, backprops = places.reshape(len(places), -1), backprops.reshape(len(places), -1, layer.embedding_dim)
    backprops = backprops.double()
    if layer.padding_idx is not None:
        backprops = backprops * (places != layer.padding_idx)[:, :, None]
    return [Looked(backprops, places, totals["weight"], None)]


def _by_opacus(layer: Any, activations: Any, backprops: Any, totals: Totals) -> list[LayerPart]:
    """Opacus forms the gradients of convolutions and normalisations."""
    rows = _known_to_opacus()[type(layer)](layer, [activations], backprops)
    named = {id(one): name for name, one in layer.named_parameters(recurse=False)}
    found = {named[id(one)]: row for one, row in rows.items()}
    return [Rows(found[name], total) for name, total in totals.items()]


def _known_to_opacus() -> dict[type, Any]:
    try:
        from opacus.grad_sample import GradSampleHooks
    except ImportError:
        return {}
    return {kind: sampler for kind, sampler in GradSampleHooks.GRAD_SAMPLERS.items() if kind in _TRUSTED}


# Layers of torch.nn with one input, whose gradients Opacus forms; each is compared with autograd's in the tests.
_TRUSTED = (
    torch.nn.Conv1d,
    torch.nn.Conv2d,
    torch.nn.Conv3d,
    torch.nn.GroupNorm,
    torch.nn.LayerNorm,
    torch.nn.RMSNorm,
    torch.nn.InstanceNorm1d,
    torch.nn.InstanceNorm2d,
    torch.nn.InstanceNorm3d,
)
_RULES: dict[type, Rule] = {torch.nn.Linear: _linear, torch.nn.Embedding: _embedding}
