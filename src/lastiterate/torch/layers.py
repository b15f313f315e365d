"""The gradients of single layers, from what went in and what came back: formed only where there is no shorter way."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from lastiterate.torch.clipped import LayerPart, Looked, Products, Rows, Sequences
from lastiterate.torch.network import NotByRecord

Totals = dict[str, Any]
"""Where to add up, by the name of the layer's parameter."""
_PATCHED_AT_ONCE = 64  # records, whose patches stay in the cache
_PASSES = 50  # as long as it takes to go through a formed gradient, in products of single precision
Rule = Callable[[Any, Any, Any, Totals], list[LayerPart]]


def rule_of(layer: Any) -> Rule | None:
    """How gradients of this layer are found; None for a kind of layer that is not known, or an unusual one."""
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
    """Products of places with places in double precision against one in single precision, and what is done with it."""
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
    """Each place of the output sees a patch of the input: products of patches with what came back there."""
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
    """At both ends of each side, from the last one on."""
    found: list[int] = []
    for side in reversed(range(len(layer.kernel_size))):
        whole = layer.dilation[side] * (layer.kernel_size[side] - 1)
        given = (whole // 2, whole - whole // 2) if layer.padding == "same" else (0, 0)
        found += given if isinstance(layer.padding, str) else (layer.padding[side],) * 2
    return found


def _scaled(normalised: Callable[[Any, Any], Any], last: bool) -> Rule:
    """Of layers that normalise, then scale and shift: along the last axes, or along the channels, which come first."""

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
