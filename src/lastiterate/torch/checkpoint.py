"""The file from which a training of a network goes on: hidden iterates, as in `lastiterate.training.checkpoint`.

A checksum over everything, then what `torch.save` writes: tensors, numbers and strings, and no code is run to read it.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import hmac
import io
import pickle
import random
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import TensorDataset

from lastiterate.errors import checked_count, must_be, shown
from lastiterate.facts import Fact, fact
from lastiterate.runs.files import run_to_dict
from lastiterate.runs.run import Run
from lastiterate.torch.network import Network
from lastiterate.torch.working_copy import module_identity
from lastiterate.training.checkpoint import Damaged, OfAnother
from lastiterate.training.fingerprint import array_fingerprint, fingerprint

_FORMAT = b"lastiterate network checkpoint 1\n"
_DIGEST = 32
_KEY = re.compile("[0-9a-f]{64}")
_UNREADABLE = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, OverflowError)


@dataclass(frozen=True, eq=False)
class NetworkState:
    """State of a training after `step` steps: the weights, what will be released, and the random numbers' state.

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
        """All arrays of the shape of the weights."""
        return self.weights, *self.memory, *self.released


_OF_STATE = [one.name for one in fields(NetworkState)]
_FIELDS = {"identity", "key", "data", *_OF_STATE}


@dataclass(frozen=True, eq=False)
class NetworkFile:
    """Files of the states of a training with this identity, if it `allows` them; `data` identifies its records."""

    identity: str
    device: Any
    allows: Callable[[NetworkState], bool] = lambda _: True
    data: Callable[[str], str] = lambda _: ""

    @cached_property
    def _keyed(self) -> dict[str, str]:
        key = secrets.token_hex(32)
        return {"key": key, "data": self.data(key)}

    def encode(self, state: NetworkState) -> bytes:
        if not all(bool(one.isfinite().all()) for one in (state.weights, *state.memory)):
            return b""
        told = {name: getattr(state, name) for name in _OF_STATE} | {"identity": self.identity} | self._keyed
        told["order"] = None if state.order is None else torch.from_numpy(np.ascontiguousarray(state.order, "<i8"))
        file = io.BytesIO()
        torch.save(told, file)
        return _FORMAT + hashlib.sha256(file.getvalue()).digest() + file.getvalue()

    def read(self, path: Path) -> NetworkState:
        return self.decode(path.read_bytes() if path.is_file() else b"")

    def decode(self, content: bytes) -> NetworkState:
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
    """Restore the weights and states if a training fails, so that no hidden iterate is left in the model."""
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


# Identity of a training, for the file that it is resumed from.


def training_identity(
    run: Run, places: tuple[int, ...], network: Network, records: int, optimizer: Any, seed: int | None
) -> str:
    """Return an identity made of the run, the model and its numbers, the loss and the number of records."""
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
    """Whether a state is one that a training of this run with `size` parameters can reach."""
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


# Identity of the records, for the file that a training is resumed from, and for nobody else.
#
# By a key that lies in the same secret file: without the file nothing can be compared with it.


_RECORDS = 64  # are compared where reading all would take as long as an epoch


def data_identity(dataset: Any, key: str) -> str:
    """Return an identity of the data: all tensors of a TensorDataset, or some records chosen by the key.

    A data set may say itself what tells it from others, by a method `checkpoint_identity`.
    """
    told: Any
    if callable(describe := getattr(dataset, "checkpoint_identity", None)):
        told = fingerprint(describe())
    elif isinstance(dataset, TensorDataset):
        told = [_tensor_identity(one) for one in dataset.tensors]
    else:
        places = random.Random(key).sample(range(len(dataset)), min(len(dataset), _RECORDS))
        with torch.random.fork_rng(devices=[]):
            told = [_record_identity(dataset, place) for place in places]
    return hmac.new(bytes.fromhex(key), repr(told).encode(), "sha256").hexdigest()


def _tensor_identity(tensor: Any) -> list[Any]:
    held = tensor.detach().cpu().contiguous()
    whole = held.view(torch.uint8) if held.dim() else held.reshape(1).view(torch.uint8)
    return [str(tensor.dtype), list(tensor.shape), array_fingerprint(whole.numpy())]


def _record_identity(dataset: Any, place: int) -> str | None:
    """Return a fingerprint of a record, or None if it differs from one reading to the next."""
    first, again = fingerprint(dataset[place]), fingerprint(dataset[place])
    return first if first == again else None


# Releases during a training: charged checkpoints, files kept inside, and leaks.


_PARTS = ("charged", "inside", "uncharged")


@dataclass(frozen=True)
class ReleaseEntry:
    """A release: after `step` steps, `what` was written, shown or logged."""

    step: int
    what: str


class Releases:
    """The record of everything released. `charged`: parameters, or values computed from them and public data; accounted for.

    `inside`: seen only by the owners of the data, such as a file to resume from. `uncharged`: computed from the records
    without noise, such as the loss of a batch; no theorem covers it. `written` is called after each entry.
    """

    def __init__(self) -> None:
        self.charged: list[ReleaseEntry] = []
        self.inside: list[ReleaseEntry] = []
        self.uncharged: list[ReleaseEntry] = []
        self.written: Callable[[], None] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Releases) and self.entries() == other.entries()

    __hash__ = None  # type: ignore[assignment]

    def entries(self) -> tuple[tuple[str, int, str], ...]:
        """Return the releases as a file can hold them."""
        return tuple((name, one.step, one.what) for name in _PARTS for one in getattr(self, name))

    def read(self, told: Iterable[tuple[str, int, str]]) -> None:
        """Add the entries of a record that was saved."""
        parts = {name: getattr(self, name) for name in _PARTS}
        for name, step, what in told:
            parts[name].append(_release(step, what))

    def _write(self, name: str, step: int, what: str) -> None:
        getattr(self, name).append(_release(step, what))
        if self.written is not None:
            self.written()

    def charge(self, step: int, what: str) -> None:
        """Record the release of the parameters after `step` steps, or of values computed from them and public data."""
        self._write("charged", step, what)

    def keep_inside(self, step: int, what: str) -> None:
        """Record something that only the owners of the data see."""
        self._write("inside", step, what)

    def leak(self, step: int, what: str) -> None:
        """Record the release of something computed from the records without noise: a leak."""
        self._write("uncharged", step, what)

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of steps after which parameters were released."""
        return tuple(sorted({one.step for one in self.charged if one.step > 0}))

    def show_iterates_of(self, run: Run) -> bool:
        """Whether an iterate was released beside an average of them: only bounds on every iterate cover both."""
        return bool(self.charged) and not run.released.plain

    @property
    def caveats(self) -> tuple[Fact, ...]:
        """Leaks that void the guarantee."""
        return (fact("leaked", what=_by_name(self.uncharged)),) if self.uncharged else ()

    @property
    def kept(self) -> tuple[Fact, ...]:
        """The assumption that entries in `inside` stay secret."""
        return (fact("kept_inside", what=_by_name(self.inside)),) if self.inside else ()


def _release(step: int, what: str) -> ReleaseEntry:
    if not isinstance(what, str) or not what.strip():
        raise must_be("what", "a text that names the release", f"{shown(what):.60}")
    return ReleaseEntry(checked_count("step", step, least=0), what)


def _by_name(entries: list[ReleaseEntry]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Group the entries by what was written, shown or logged, each with its steps."""
    steps: dict[str, list[int]] = {}
    for one in entries:
        steps.setdefault(one.what, []).append(one.step)
    return tuple((what, tuple(found)) for what, found in steps.items())
