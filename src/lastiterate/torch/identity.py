"""What tells a training of a network from another: for the file that it is resumed from."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

from lastiterate.runs.encode import run_to_dict
from lastiterate.runs.run import Run
from lastiterate.torch.checkpoint import NetworkState
from lastiterate.torch.network import Network
from lastiterate.torch.working_copy import module_identity
from lastiterate.training.fingerprint import fingerprint


def training_identity(
    run: Run, places: tuple[int, ...], network: Network, records: int, optimizer: Any, seed: int | None
) -> str:
    """The run, the model and its numbers, the loss, the number of records."""
    module = network.module
    told = [
        run_to_dict(run),
        [list(places), list(network.parameters)],
        [seed, records, optimizer is None or str(optimizer)],
        [[name, str(one.dtype), _digest(one)] for name, one in module.state_dict().items()],
        fingerprint([module_identity(module), network.criterion]),
    ]
    return hashlib.sha256(repr(told).encode()).hexdigest()


def can_be(run: Run, places: tuple[int, ...], size: int, state: NetworkState) -> bool:
    """Whether a training of this run, with so many parameters, can be where the state says."""
    shuffled = run.batches.shuffled and state.step > 0
    return (
        0 <= state.step <= run.steps
        and len(state.released) == sum(place <= state.step for place in places)
        and all(one.shape == (size,) and one.dtype == torch.float64 for one in state.arrays)
        and (run.batches.allows_order(state.order) if shuffled else state.order is None)
    )


def _digest(tensor: Any) -> str:
    held = tensor.detach().cpu().contiguous().view(torch.uint8) if tensor.dim() else tensor.detach().cpu()
    return hashlib.sha256(held.numpy().tobytes()).hexdigest()
