"""PyTorch modules for `li.train`: the gradient of every record, and the parameters as one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, grad, vmap
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from lastiterate.errors import InvalidInput
from lastiterate.numerics.arrays import Floats


class Network:
    """`li.train(run, data, loss=network.gradients, start=network.start)`, then `network.load(trained.weights)`.

    `criterion` takes the module's output for a batch of one record and its target, as torch.nn.functional.cross_entropy.
    """

    def __init__(self, module: torch.nn.Module, criterion: Callable[[Any, Any], Any]) -> None:
        mixing = [
            type(part).__name__ for part in module.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)
        ]
        if mixing:
            raise InvalidInput(
                f"the module must treat records one by one. Got {mixing[0]}, which mixes them; use GroupNorm or LayerNorm."
            )
        self.module = module
        self.criterion = criterion
        self._each = vmap(grad(self._loss), in_dims=(None, 0, 0), randomness="different")

    @property
    def start(self) -> Floats:
        """The parameters as they are now, which must not depend on the data."""
        return np.asarray(parameters_to_vector(self.module.parameters()).detach().numpy(), np.float64)

    def gradients(self, weights: Floats, features: Any, targets: Any) -> Floats:
        """One row for each record."""
        precision = next(self.module.parameters()).dtype
        inputs = torch.as_tensor(features)
        inputs = inputs.to(precision) if inputs.is_floating_point() else inputs
        found = self._each(self._named(torch.as_tensor(weights, dtype=precision)), inputs, torch.as_tensor(targets))
        rows = [found[name].reshape(len(inputs), -1) for name, _ in self.module.named_parameters()]
        return np.asarray(torch.cat(rows, dim=1).detach().numpy())

    def load(self, weights: Any) -> torch.nn.Module:
        """Put the trained parameters into the module."""
        like = next(self.module.parameters())
        vector_to_parameters(torch.as_tensor(np.asarray(weights), dtype=like.dtype), self.module.parameters())
        return self.module

    def _loss(self, parameters: dict[str, Any], features: Any, target: Any) -> Any:
        output = functional_call(self.module, parameters, (features.unsqueeze(0),))
        return self.criterion(output, target.unsqueeze(0))

    def _named(self, weights: Any) -> dict[str, Any]:
        parts, first = {}, 0
        for name, parameter in self.module.named_parameters():
            parts[name] = weights[first : first + parameter.numel()].view_as(parameter)
            first += parameter.numel()
        return parts
