"""Models without the chance of dropout, while two computations of one loss are compared."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_DROPPING = {
    getattr(functional, name)
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
} | {torch.dropout, torch.feature_dropout, torch.alpha_dropout, torch.feature_alpha_dropout}


class WithoutDropout(TorchFunctionMode):  # type: ignore[misc]
    """Whatever would drop something hands out its input, wherever it is called: layers, functions, attention.

    `met`: whether anything was called that may drop something.
    """

    def __init__(self) -> None:
        super().__init__()
        self.met = False

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = dict(kwargs or {})
        if function in _DROPPING:
            self.met = True
            return args[0] if args else named["input"]
        if function is functional.multi_head_attention_forward:
            self.met, named["training"] = True, False
        if function is functional.scaled_dot_product_attention:
            named |= dict(zip(("attn_mask", "dropout_p", "is_causal"), args[3:], strict=False))
            self.met = self.met or bool(named.get("dropout_p"))
            args, named["dropout_p"] = args[:3], 0.0
        return function(*args, **named)
