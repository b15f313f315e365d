"""A copy of a module to compute gradients with, which shares its parameters and nothing else.

Whatever a forward pass writes into it, in buffers or anywhere else, reaches neither the next gradients, where records would
see each other, nor the module that is released.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import torch

from lastiterate.errors import InvalidInput
from lastiterate.torch.quick_copy import NotSimple, quick_copy

_PLAIN = (bool, int, float, str, tuple)


def working_copy(module: Any) -> Any:
    """Without memory: buffers and attributes as they are now, the parameters themselves."""
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
    """Which tensors the buffers are, and how often they were written to."""
    return {name: (one, one._version) for name, one in module.named_buffers(remove_duplicate=False)}


def check_buffers(module: Any, before: dict[str, tuple[Any, int]]) -> None:
    """A module whose buffers move would have to release them to be what was trained."""
    now = buffers_of(module)
    for name in {**before, **now}:
        one, two = before.get(name), now.get(name)
        if one is None or two is None or one[0] is not two[0] or one[1] != two[1]:
            raise InvalidInput("buffer_changed", field="model", got=name)


def module_identity(module: Any) -> list[Any]:
    """What tells this module from another: its layers, and the settings of each."""
    return [str(module), [[name, *_layer_identity(part)] for name, part in module.named_modules()]]


def _layer_identity(part: Any) -> list[Any]:
    kind = type(part)
    plain = {name: one for name, one in vars(part).items() if name[0] != "_" and isinstance(one, _PLAIN)}
    own = None if kind.__module__.partition(".")[0] == "torch" else kind.forward
    return [kind.__module__, kind.__qualname__, plain, own]


def first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return f"{line[:180].rstrip('.')}."
