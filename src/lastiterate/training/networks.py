"""PyTorch modules for `li.train`: the gradient of every record, and the parameters as one vector.

Gradients are computed on a copy of the module that is thrown away: whatever a forward pass writes into it, in buffers or
anywhere else, reaches neither the next gradients, where records would see each other, nor the module that is released.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

try:
    import torch
    from torch.func import functional_call, grad, vmap
except ImportError as error:
    raise ImportError(
        "lastiterate.training.networks needs PyTorch. Install it with: pip install 'lastiterate[torch]'."
    ) from error

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats

_PLAIN = (bool, int, float, str, tuple)


class Network:
    """`li.train(run, data, loss=network.gradients, start=network.start)`, then `network.load(trained.weights)`.

    `criterion` takes the module's output for a batch of one record and its target, as torch.nn.functional.cross_entropy.
    What is released are the trained parameters; buffers stay as they were when the network was made.
    """

    def __init__(self, module: torch.nn.Module, criterion: Callable[[Any, Any], Any]) -> None:
        if not isinstance(module, torch.nn.Module):
            raise InvalidInput(f"module must be a torch.nn.Module. Got {type(module).__name__}.", field="module")
        _check_layers(module)
        self.module = module
        self.criterion = criterion
        self._trained = {name: one for name, one in module.named_parameters() if one.requires_grad}
        _check_parameters(self._trained)
        self._buffers = {name: one.detach().clone() for name, one in module.named_buffers(remove_duplicate=False)}

    @property
    def start(self) -> Floats:
        """The parameters as they are now, which must not depend on the data; frozen ones are left out."""
        return np.concatenate([_as_numpy(one).reshape(-1).astype(np.float64) for one in self._trained.values()])

    def gradients(self, weights: Floats, features: Any, targets: Any) -> Floats:
        """One row for each record."""
        like = next(iter(self._trained.values()))
        inputs = torch.as_tensor(features, device=like.device)
        inputs = inputs.to(like.dtype) if inputs.is_floating_point() else inputs
        module = self._copy()
        each = vmap(grad(partial(_loss, module, _copied(self.criterion))), in_dims=(None, 0, 0), randomness="different")
        try:
            found = each(self._named(torch.as_tensor(weights)), inputs, torch.as_tensor(targets, device=like.device))
        except RuntimeError as error:
            raise InvalidInput(f"the module cannot be trained record by record: {_first_line(error)}") from error
        self._check_buffers(module)
        return np.concatenate([_as_numpy(found[name]).reshape(len(inputs), -1) for name in self._trained], axis=1)

    def load(self, weights: Any) -> torch.nn.Module:
        """Put the trained parameters into the module, and its buffers back to what they were before training."""
        vector = torch.as_tensor(np.asarray(weights))
        count = sum(one.numel() for one in self._trained.values())
        if vector.shape != (count,):
            raise InvalidInput(
                f"weights must be a vector of {count} numbers. Got shape {tuple(vector.shape)}.", field="weights"
            )
        with torch.no_grad():
            for name, part in self._named(vector).items():
                self._trained[name].copy_(part)
        _put_buffers(self.module, self._buffers)
        return self.module

    def checkpoint_identity(self) -> list[Any]:
        """What tells this network from another: its layers, and every number in it that is not trained."""
        frozen = {name: one for name, one in self.module.named_parameters() if not one.requires_grad}
        return [
            str(self.module),
            [[name, *_layer_identity(part)] for name, part in self.module.named_modules()],
            [[name, str(one.dtype), tuple(one.shape)] for name, one in self._trained.items()],
            [[name, str(one.dtype), _as_numpy(one)] for name, one in {**frozen, **self._buffers}.items()],
            self.criterion,
        ]

    def _named(self, weights: Any) -> dict[str, Any]:
        parts, first = {}, 0
        for name, parameter in self._trained.items():
            part = weights[first : first + parameter.numel()]
            parts[name] = part.to(parameter).view_as(parameter)
            first += parameter.numel()
        return parts

    def _copy(self) -> torch.nn.Module:
        module = _copied(self.module)
        _put_buffers(module, self._buffers)
        return module

    def _check_buffers(self, used: torch.nn.Module) -> None:
        """A module whose buffers move would have to release them to be what was trained."""
        after = dict(used.named_buffers(remove_duplicate=False))
        for name in {**self._buffers, **after}:
            if name not in after or name not in self._buffers or not _same(after[name], self._buffers[name]):
                raise InvalidInput(
                    f"the module must not change its buffers in training: they would be released, too. Got {name}, which "
                    "changed. Call module.eval() before training, or use a layer without such state."
                )


def _loss(module: torch.nn.Module, criterion: Any, parameters: dict[str, Any], features: Any, target: Any) -> Any:
    output = functional_call(module, parameters, (features.unsqueeze(0),))
    return criterion(output, target.unsqueeze(0)).sum()


def _check_layers(module: torch.nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            raise InvalidInput(
                f"the module must treat records one by one. Got {type(part).__name__}, which mixes them; use GroupNorm or "
                "LayerNorm."
            )
        if isinstance(part, torch.nn.modules.batchnorm._NormBase) and part.track_running_stats:
            raise InvalidInput(
                f"the module must not keep statistics of the records. Got {type(part).__name__}; say "
                "track_running_stats=False."
            )


def _check_parameters(trained: dict[str, Any]) -> None:
    if not trained:
        raise InvalidInput("the module must have parameters that require gradients. Got none.")
    for name, one in trained.items():
        if torch.nn.parameter.is_lazy(one):
            raise InvalidInput(
                f"parameters must have a shape. Got {name}, which has none yet: give the layer its sizes.",
                field="parameters",
            )
        if not one.is_floating_point():
            raise InvalidInput(f"parameters must be real numbers. Got {name} of {one.dtype}.", field="parameters")


def _copied(module: Any) -> Any:
    """A copy without memory; functions that are no modules stay what they are."""
    if not isinstance(module, torch.nn.Module):
        return module
    held = [value for part in module.modules() for value in vars(part).values() if isinstance(value, torch.Tensor)]
    computed = {id(value): value.detach().clone() for value in held if value.grad_fn is not None}
    try:
        return copy.deepcopy(module, computed)
    except (TypeError, RuntimeError, copy.Error) as error:
        raise InvalidInput(
            f"module must be one that copy.deepcopy can copy: {_first_line(error)}", field="module"
        ) from error


def _put_buffers(module: torch.nn.Module, values: dict[str, Any]) -> None:
    for name, value in values.items():
        path, _, last = name.rpartition(".")
        owner = module.get_submodule(path)
        now = owner._buffers.get(last)
        owner._buffers[last] = value.clone() if now is None else value.to(now.device, copy=True)


def _same(one: Any, two: Any) -> bool:
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    try:
        return bool(((one == two) | ((one != one) & (two != two))).all())
    except RuntimeError:  # a tensor of a single record that was put in its place
        return False


def _as_numpy(tensor: Any) -> np.ndarray:
    """NumPy has no numbers of 16 bits such as torch.bfloat16: these are widened, which changes none of them."""
    held = tensor.detach().cpu()
    return np.asarray((held.float() if held.dtype in (torch.bfloat16, torch.float16) else held).numpy())


def _layer_identity(part: torch.nn.Module) -> list[Any]:
    kind = type(part)
    plain = {name: one for name, one in vars(part).items() if name[0] != "_" and isinstance(one, _PLAIN)}
    own = None if kind.__module__.partition(".")[0] == "torch" else kind.forward
    return [kind.__module__, kind.__qualname__, plain, own]


def _first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return f"{line[:180].rstrip('.')}."
