"""A copy of a module to compute gradients with, which shares its parameters and nothing else.

Whatever a forward pass writes into it, in buffers or anywhere else, reaches neither the next gradients, where records would
see each other, nor the module that is released.
"""

from __future__ import annotations

import contextlib
import copy
import types
from collections import OrderedDict
from functools import lru_cache
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from lastiterate.errors import InvalidInput

_PLAIN = (bool, int, float, str, tuple)


def working_copy(module: Any) -> Any:
    """Copy a module with its buffers and attributes as they are now; the parameters are shared."""
    shared = {id(one): one for one in module.parameters()}
    held = [value for part in module.modules() for value in vars(part).values() if isinstance(value, torch.Tensor)]
    own = {id(one): one.detach().clone() for one in (*held, *module.buffers())}
    with contextlib.suppress(NotSimple):
        return quick_copy(module, {**own, **shared})
    try:
        return copy.deepcopy(module, {**own, **shared})
    except (TypeError, RuntimeError, copy.Error) as error:
        raise InvalidInput("model_not_copyable", field="model", reason=first_line(error)) from error


def buffers_of(module: Any) -> dict[str, tuple[Any, int]]:
    """Return the buffers by name, each with the number of times it was written to."""
    return {name: (one, one._version) for name, one in module.named_buffers(remove_duplicate=False)}


def check_buffers(module: Any, before: dict[str, tuple[Any, int]]) -> None:
    """Raise an error if a buffer has changed: it would have to be released with the model."""
    now = buffers_of(module)
    for name in {**before, **now}:
        one, two = before.get(name), now.get(name)
        if one is None or two is None or one[0] is not two[0] or one[1] != two[1]:
            raise InvalidInput("buffer_changed", field="model", got=name)


def module_identity(module: Any) -> list[Any]:
    """Return an identity of the module: its layers, and the settings of each."""
    return [str(module), [[name, *_layer_identity(part)] for name, part in module.named_modules()]]


def _layer_identity(part: Any) -> list[Any]:
    kind = type(part)
    plain = {name: one for name, one in vars(part).items() if name[0] != "_" and isinstance(one, _PLAIN)}
    own = None if kind.__module__.partition(".")[0] == "torch" else kind.forward
    return [kind.__module__, kind.__qualname__, plain, own]


def first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return f"{line[:180].rstrip('.')}."


# Quick copies: as `copy.deepcopy` makes them, in a tenth of the time, where attributes are simple.


_ATOMS = {type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, types.FunctionType}
_CONTAINERS = {tuple, torch.Size, list, set, dict, OrderedDict}
_OWN_WAYS = ("__deepcopy__", "__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
_NAMED = ("_parameters", "_buffers", "_modules")


class NotSimple(Exception):
    """Raised for a module that only `copy.deepcopy` knows how to copy."""


def quick_copy(module: Any, known: dict[int, Any]) -> Any:
    """Copy a module quickly; objects whose id is in `known`, tensors and modules alike, are shared instead."""
    if id(module) not in known:
        kind: Any = type(module)
        if not _is_usual(kind):
            raise NotSimple
        found = known[id(module)] = object.__new__(kind)
        for name, value in vars(module).items():
            found.__dict__[name] = _named(value, known) if name in _NAMED else _copied(value, known)
    return known[id(module)]


def _named(values: Any, known: dict[int, Any]) -> Any:
    """Copy a dict of parameters, buffers or modules, some of which may be None."""
    if type(values) is not dict:
        raise NotSimple
    return {name: None if one is None else _part(one, known) for name, one in values.items()}


def _part(one: Any, known: dict[int, Any]) -> Any:
    return quick_copy(one, known) if isinstance(one, torch.nn.Module) else _known(one, known)


def _known(value: Any, known: dict[int, Any]) -> Any:
    if id(value) not in known:
        raise NotSimple
    return known[id(value)]


def _copied(value: Any, known: dict[int, Any]) -> Any:
    """Return numbers and strings as they are, and copies of their containers."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind not in _CONTAINERS:
        return _known(value, known)
    if any(type(one) not in _ATOMS for one in (*value, *(value.values() if isinstance(value, dict) else ()))):
        raise NotSimple
    return value if isinstance(value, tuple) else value.copy()


@lru_cache(maxsize=256)
def _is_usual(kind: type) -> bool:
    """Whether modules of this class are copied attribute by attribute. `__setstate__` in PyTorch is for older files."""
    ways = {way: getattr(kind, way, None) for way in _OWN_WAYS}
    return all(
        found is getattr(torch.nn.Module, way, None)
        or (way == "__setstate__" and found.__module__.startswith("torch.nn.modules."))
        for way, found in ways.items()
    )


# Dropout, switched off while two computations of one loss are compared.


_DROPPING = {
    getattr(functional, name)
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
} | {torch.dropout, torch.feature_dropout, torch.alpha_dropout, torch.feature_alpha_dropout}


class WithoutDropout(TorchFunctionMode):  # type: ignore[misc]
    """Mode in which dropout returns its input, wherever it is called: layers, functions, attention.

    `applied`: whether anything was called that may drop something.
    """

    def __init__(self) -> None:
        super().__init__()
        self.applied = False

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = dict(kwargs or {})
        if function in _DROPPING:
            self.applied = True
            return args[0] if args else named["input"]
        if function is functional.multi_head_attention_forward:
            self.applied, named["training"] = True, False
        if function is functional.scaled_dot_product_attention:
            named |= dict(zip(("attn_mask", "dropout_p", "is_causal"), args[3:], strict=False))
            self.applied = self.applied or bool(named.get("dropout_p"))
            args, named["dropout_p"] = args[:3], 0.0
        return function(*args, **named)
