"""A training that is killed goes on: the same law, nothing left behind, nobody else can read what lies on the disk."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lastiterate as li
from lastiterate.training.checkpoint import Keeper
from raising import raises
from training_stops import Killed, stop_after

RECORDS = 40
FEATURES = np.random.default_rng(0).normal(size=(RECORDS, 3)) / 4
LABELS = np.where(FEATURES[:, 0] > 0, 1, -1)
DATA = (FEATURES, LABELS)
BATCHES = (
    li.FullBatch(RECORDS),
    li.Cyclic(RECORDS, 10),
    li.Shuffled(RECORDS, 10),
    li.Shuffled(RECORDS, 10, each_epoch=False),
    li.FixedSize(RECORDS, 10),
    li.Poisson(RECORDS, 0.3),
)


def a_run(batches: object = BATCHES[2], steps: int = 30) -> li.Run:
    return li.Run(li.losses.logistic(feature_norm=1.0), batches, 0.5, li.OnMeanGradient(0.1), steps)  # type: ignore[arg-type]


@pytest.mark.parametrize("batches", BATCHES, ids=repr)
@pytest.mark.parametrize("place", [0, 1, 13, 29])
def test_a_seeded_training_ends_as_if_it_had_not_been_stopped(
    batches: object, place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, file = a_run(batches), tmp_path / "state"
    whole = li.train(run, DATA, seed=1, releases=[5, 20])
    stop_after(monkeypatch, place)
    with pytest.raises(Killed):
        li.train(run, DATA, seed=1, releases=[5, 20], checkpoint=file, checkpoint_every=0)
    again = li.train(run, DATA, seed=1, releases=[5, 20], checkpoint=file, checkpoint_every=0)
    assert (again.weights == whole.weights).all()
    assert [one.tolist() for one in again.released.values()] == [one.tolist() for one in whole.released.values()]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("optimizer", [None, li.SGD(momentum=0.9), li.SGD(momentum=0.9, nesterov=True)], ids=repr)
def test_a_training_that_is_stopped_after_its_last_step_releases_what_it_drew(
    optimizer: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the average of the steps before the last."""
    run, file = replace(a_run(), optimizer=optimizer, released=li.EMA(decay=0.8)), tmp_path / "state"
    whole = li.train(run, DATA, seed=1)
    with monkeypatch.context() as changed:
        changed.setattr(Keeper, "remove", killed)
        with pytest.raises(Killed):
            li.train(run, DATA, seed=1, checkpoint=file, checkpoint_every=0)
    assert (li.train(run, DATA, seed=1, checkpoint=file).weights == whole.weights).all()


def killed(_: object) -> None:
    raise Killed


def test_lost_steps_get_fresh_noise_and_the_law_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a seed: mean and variance of a quadratic's last iterate, as for a training that was never stopped."""
    loss = li.losses.ridge(feature_norm=1.0, residual_bound=100.0)
    run = li.Run(loss, li.FullBatch(1), 0.5, li.OnIterate(0.3), 6)
    last = []
    for count in range(500):
        file = tmp_path / str(count)
        stop_after(monkeypatch, 3)
        with pytest.raises(Killed):
            li.train(run, ([[1.0]], [2.0]), checkpoint=file, checkpoint_every=0)
        last.append(li.train(run, ([[1.0]], [2.0]), checkpoint=file, checkpoint_every=1000).weights[0])
    assert np.mean(last) == pytest.approx(2 * (1 - 0.5**6), abs=4 * np.std(last) / 500**0.5)
    assert np.var(last) == pytest.approx(0.09 * (1 - 0.25**6) / 0.75, rel=0.25)


def test_only_the_owner_may_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state"
    os.umask(0)
    stop_after(monkeypatch, 10)
    with pytest.raises(Killed):
        li.train(a_run(), DATA, checkpoint=file, checkpoint_every=0)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "change", [{"run": a_run(steps=31)}, {"data": (FEATURES + 1e-9, LABELS)}, {"seed": 3}, {"start": [0.0, 0.0, 1.0]}]
)
def test_another_training_is_refused(
    change: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state"
    stop_after(monkeypatch, 10)
    with pytest.raises(Killed):
        li.train(a_run(), DATA, checkpoint=file, checkpoint_every=0)
    with raises("checkpoint_of_another_run", kind=li.errors.InvalidInput):
        li.train(**({"run": a_run(), "data": DATA, "checkpoint": file} | change))  # type: ignore[arg-type]


def test_a_file_that_is_no_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_text("hello")
    with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
        li.train(a_run(), DATA, checkpoint=file)
    file.write_bytes(b"PK\x03\x04 cut off")
    with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
        li.train(a_run(), DATA, checkpoint=file)
    with raises("checkpoint_folder", kind=li.errors.InvalidInput):
        li.train(a_run(), DATA, checkpoint=tmp_path / "no" / "folder")
    with raises("must_be", "checkpoint", kind=li.errors.InvalidInput, allowed="a file name"):
        li.train(a_run(), DATA, checkpoint=3)  # type: ignore[arg-type]


def test_two_trainings_cannot_share_one(tmp_path: Path) -> None:
    """Both would release a model, and nobody would have accounted for the second."""
    file = tmp_path / "state"

    def gradients(weights: np.ndarray, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
        with raises("checkpoint_in_use", kind=li.errors.InvalidInput):
            li.train(a_run(), DATA, checkpoint=file)
        return np.zeros((len(features), 3))

    li.train(a_run(steps=2), DATA, loss=gradients, start=np.zeros(3), checkpoint=file)
    li.train(a_run(), DATA, checkpoint=file)
    assert list(tmp_path.iterdir()) == []


CHILD = """
import sys
import lastiterate as li
sys.path[:0] = [{folder!r}, {tests!r}]
from test_continuing import DATA, a_run
print(li.train(a_run(steps=1500), DATA, seed=1, checkpoint={file!r}, checkpoint_every=0).weights.tolist(), flush=True)
"""


def test_killed_by_the_system_again_and_again(tmp_path: Path) -> None:
    """SIGKILL at whatever moment; each time the training goes on from what lies on the disk, until it is done."""
    file = tmp_path / "state"
    here = Path(__file__).parent
    code = CHILD.format(folder=str(here), tests=str(here.parent), file=str(file))
    killed = 0
    for wait in (0.05, 0.3, None):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        if wait is not None:
            deadline = time.monotonic() + 60
            while not file.exists() and child.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(wait)
            child.send_signal(signal.SIGKILL)
        printed, _ = child.communicate(timeout=120)
        killed += child.returncode == -signal.SIGKILL
    assert killed >= 1
    assert printed.strip() == str(li.train(a_run(steps=1500), DATA, seed=1).weights.tolist())
    assert list(tmp_path.iterdir()) == []
