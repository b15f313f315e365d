"""What lies on the disk: one changed bit, a cut, another file, or another training's, and nothing is loaded."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.numerics.randomness import Source
from lastiterate.training import checkpoint as checkpoint_file
from lastiterate.training.checkpoint import Keeper, State, Training
from lastiterate.training.data import any_data
from lastiterate.training.fingerprint import fingerprint
from raising import raises

RECORDS = 12
FEATURES = np.random.default_rng(0).normal(size=(RECORDS, 2)) / 4
LABELS = np.where(FEATURES[:, 0] > 0, 1, -1)
LEAST_FLIPS = 3540


def gradients(weights: np.ndarray, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return np.zeros((len(features), *weights.shape))


def a_training(batches: Any = None, seed: int | None = 5, **changes: Any) -> Training:
    run = li.Run(
        li.losses.logistic(feature_norm=1.0), batches or li.Shuffled(RECORDS, 4), 0.5, li.OnMeanGradient(0.1), 9
    )
    given = {"run": run, "data": any_data((FEATURES, LABELS), RECORDS), "start": np.zeros(2), "releases": (2, 7)}
    return Training(**{**given, "seed": seed, "precision": np.float64, **changes})


def a_state(training: Training, step: int = 4) -> State:
    source = Source(training.seed)
    order = np.argsort(source.uniform(RECORDS)) if training.has_order(step) else None
    released = tuple(np.full(2, place / 3) for place in training.releases if place <= step)
    return State(step, np.array([0.25, -1.5]), released, order, source.state())


def loaded(content: bytes, training: Training, folder: Path) -> State:
    file = folder / "state"
    file.write_bytes(content)
    return Keeper(file, 30.0, checkpoint_file.ArraysFile(training)).found(State(0, training.start))


def same(one: State, two: State) -> bool:
    return checkpoint_file.encode(one, a_training()) == checkpoint_file.encode(two, a_training())


def with_checksum(body: bytes) -> bytes:
    """As somebody would write it who knows the format: a checksum keeps off accidents only."""
    return b"lastiterate checkpoint 2\n" + hashlib.sha256(body).digest() + body


def rebuilt(state: State, training: Training, **words: Any) -> bytes:
    told = {"identity": training.identity, "step": state.step, "randomness": state.randomness, **words}
    text = json.dumps(told).encode()
    arrays = b"".join(one.tobytes() for one in (state.weights, *state.released))
    order = b"" if state.order is None else state.order.tobytes()
    return with_checksum(len(text).to_bytes(8, "big") + text + arrays + order)


@pytest.mark.parametrize(
    "batches",
    [li.FullBatch(RECORDS), li.Cyclic(RECORDS, 4), li.Shuffled(RECORDS, 4), li.Shuffled(RECORDS, 4, each_epoch=False)],
    ids=repr,
)
@pytest.mark.parametrize("seed", [None, 5])
def test_what_was_written_is_read(batches: Any, seed: int | None, tmp_path: Path) -> None:
    training = a_training(batches, seed)
    for step in (1, 2, 3, 8, 9):
        state = a_state(training, step)
        assert same(loaded(checkpoint_file.encode(state, training), training, tmp_path), state)


def test_no_flipped_bit_loads_another_state_or_raises_anything_else(tmp_path: Path) -> None:
    training, path = a_training(), tmp_path / "state"
    keeper = Keeper(path, 0.0, checkpoint_file.ArraysFile(training))
    keeper.keep(a_state(training))
    content = path.read_bytes()
    assert 8 * len(content) >= LEAST_FLIPS
    with path.open("r+b", buffering=0) as file:
        for place in range(8 * len(content)):
            file.seek(place // 8)
            file.write(bytes([content[place // 8] ^ (1 << (place % 8))]))
            with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
                keeper.found(State(0, training.start))
            file.seek(place // 8)
            file.write(content[place // 8 : place // 8 + 1])
    assert same(keeper.found(State(0, training.start)), a_state(training))


def test_cut_and_lengthened_files_are_refused(tmp_path: Path) -> None:
    training = a_training()
    content = checkpoint_file.encode(a_state(training), training)
    for wrong in [content[:length] for length in range(0, len(content), 7)] + [content + b"\0", b"", content[::-1]]:
        with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
            loaded(wrong, training, tmp_path)


def test_a_file_in_the_place_of_another(tmp_path: Path) -> None:
    one, two = a_training(), a_training(start=np.ones(2))
    for state_of, asked in ((one, two), (two, one)):
        with raises("checkpoint_of_another_run", kind=li.errors.InvalidInput):
            loaded(checkpoint_file.encode(a_state(state_of), state_of), asked, tmp_path)


WRONG_WORDS = (
    {"step": -1}, {"step": 10}, {"step": 10**400}, {"step": 4.0}, {"step": True}, {"step": "4"}, {"step": None},
    {"step": 1}, {"step": 7}, {"randomness": None}, {"randomness": {}}, {"randomness": 3}, {"more": 1},
    {"randomness": {"bit_generator": "MT19937", "state": {}}}, {"identity": None}, {"identity": 7},
)  # fmt: skip


@pytest.mark.parametrize("words", WRONG_WORDS, ids=str)
def test_words_that_the_run_does_not_allow(words: dict[str, Any], tmp_path: Path) -> None:
    training = a_training()
    state = a_state(training)
    assert same(loaded(rebuilt(state, training), training, tmp_path), state)
    with pytest.raises(li.errors.InvalidInput):
        loaded(rebuilt(state, training, **words), training, tmp_path)


def test_a_part_of_the_randomness_cannot_be_changed_beyond_its_range(tmp_path: Path) -> None:
    training = a_training()
    state = a_state(training)
    for name, value in (("state", 2**128), ("state", -1), ("inc", 2**200), ("state", "1"), ("state", 1.5)):
        inner = {**state.randomness["state"], name: value}
        with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
            loaded(rebuilt(state, training, randomness={**state.randomness, "state": inner}), training, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"order": np.arange(RECORDS) % 11},
        {"order": np.arange(RECORDS) + 1},
        {"order": np.full(RECORDS, 2**62)},
        {"order": None},
        {"weights": np.array([np.nan, 0.0])},
        {"weights": np.array([np.inf, 0.0])},
        {"weights": np.zeros(3)},
        {"released": ()},
        {"released": (np.zeros(2), np.zeros(2))},
        {"released": (np.array([0.0, -np.inf]),)},
    ],
    ids=str,
)
def test_arrays_that_the_run_does_not_allow(change: dict[str, Any], tmp_path: Path) -> None:
    training = a_training()
    with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
        loaded(rebuilt(replace(a_state(training), **change), training), training, tmp_path)


def test_an_order_belongs_to_shuffled_batches_only() -> None:
    training, shuffled = a_training(li.Cyclic(RECORDS, 4)), a_training()
    state = a_state(training)
    assert training.allows(state)
    assert not training.allows(replace(state, order=np.arange(RECORDS)))
    assert not shuffled.allows(state)
    assert not shuffled.allows(replace(a_state(shuffled), order=np.arange(RECORDS) * 1.0))


def test_randomness_belongs_to_a_seed_only() -> None:
    without = a_training(seed=None)
    assert without.allows(a_state(without))
    assert not without.allows(replace(a_state(without), randomness=a_state(a_training()).randomness))


def test_a_small_file_cannot_ask_for_memory(tmp_path: Path) -> None:
    training = a_training()
    words = b'{"identity": "", "step": 4, "randomness": null}'
    for claimed in (2**40, 2**63, 2**64 - 1):
        with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
            loaded(with_checksum(claimed.to_bytes(8, "big") + words), training, tmp_path)
    with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
        loaded(with_checksum((200_000).to_bytes(8, "big") + b"[" * 200_000), training, tmp_path)
    with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
        loaded(with_checksum((60_000).to_bytes(8, "big") + b"[" * 60_000), training, tmp_path)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)  # takes no room on the disk
    with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
        Keeper(tmp_path / "large", 30.0, checkpoint_file.ArraysFile(training)).found(State(0, training.start))
    with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
        Keeper(tmp_path, 30.0, checkpoint_file.ArraysFile(training)).found(State(0, training.start))


def test_a_state_that_is_not_finite_is_not_kept(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "state", 0.0, checkpoint_file.ArraysFile(a_training()))
    keeper.keep(replace(a_state(a_training()), weights=np.array([np.nan, 0.0])))
    assert not (tmp_path / "state").exists()


def made(clip: Any) -> Any:
    def inner(weights: Any, features: Any, targets: Any) -> Any:
        return np.minimum(features, clip)

    return inner


@dataclass
class Cut:
    clip: float

    def __call__(self, weights: Any, features: Any, targets: Any) -> Any:
        return np.minimum(features, self.clip)

    def other(self, weights: Any, features: Any, targets: Any) -> Any:
        return features


def targets_of(y: Any) -> Any:
    return y


LOSSES = {
    "plain": gradients,
    "lambda 0": lambda w, x, y: 0.0 * x,
    "lambda 1": lambda w, x, y: 1.0 * x,
    "lambda of sets": lambda w, x, y: x if targets_of(y) in {"a", "b", "c"} else y,
    "closure 1": made(1.0),
    "closure 2": made(2.0),
    "closure array": made(np.ones(2)),
    "closure array 2": made(np.array([1.0, 2.0])),
    "object 1": Cut(1.0),
    "object 2": Cut(2.0),
    "method 1": Cut(1.0).other,
    "method 2": Cut(2.0).other,
    "partial 1": functools.partial(made(1.0), 0.0),
    "partial 2": functools.partial(made(1.0), 1.0),
    "global": lambda w, x, y: x * RECORDS,
    "global 2": lambda w, x, y: x * LEAST_FLIPS,
    "global function": lambda w, x, y: gradients(w, x, y),
}


def test_the_loss_is_part_of_the_identity() -> None:
    found = {name: a_training(loss=one).identity for name, one in LOSSES.items()}
    assert len(set(found.values())) == len(LOSSES)
    assert a_training().identity not in found.values()
    assert {name: a_training(loss=one).identity for name, one in LOSSES.items()} == found
    assert fingerprint(made(2.0)) == fingerprint(LOSSES["closure 2"])


def test_the_identity_is_the_same_in_another_process() -> None:
    """Sets come in another order there, and everything lies elsewhere in memory."""
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    code = f"import sys; sys.path[:0] = {folders!r}; import test_checkpoint_file as t; "
    code += "print(*(t.a_training(loss=one).identity for one in t.LOSSES.values()))"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    child = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert child.stdout.split() == [a_training(loss=one).identity for one in LOSSES.values()]


def test_a_loss_that_refers_to_itself_has_a_fingerprint() -> None:
    def loss(weights: Any, features: Any, targets: Any) -> Any:
        return loss(weights, features, targets) if weights is None else calls

    calls: list[Any] = [loss]
    calls.append(calls)
    assert len(fingerprint(loss)) == 64


def test_what_else_is_part_of_it() -> None:
    changes: list[dict[str, Any]] = [
        {"classes": 3}, {"precision": np.float32}, {"releases": (2,)}, {"seed": 6}, {"seed": None},
        {"data": any_data((FEATURES.astype(np.float32), LABELS), RECORDS)},
        {"data": any_data((FEATURES, LABELS.astype(np.int8)), RECORDS)},
        {"data": any_data((FEATURES.reshape(RECORDS, 2, 1), LABELS), RECORDS)},
    ]  # fmt: skip
    found = {a_training(**change).identity for change in changes}
    assert len(found | {a_training().identity}) == len(changes) + 1


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[ms]", "U3", "S4", "f2", "c16", "?", "U0"])
def test_data_of_any_kind_of_fixed_length(dtype: str, tmp_path: Path) -> None:
    features = np.arange(2 * RECORDS).reshape(RECORDS, 2).astype(dtype)
    run = replace(a_training().run, steps=3)
    li.train(run, (features, LABELS), loss=gradients, start=np.zeros(2), checkpoint=tmp_path / "s", checkpoint_every=0)
    other = features.copy()
    other[0] = other[-1]
    one, two = (a_training(data=any_data((given, LABELS), RECORDS)).identity for given in (features, other))
    assert (one != two) == bool((features[0] != features[-1]).any())


def test_strings_of_no_fixed_length_are_refused(tmp_path: Path) -> None:
    features = np.array(["a", "b"] * 6, np.dtypes.StringDType())
    with raises("checkpoint_of_objects", kind=li.errors.InvalidInput):
        li.train(a_training().run, (features, LABELS), loss=gradients, start=np.zeros(2), checkpoint=tmp_path / "s",
                 checkpoint_every=0)  # fmt: skip


def test_a_training_with_another_loss_is_refused(tmp_path: Path) -> None:
    def stopping(weights: np.ndarray, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
        if weights.any():
            raise KeyboardInterrupt
        return np.zeros((len(features), *weights.shape))

    run, file = a_training().run, tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        li.train(run, (FEATURES, LABELS), loss=stopping, start=np.zeros(2), checkpoint=file, checkpoint_every=0)
    with raises("checkpoint_of_another_run", kind=li.errors.InvalidInput):
        li.train(run, (FEATURES, LABELS), loss=gradients, start=np.zeros(2), checkpoint=file)
    with pytest.raises(KeyboardInterrupt):
        li.train(run, (FEATURES, LABELS), loss=stopping, start=np.zeros(2), checkpoint=file)
