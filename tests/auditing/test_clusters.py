"""Sweeps go to whoever joblib says, and find what they find alone."""

from __future__ import annotations

import builtins
import os
import sys
import threading
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import lastiterate as li
from lastiterate import progress
from lastiterate.parallel import every_core, in_parallel
from lastiterate.reproduction import reproduce
from lastiterate.reproduction.catalogue import EXHIBITS
from lastiterate.reproduction.exhibit import Setting
from raising import raises

RUNS = 60


def train(data: float, seed: int) -> float:
    """A Gaussian mechanism: all that it knows comes with the call."""
    return data + float(np.random.default_rng(seed).normal())


def audited(**chosen: Any) -> li.auditing.Audit:
    return li.audit(train, 3.0, 0.0, delta=1e-5, runs=RUNS, **chosen)


def same(one: li.auditing.Audit, two: li.auditing.Audit) -> bool:
    return one.to_dict() == two.to_dict() and all(map(np.array_equal, one.scores, two.scores))


def test_an_audit_on_a_dask_cluster_finds_what_it_finds_alone() -> None:
    distributed = pytest.importorskip("distributed")
    alone = audited()
    asked: list[str] = []
    given = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**given) as cluster, distributed.Client(cluster) as client:
        with joblib.parallel_config(backend="dask"):
            spread = audited()
        asked = [key for tasks in client.run_on_scheduler(tasks_done).values() for key in tasks]
    assert same(spread, alone)
    assert asked


def tasks_done(dask_scheduler: Any) -> dict[str, list[str]]:
    return {"done": [str(name) for name in dask_scheduler.task_prefixes]}


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_the_context_says_who_computes(backend: str) -> None:
    """Threads give answers one by one; the old pool of processes, as ray, cannot."""
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert same(audited(), audited(workers=1))
        places = list(in_parallel(where, [(number,) for number in range(30)]))
    assert [number for number, *_ in places] == list(range(30))
    here = (os.getpid(), threading.get_ident())
    assert all(place != here for _, *place in places)


def where(number: int) -> tuple[int, int, int]:
    return number, os.getpid(), threading.get_ident()


def test_without_a_context_calls_follow_each_other_here() -> None:
    here = (os.getpid(), threading.get_ident())
    assert list(in_parallel(where, [(1,), (2,)])) == [(1, *here), (2, *here)]
    assert list(in_parallel(where, [])) == []
    assert every_core() == -1
    with joblib.parallel_config(n_jobs=1):
        assert every_core() is None
    with joblib.parallel_config(n_jobs=3):
        assert every_core() is None


def test_progress_is_said_on_the_way() -> None:
    heard: list[tuple[str, int, int]] = []
    token = progress._listener.set(lambda *said: heard.append(said))
    try:
        with joblib.parallel_config(backend="threading", n_jobs=2):
            audited()
    finally:
        progress._listener.reset(token)
    assert heard[0] == ("runs", 0, 40)
    assert heard[-1] == ("runs", 40, 40)
    assert len(heard) == 41


def test_reproduction_goes_the_same_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With exhibits that take no time: who makes them is what counts."""
    wanted, makers = [one for one in EXHIBITS if not one.uses_all_cores][:6], set()

    def made(key: str, setting: Setting, folder: Path) -> str:
        makers.add(threading.get_ident())
        return key

    monkeypatch.setattr(reproduce, "_made_elsewhere", made)
    monkeypatch.setattr(reproduce, "_read", lambda exhibit, folder, kept: exhibit.key)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        found = list(reproduce._all_made(wanted, Setting(quick=True), tmp_path, None))
    assert sorted(map(str, found)) == sorted(one.key for one in wanted)
    assert threading.get_ident() not in makers


def test_without_joblib_everything_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    found, original = audited(), builtins.__import__

    def no_joblib(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == "joblib":
            raise ImportError(name)
        return original(name, *rest)

    for name in [name for name in sys.modules if name.split(".")[0] == "joblib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", no_joblib)
    assert same(audited(), found)
    assert every_core() is None
    with raises("joblib_missing", kind=li.errors.Unavailable):
        audited(workers=2)
