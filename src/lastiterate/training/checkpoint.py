"""A training that may be killed at any moment and continued.

What is written is a hidden state: if anybody else read it, the guarantee for the last iterate would be false. So only its
owner may read it, it replaces the one before in one move, and it is removed before the trained model is handed out. Steps
that were lost are walked again with fresh noise; nobody has seen the lost ones, so the law of the last iterate is the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lastiterate.errors import NON_NEGATIVE, InvalidInput, checked_number, must_be, shown
from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Source
from lastiterate.runs.files import run_to_dict
from lastiterate.runs.run import Run
from lastiterate.training.data import Data
from lastiterate.training.fingerprint import array_fingerprint, fingerprint
from lastiterate.writing import sync_folder, write_bytes

try:
    import fcntl
except ImportError:  # not on Windows: nothing there stops a second training
    fcntl = None  # type: ignore[assignment]

_OWNER_ONLY = 0o600


class StateFile(Protocol):
    """Reader and writer of the states of one training."""

    def encode(self, state: Any) -> bytes:
        """Return a state as bytes, in full; nothing if no training can continue from it."""

    def read(self, path: Path) -> Any:
        """Return the state in a file; raise `OfAnother` or `Damaged` if it is none of this training."""


class Keeper:
    """Writer of a training's state, which finds it again and removes it; without a path it does nothing.

    While it is open nobody else can open it: two trainings that go on from one state would be two releases.
    """

    def __init__(self, path: str | Path | None, every: float, file: StateFile) -> None:
        if path is not None and not isinstance(path, str | Path):
            raise must_be("checkpoint", "a file name", f"{shown(path):.60}")
        self.path = None if path is None else Path(path)
        self.every = checked_number("checkpoint_every", every, NON_NEGATIVE)
        self.file = file
        self.written = time.monotonic()
        self._lock: int | None = None

    def __enter__(self) -> Keeper:
        if self.path is not None:
            self._lock = _locked(Path(f"{self.path}.lock"))
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            Path(f"{self.path}.lock").unlink(missing_ok=True)
            os.close(self._lock)

    def due(self) -> bool:
        return self.path is not None and time.monotonic() - self.written >= self.every

    def keep(self, state: Any) -> None:
        """Write the state; the old file stays whole until the new one is."""
        content = b"" if self.path is None else self.file.encode(state)
        if self.path is None or not content:
            return
        try:
            write_bytes(self.path, content, mode=_OWNER_ONLY, draft=self._part)
        except OSError as error:
            raise InvalidInput("checkpoint_not_written", path=str(self.path), error=error.strerror) from error
        self.written = time.monotonic()

    def found(self, start: Any) -> Any:
        """Return the state that was kept, or `start` if there is none."""
        if self.path is None or not self.path.exists():
            return start
        try:
            return self.file.read(self.path)
        except OfAnother as error:
            raise InvalidInput("checkpoint_of_another_run", path=str(self.path)) from error
        except (Damaged, OSError) as error:
            raise InvalidInput("checkpoint_damaged", path=str(self.path)) from error

    def remove(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self._part.unlink(missing_ok=True)
            sync_folder(self.path.parent)

    @property
    def _part(self) -> Path:
        return Path(f"{self.path}.part")


def _locked(path: Path) -> int:
    """Lock a file until the process ends, however it ends; a link in its place is refused, not followed."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), _OWNER_ONLY)
    except OSError as error:
        raise InvalidInput("checkpoint_folder", folder=str(path.parent), error=error.strerror) from error
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = os.fstat(handle).st_ino == path.lstat().st_ino
        except OSError:
            alone = False
        if not alone:
            os.close(handle)
            raise InvalidInput("checkpoint_in_use", path=str(path.with_suffix("")))
    return handle


# The file format: a checksum, a few words of JSON, and the arrays as they lie in memory.
#
# How long the arrays are is known from the training, never from the file: a file cannot ask for memory, nor can a single
# changed bit load another state.


_FORMAT = b"lastiterate checkpoint 2\n"
_DIGEST = 32
_LENGTH = 8  # bytes of the number that says how long the JSON is
_MOST_WORDS = 1 << 16
_FIELDS = {"identity", "step", "randomness"}


class Damaged(ValueError):
    """The file is no checkpoint of such a training."""


class OfAnother(ValueError):
    """The file is a checkpoint of another training."""


@dataclass(frozen=True, eq=False)
class ArraysFile:
    """Files of the states of this training; a state that is not finite is not written."""

    training: Training

    def encode(self, state: State) -> bytes:
        return encode(state, self.training) if state.finite else b""

    def read(self, path: Path) -> State:
        return read(path, self.training)


def encode(state: State, training: Training) -> bytes:
    """Return a state in full as bytes, with a digest."""
    told = {"identity": training.identity, "step": state.step, "randomness": state.randomness}
    words = json.dumps(told).encode()
    floats = [np.ascontiguousarray(one, "<f8").tobytes() for one in state.arrays]
    order = b"" if state.order is None else np.ascontiguousarray(state.order, "<i8").tobytes()
    body = b"".join([len(words).to_bytes(_LENGTH, "big"), words, *floats, order])
    return _FORMAT + hashlib.sha256(body).digest() + body


