"""The file from which a training of a network goes on: hidden iterates, as in `lastiterate.training.checkpoint`.

A checksum over everything, then what `torch.save` writes: tensors, numbers and strings, and no code is run to read it.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import pickle
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lastiterate.torch.network import Network
from lastiterate.training.checkpoint_file import Damaged, OfAnother

_FORMAT = b"lastiterate network checkpoint 1\n"
_DIGEST = 32
_KEY = re.compile("[0-9a-f]{64}")
_UNREADABLE = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, OverflowError)


@dataclass(frozen=True, eq=False)
class NetworkState:
    """Where a training stands: after `step` steps, with what will be released and what random numbers need.

    `memory`: what the run's own optimiser remembers, and averages; `optimizer`, `scheduler`: the states of torch.optim's;
    `book`: what was released on the way, in a loop of the user's own.
    """

    step: int
    weights: Any
    released: tuple[Any, ...] = ()
    order: Any = None
    randomness: Any = None
    memory: tuple[Any, ...] = ()
    optimizer: dict[str, Any] = field(default_factory=dict)
    scheduler: dict[str, Any] = field(default_factory=dict)
    book: tuple[tuple[str, int, str], ...] = ()

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All that are like the weights."""
        return self.weights, *self.memory, *self.released


_OF_STATE = [one.name for one in fields(NetworkState)]
_FIELDS = {"identity", "key", "data", *_OF_STATE}


@dataclass(frozen=True, eq=False)
class NetworkFile:
    """States of the training with this identity, as far as it `allows` them; `data` tells its records apart, by a key."""

    identity: str
    device: Any
    allows: Callable[[NetworkState], bool] = lambda _: True
    data: Callable[[str], str] = lambda _: ""

    @cached_property
    def _keyed(self) -> dict[str, str]:
        key = secrets.token_hex(32)
        return {"key": key, "data": self.data(key)}

    def encoded(self, state: NetworkState) -> bytes:
        if not all(bool(one.isfinite().all()) for one in (state.weights, *state.memory)):
            return b""
        told = {name: getattr(state, name) for name in _OF_STATE} | {"identity": self.identity} | self._keyed
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
        except (*_UNREADABLE, EOFError, pickle.UnpicklingError) as error:
            raise Damaged from error
        if not isinstance(told, dict) or told.keys() != _FIELDS:
            raise Damaged
        if told.pop("identity") != self.identity or not self._has_its_records(told.pop("key"), told.pop("data")):
            raise OfAnother
        return self._allowed(told)

    def _has_its_records(self, key: Any, data: Any) -> bool:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise Damaged
        return bool(self.data(key) == data)

    def _allowed(self, told: dict[str, Any]) -> NetworkState:
        try:
            order = told["order"]
            told["order"] = None if order is None else order.cpu().numpy().astype(np.intp)
            state = NetworkState(**told)
            allowed = type(state.step) is int and self.allows(state)
        except _UNREADABLE as error:
            raise Damaged from error
        if not allowed:
            raise Damaged
        return state


@contextlib.contextmanager
def restored_on_failure(network: Network, *with_states: Any) -> Iterator[None]:
    """Whoever begins again after a training that failed begins where that one did, and not with a hidden iterate."""
    parameters = {name: one.detach().clone() for name, one in network.parameters.items()}
    states = [(one, copy.deepcopy(one.state_dict())) for one in with_states if one is not None]
    try:
        yield
    except BaseException:
        with torch.no_grad():
            for name, one in parameters.items():
                network.parameters[name].copy_(one)
        for one, state in states:
            one.load_state_dict(state)
        raise
