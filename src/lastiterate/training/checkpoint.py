"""A training that may be killed at any moment and continued.

What is written is a hidden state: if anybody else read it, the guarantee for the last iterate would be false. So only its
owner may read it, it replaces the one before in one move, and it is removed before the trained model is handed out. Steps
that were lost are walked again with fresh noise; nobody has seen the lost ones, so the law of the last iterate is the same.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

try:
    import fcntl
except ImportError:  # not on Windows: nothing there stops a second training
    fcntl = None  # type: ignore[assignment]

import numpy as np

from lastiterate.algorithms.encode import run_to_dict
from lastiterate.algorithms.run import Run
from lastiterate.errors import NON_NEGATIVE, InvalidInput, checked_number
from lastiterate.numerics.arrays import Floats
from lastiterate.training.data import Data

_OWNER_ONLY = 0o600


@dataclass(frozen=True, eq=False)
class State:
    """Where a training stands: after `step` steps, with the iterates that will be released, and what random numbers need."""

    step: int
    weights: Floats
    released: tuple[Floats, ...] = ()
    order: np.ndarray | None = None
    randomness: Any = None


class Keeper:
    """Writes the state from time to time, finds it again, and removes it. Without a path it does nothing.

    While it is open nobody else can open it: two trainings that go on from one state would be two releases.
    """

    def __init__(self, path: str | Path | None, every: float, identity: str) -> None:
        if path is not None and not isinstance(path, str | Path):
            raise InvalidInput(f"checkpoint must be the name of a file. Got {path!r:.60}.")
        self.path = None if path is None else Path(path)
        self.every = checked_number("checkpoint_every", every, NON_NEGATIVE)
        self.identity = identity
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

    def keep(self, state: State) -> None:
        """The old file stays whole until the new one is."""
        if self.path is None:
            return
        try:
            _write(self._part, _encoded(state, self.identity))
            os.replace(self._part, self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise InvalidInput(f"the checkpoint {self.path} cannot be written: {error.strerror}.") from error
        self.written = time.monotonic()

    def found(self, start: State) -> State:
        """The state that was kept; `start` where there is none."""
        if self.path is None or not self.path.exists():
            return start
        state, identity = _decoded(self.path)
        if identity != self.identity:
            raise InvalidInput(
                f"the checkpoint {self.path} is of another run, other data or another start. Train with those, or remove it."
            )
        return state

    def remove(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self._part.unlink(missing_ok=True)
            _sync_folder(self.path.parent)

    @property
    def _part(self) -> Path:
        return Path(f"{self.path}.part")


def identity_of(run: Run, data: Data, start: Floats, releases: tuple[int, ...], seed: int | None) -> str:
    """Equal for the same training only."""
    told = [run_to_dict(run), list(releases), seed, [str(data.records.features.dtype), data.records.features.shape]]
    digest = hashlib.sha256(json.dumps(told).encode())
    for array in (data.records.features, data.records.targets, start):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)  # dates have no buffer of their own
    return digest.hexdigest()


def _encoded(state: State, identity: str) -> bytes:
    arrays = {"weights": state.weights} | {f"released{place}": one for place, one in enumerate(state.released)}
    if state.order is not None:
        arrays["order"] = state.order
    told = {"step": state.step, "identity": identity, "randomness": state.randomness, "released": len(state.released)}
    buffer = io.BytesIO()
    np.savez(buffer, told=np.array(json.dumps(told)), **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _decoded(path: Path) -> tuple[State, str]:
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            told = json.loads(str(file["told"]))
            state = State(
                told["step"], file["weights"], tuple(file[f"released{place}"] for place in range(told["released"]))
            )
            order = file.get("order")
    except (OSError, ValueError, KeyError, TypeError, EOFError, AttributeError, BadZipFile) as error:
        raise InvalidInput(f"{path} is not a checkpoint of a training. Remove it, or name another file.") from error
    return replace(state, order=order, randomness=told["randomness"]), told["identity"]


def _locked(path: Path) -> int:
    """The system lets go of it when the process ends, however it ends."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, _OWNER_ONLY)
    except OSError as error:
        raise InvalidInput(f"{path.parent} is no place for a checkpoint: {error.strerror}.") from error
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = path.exists() and os.fstat(handle).st_ino == path.stat().st_ino
        except OSError:
            alone = False
        if not alone:
            os.close(handle)
            raise InvalidInput(
                f"another training uses the checkpoint {path.with_suffix('')}. Give each one of its own."
            )
    return handle


def _write(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)  # whoever opened an older one keeps reading that
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """So that the new name survives a loss of power; not every system lets folders be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
