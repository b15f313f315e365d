"""The file from which a training of a network goes on: hidden iterates, as in `lastiterate.training.checkpoint`.

A checksum over everything, then what `torch.save` writes: tensors, numbers and strings, and no code is run to read it.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lastiterate.training.checkpoint_file import Damaged, OfAnother

_FORMAT = b"lastiterate network checkpoint 1\n"
_DIGEST = 32
_FIELDS = {"identity", "step", "weights", "released", "order", "randomness", "memory", "optimizer", "scheduler"}


@dataclass(frozen=True, eq=False)
class NetworkState:
    """Where a training stands: after `step` steps, with what will be released and what random numbers need.

    `memory`: what the run's own optimiser remembers, and averages; `optimizer`, `scheduler`: the states of torch.optim's.
    """

    step: int
    weights: Any
    released: tuple[Any, ...] = ()
    order: Any = None
    randomness: Any = None
    memory: tuple[Any, ...] = ()
    optimizer: dict[str, Any] = field(default_factory=dict)
    scheduler: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class NetworkFile:
    """States of the training with this identity."""

    identity: str
    device: Any

    def encoded(self, state: NetworkState) -> bytes:
        if not all(bool(one.isfinite().all()) for one in (state.weights, *state.memory)):
            return b""
        told = {name: getattr(state, name) for name in _FIELDS - {"identity"}} | {"identity": self.identity}
        told["order"] = None if state.order is None else torch.from_numpy(np.ascontiguousarray(state.order, "<i8"))
        file = io.BytesIO()
        torch.save(told, file)
        return _FORMAT + hashlib.sha256(file.getvalue()).digest() + file.getvalue()

    def read(self, path: Path) -> NetworkState:
        return self.decoded(path.read_bytes() if path.is_file() else b"")

    def decoded(self, content: bytes) -> NetworkState:
        begin = len(_FORMAT) + _DIGEST
        body = content[begin:]
        if not content.startswith(_FORMAT) or hashlib.sha256(body).digest() != content[len(_FORMAT) : begin]:
            raise Damaged
        try:
            told = torch.load(io.BytesIO(body), map_location=self.device, weights_only=True)
        except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
            raise Damaged from error
        if not isinstance(told, dict) or told.keys() != _FIELDS:
            raise Damaged
        if told.pop("identity") != self.identity:
            raise OfAnother
        order = told["order"]
        told["order"] = None if order is None else order.cpu().numpy().astype(np.intp)
        return NetworkState(**told)
