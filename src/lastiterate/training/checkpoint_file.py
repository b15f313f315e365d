"""The bytes of a checkpoint: a checksum over everything, a few words of JSON, and the arrays as they lie in memory.

How long the arrays are is known from the training, never from the file: a file cannot ask for memory, nor can a single
changed bit load another state.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lastiterate.training.state import State, Training

_FORMAT = b"lastiterate checkpoint 2\n"
_DIGEST = 32
_LENGTH = 8  # bytes of the number that says how long the JSON is
_MOST_WORDS = 1 << 16
_FIELDS = {"identity", "step", "randomness"}


class Damaged(ValueError):
    """What was read is no checkpoint of such a training."""


class OfAnother(ValueError):
    """What was read is a checkpoint of another training."""


@dataclass(frozen=True, eq=False)
class ArraysFile:
    """The states of this training. One that is not finite leads nowhere."""

    training: Training

    def encoded(self, state: State) -> bytes:
        return encoded(state, self.training) if state.finite else b""

    def read(self, path: Path) -> State:
        return read(path, self.training)


def encoded(state: State, training: Training) -> bytes:
    """Everything there is to know of a state."""
    told = {"identity": training.identity, "step": state.step, "randomness": state.randomness}
    words = json.dumps(told).encode()
    floats = [np.ascontiguousarray(one, "<f8").tobytes() for one in state.arrays]
    order = b"" if state.order is None else np.ascontiguousarray(state.order, "<i8").tobytes()
    body = b"".join([len(words).to_bytes(_LENGTH, "big"), words, *floats, order])
    return _FORMAT + hashlib.sha256(body).digest() + body


def read(path: Path, training: Training) -> State:
    """The state in a file, if it is one of this very training, whole and unchanged."""
    most = _most_bytes(training)
    if not path.is_file() or path.stat().st_size > most:
        raise Damaged
    with path.open("rb") as file:
        return decoded(file.read(most), training)


def decoded(content: bytes, training: Training) -> State:
    """The state that `encoded` wrote."""
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
    """The words and the arrays of a file whose checksum is right."""
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
