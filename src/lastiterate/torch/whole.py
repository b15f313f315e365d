"""Is a model whole? Every process needs all of its parameters: records' gradients are clipped over all of them at once."""

from __future__ import annotations

from typing import Any

from lastiterate.errors import InvalidInput

_SHARDED = {"FullyShardedDataParallel", "FSDPModule", "DTensor"}


def check_whole(module: Any) -> None:
    """An error, of one sentence, if its parameters are divided among processes."""
    for part in (*module.modules(), *module.parameters()):
        if any(
            kind.__name__ in _SHARDED and kind.__module__.startswith("torch.distributed") for kind in type(part).__mro__
        ):
            raise InvalidInput("model_sharded", field="model")
