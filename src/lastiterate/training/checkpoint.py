"""A training that may be killed at any moment and continued.

What is written is a hidden state: if anybody else read it, the guarantee for the last iterate would be false. So only its
owner may read it, it replaces the one before in one move, and it is removed before the trained model is handed out. Steps
that were lost are walked again with fresh noise; nobody has seen the lost ones, so the law of the last iterate is the same.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Protocol

try:
    import fcntl
except ImportError:  # not on Windows: nothing there stops a second training
    fcntl = None  # type: ignore[assignment]

from lastiterate.errors import NON_NEGATIVE, InvalidInput, checked_number, must_be, shown
from lastiterate.training.checkpoint_file import Damaged, OfAnother
from lastiterate.writing import sync_folder, write_bytes

_OWNER_ONLY = 0o600


class StateFile(Protocol):
    """How the states of one training are written and read."""

    def encoded(self, state: Any) -> bytes:
        """Everything there is to know of a state; nothing where it leads nowhere."""

    def read(self, path: Path) -> Any:
        """The state in a file: `OfAnother` or `Damaged` where it is none of this training."""


class Keeper:
    """Writes the state from time to time, finds it again, and removes it. Without a path it does nothing.

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
        """The old file stays whole until the new one is."""
        content = b"" if self.path is None else self.file.encoded(state)
        if self.path is None or not content:
            return
        try:
            write_bytes(self.path, content, mode=_OWNER_ONLY, draft=self._part)
        except OSError as error:
            raise InvalidInput("checkpoint_not_written", path=str(self.path), error=error.strerror) from error
        self.written = time.monotonic()

    def found(self, start: Any) -> Any:
        """The state that was kept; `start` where there is none."""
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
    """The system lets go of it when the process ends, however it ends. A link in its place is refused, not followed."""
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
