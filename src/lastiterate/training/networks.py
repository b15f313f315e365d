"""PyTorch modules for `li.train`: the gradient of every record, and the parameters as one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import torch
    from torch.func import functional_call, grad, vmap
    from torch.nn.utils import parameters_to_vector, vector_to_parameters
except ImportError as error:
    raise ImportError(
        "lastiterate.training.networks needs PyTorch. Install it with: pip install 'lastiterate[networks]'."
    ) from error

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats


class Network:
    """`li.train(run, data, loss=network.gradients, start=network.start)`, then `network.load(trained.weights)`.

    `criterion` takes the module's output for a batch of one record and its target, as torch.nn.functional.cross_entropy.
    """

    def __init__(self, module: torch.nn.Module, criterion: Callable[[Any, Any], Any]) -> None:
        if not isinstance(module, torch.nn.Module):
            raise InvalidInput(f"module must be a torch.nn.Module. Got {type(module).__name__}.")
        mixing = [
            type(part).__name__ for part in module.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)
        ]
        if mixing:
            raise InvalidInput(
                f"the module must treat records one by one. Got {mixing[0]}, which mixes them; use GroupNorm or LayerNorm."
            )
        self.module = module
        self.criterion = criterion
        self._trained = {name: one for name, one in module.named_parameters() if one.requires_grad}
        if not self._trained:
            raise InvalidInput("the module must have parameters that require gradients. Got none.")
        odd = {one.dtype for one in self._trained.values()} - {torch.float16, torch.float32, torch.float64}
        if odd:
            raise InvalidInput(
                f"the module's parameters must be in float16, float32 or float64. Got {odd.pop()}. Use module.float()."
            )
        self._each = vmap(grad(self._loss), in_dims=(None, 0, 0), randomness="different")

    @property
    def start(self) -> Floats:
        """The parameters as they are now, which must not depend on the data; frozen ones are left out."""
        return np.asarray(parameters_to_vector(self._trained.values()).detach().numpy(), np.float64)

    def gradients(self, weights: Floats, features: Any, targets: Any) -> Floats:
        """One row for each record."""
        inputs = torch.as_tensor(features)
        inputs = inputs.to(self._precision) if inputs.is_floating_point() else inputs
        parameters = self._named(torch.as_tensor(weights, dtype=self._precision))
        found = self._each(parameters, inputs, torch.as_tensor(targets))
        rows = [found[name].reshape(len(inputs), -1) for name in self._trained]
        return np.asarray(torch.cat(rows, dim=1).detach().numpy())

    def load(self, weights: Any) -> torch.nn.Module:
        """Put the trained parameters into the module."""
        vector = torch.as_tensor(np.asarray(weights), dtype=self._precision)
        if vector.shape != (len(self.start),):
            raise InvalidInput(
                f"weights must be a vector of {len(self.start)} numbers. Got shape {tuple(vector.shape)}."
            )
        vector_to_parameters(vector, self._trained.values())
        return self.module

    @property
    def _precision(self) -> Any:
        return next(iter(self._trained.values())).dtype

    def _loss(self, parameters: dict[str, Any], features: Any, target: Any) -> Any:
        output = functional_call(self.module, parameters, (features.unsqueeze(0),))
        return self.criterion(output, target.unsqueeze(0)).sum()

    def _named(self, weights: Any) -> dict[str, Any]:
        parts, first = {}, 0
        for name, parameter in self._trained.items():
            parts[name] = weights[first : first + parameter.numel()].view_as(parameter)
            first += parameter.numel()
        return parts
