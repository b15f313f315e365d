"""Can PyTorch's random numbers be repeated? Whoever knows the seed knows them all."""

from __future__ import annotations

from typing import Any

import torch

_TYPED_BY_HAND = 2**32  # below are one in four billion of the seeds that PyTorch takes from the operating system
_OF_A_NEW_GENERATOR = torch.Generator().initial_seed()  # the same for all of them
ORDER_SEEDED = (
    "DO NOT RELEASE: batches came from a seeded PyTorch generator, and anyone who knows the seed knows the records of each "
    "step; call torch.seed() before training, or use a loader without generator="
)


def seeded(generator: Any, device: Any = None) -> bool:
    """Whether it has a seed that somebody typed, or that all new generators have. None is PyTorch's own."""
    if generator is None and device is not None and device.type == "cuda":
        seed = torch.cuda.initial_seed()
    else:
        seed = torch.initial_seed() if generator is None else generator.initial_seed()
    return bool(seed < _TYPED_BY_HAND or seed == _OF_A_NEW_GENERATOR)