def read(path: Path, training: Training) -> State:
    """Return the state in a file, which must be one of this very training, whole and unchanged."""
    most = _most_bytes(training)
    if not path.is_file() or path.stat().st_size > most:
        raise Damaged
    with path.open("rb") as file:
        return decode(file.read(most), training)


def decode(content: bytes, training: Training) -> State:
    """The state that `encode` wrote."""
    told, arrays = _opened(content)
    if told["identity"] != training.identity:
        raise OfAnother
    step = told["step"]
    if type(step) is not int or not 0 <= step <= training.run.steps:
        raise Damaged
    state = _state(step, told["randomness"], arrays, training)
    if not training.allows(state):
        raise Damaged
    return state


def _opened(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the words and the arrays of a file whose checksum is right."""
    begin = len(_FORMAT) + _DIGEST
    digest, body = content[len(_FORMAT) : begin], content[begin:]
    if not content.startswith(_FORMAT) or hashlib.sha256(body).digest() != digest:
        raise Damaged
    end = _LENGTH + int.from_bytes(body[:_LENGTH], "big")
    if end > len(body):
        raise Damaged
    try:
        told = json.loads(body[_LENGTH:end])
    except (ValueError, RecursionError) as error:
        raise Damaged from error
    if not isinstance(told, dict) or told.keys() != _FIELDS:
        raise Damaged
    return told, body[end:]


def _state(step: int, randomness: Any, arrays: bytes, training: Training) -> State:
    size, shape = training.start.size, training.start.shape
    kept = 1 + training.remembered
    count = kept + training.releases_until(step)
    records = training.run.batches.records if training.has_order(step) else 0
    if len(arrays) != 8 * (count * size + records):
        raise Damaged
    floats = np.frombuffer(arrays, "<f8", count * size).astype(np.float64).reshape(count, *shape)
    order = np.frombuffer(arrays, "<i8", records, 8 * count * size).astype(np.intp) if records else None
    return State(step, floats[0], tuple(floats[kept:]), order, randomness, tuple(floats[1:kept]))


def _most_bytes(training: Training) -> int:
    numbers = training.start.size * (1 + training.remembered + len(training.releases)) + training.run.batches.records
    return len(_FORMAT) + _DIGEST + _LENGTH + _MOST_WORDS + 8 * numbers


# States, and the training that they belong to.


class Standing(Protocol):
    """The parts of a state that a step uses."""

    @property
    def step(self) -> int: ...

    @property
    def weights(self) -> Any: ...

    @property
    def memory(self) -> tuple[Any, ...]: ...


@dataclass(frozen=True, eq=False)
class State:
    """State of a training after `step` steps: the weights, the iterates to be released, and the random numbers' state.

    `memory`: what the optimiser remembers, and the average that will be released.
    """

    step: int
    weights: Floats
    released: tuple[Floats, ...] = ()
    order: np.ndarray | None = None
    randomness: Any = None
    memory: tuple[Floats, ...] = ()

    @property
    def arrays(self) -> tuple[Floats, ...]:
        """All arrays of the shape of the weights."""
        return self.weights, *self.memory, *self.released

    @property
    def finite(self) -> bool:
        return all(np.isfinite(one).all() for one in self.arrays)


@dataclass(frozen=True, eq=False)
class Training:
    """All that a training was asked for. Two with the same `identity` differ in their noise alone."""

    run: Run
    data: Data
    start: Floats
    releases: tuple[int, ...]
    seed: int | None
    loss: Callable[..., Any] | None = None
    classes: int | None = None
    precision: Any = None

    @cached_property
    def identity(self) -> str:
        told = [
            run_to_dict(self.run),
            list(self.releases),
            fingerprint([self.seed, self.classes]),
            str(np.dtype(self.precision)),
            None if self.loss is None else fingerprint(self.loss),
            *self.data.fingerprints(),
            array_fingerprint(self.start),
        ]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    @property
    def remembered(self) -> int:
        """Number of arrays remembered beside the weights."""
        return self.run.optimizer.slots + self.run.released.slots

    def releases_until(self, step: int) -> int:
        """Number of iterates kept for their release after `step` steps."""
        return sum(place <= step for place in self.releases)

    def has_order(self, step: int) -> bool:
        """Whether an order of the records has been drawn after `step` steps; it is kept until the next is."""
        return self.run.batches.shuffled and step > 0

    def allows(self, state: State) -> bool:
        """Whether a state is one that this training can reach."""
        return (
            0 <= state.step <= self.run.steps
            and len(state.released) == self.releases_until(state.step)
            and len(state.memory) == self.remembered
            and all(one.shape == self.start.shape and one.dtype == np.float64 for one in state.arrays)
            and state.finite
            and self._allows_order(state)
            and self._allows_randomness(state.randomness)
        )

    def _allows_order(self, state: State) -> bool:
        if state.order is None or not self.has_order(state.step):
            return state.order is None and not self.has_order(state.step)
        return state.order.dtype.kind == "i" and self.run.batches.allows_order(state.order)

    def _allows_randomness(self, randomness: Any) -> bool:
        """Whether the random numbers' state fits: none without a seed, and one that a source accepts with one."""
        if self.seed is None or randomness is None:
            return self.seed is None and randomness is None
        source = Source(self.seed)
        try:
            source.go_on(randomness)
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
            return False
        return bool(source.state() == randomness)
