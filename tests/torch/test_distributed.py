"""Trainings in 1, 2 and 4 processes: the same numbers, the same law, one error for all, no step lost if one is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import lastiterate as li
from raising import raises

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from lastiterate.torch.distributed import Processes, team_of  # noqa: E402
from lastiterate.torch.sampling import BatchSampler  # noqa: E402
from lastiterate.torch.team import ALONE, Team  # noqa: E402

SCRIPT = Path(__file__).with_name("ranks.py")
RUNS = ("poisson", "momentum", "adam", "projected")
SIZES = (1, 2, 4)
ENDED = {"kind": "Stopped", "code": "process_lost"}
pytestmark = [
    pytest.mark.xdist_group("processes"),
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="processes are forked, and speak over the device lo"
    ),
]


class Found:
    """What each process of each launch has written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.codes: dict[str, list[int]] = json.loads((folder / "codes.json").read_text())

    @cache  # noqa: B019
    def __getitem__(self, launch: str) -> list[Any]:
        """By rank; None of one that was killed."""
        paths = [self.folder / f"{launch}-{rank}.json" for rank in range(len(self.codes[launch]))]
        return [json.loads(path.read_text()) if path.exists() else None for path in paths]


def stopped(who: int, size: int, own: dict[str, Any]) -> dict[str, Any]:
    """What the other processes say of an error of this one."""
    return {"kind": "Stopped", "code": "rank_stopped", "rank": who, "processes": size, "reason": own["text"]}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    folder = tmp_path_factory.mktemp("ranks")
    loopback = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)],
        env=loopback,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return Found(folder)


def test_all_processes_end(found: Found) -> None:
    killed = {"killed": [0, -9], "leader killed": [-9, 0], "private killed": [0, -9]}
    assert {name: codes for name, codes in found.codes.items() if any(codes)} == killed


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("size", SIZES[1:])
def test_a_seed_gives_the_same_numbers_in_any_number_of_processes(found: Found, run: str, size: int) -> None:
    """Models, and buffers, begin as the leader's, though every rank came with its own."""
    (alone,) = found["alike-1"]
    for rank in found[f"alike-{size}"]:
        np.testing.assert_allclose(rank[run][0], alone[run][0], rtol=0, atol=1e-9)
        for one, other in zip(rank[run][1], alone[run][1], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("size", SIZES[1:])
def test_processes_have_their_shares_of_the_same_batches(found: Found, run: str, size: int) -> None:
    (alone,) = found["alike-1"]
    for rank, one in enumerate(found[f"alike-{size}"]):
        assert one[f"{run} batches"] == [batch[rank::size] for batch in alone[f"{run} batches"]]


def test_some_shares_are_empty(found: Found) -> None:
    assert any([] in rank["poisson batches"] for rank in found["alike-4"])


@pytest.mark.parametrize("size", SIZES)
def test_the_order_of_shuffled_records_stays_with_the_leader(found: Found, size: int) -> None:
    assert [one["momentum order"] for one in found[f"alike-{size}"]] == [True] + [False] * (size - 1)


def test_additions_over_processes_are_accounted_for(found: Found) -> None:
    factors = [{rank["poisson factor"] for rank in found[f"alike-{size}"]} for size in SIZES]
    (first,), (second,), (fourth,) = factors
    assert 1 < first < second < fourth
    assert len({rank["report"] for rank in found["alike-4"]}) == 1


@pytest.mark.parametrize("size", SIZES)
def test_the_law_does_not_depend_on_the_number_of_processes(found: Found, size: int) -> None:
    """Steps of half the way to 1, three times, are Gaussian. All chances together give a false alarm below 1e-6."""
    ranks = found[f"law-{size}"]
    noise = 0.5 * 0.02 * 100.0 / 24
    std = noise * (1 + 0.5**2 + 0.5**4) ** 0.5
    assert stats.kstest((np.array(ranks[0]["weights"]) - 0.875) / std, "norm").pvalue > 1e-7
    assert all(rank["weights"] == ranks[0]["weights"] and rank["private"] for rank in ranks)
    drawn = [place for rank in ranks for batch in rank["batches"] for place in batch]
    counts = np.bincount(drawn, minlength=24)
    assert stats.chisquare(np.concatenate([counts, 200 - counts]), np.repeat([40.0, 160.0], 24), 23).pvalue > 1e-7


def test_loaders_with_workers_draw_ahead_in_step(found: Found) -> None:
    first, second = found["workers"]
    assert first == second


def test_a_wrapped_model_is_unwrapped(found: Found) -> None:
    np.testing.assert_allclose(found["workers"][0]["wrapped"], found["alike-1"][0]["poisson"][0], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("run", "run"),
        ("records", "run"),
        ("model", "model"),
        ("seed", "seed"),
        ("budget", "budget"),
        ("releases", "releases"),
        ("loader", "num_workers and at_once"),
    ],
)
def test_a_process_that_trains_something_else_is_refused_by_all(found: Found, what: str, name: str) -> None:
    expected = {"kind": "InvalidInput", "code": "ranks_differ", "name": name, "rank": 1, "processes": 2}
    assert all(expected.items() <= rank[what].items() for rank in found["refused"])


@pytest.mark.parametrize(
    ("what", "who", "values"),
    [
        ("not those of its run", 1, {"code": "dataset_length_differs", "records": 24, "length": 23}),
        ("no model", 1, {"code": "must_be", "field": "model", "got": "NoneType"}),
        ("impossible", 0, {"code": "must_be", "field": "epsilon", "got": "1e-200"}),
    ],
)
def test_whoever_cannot_begin_tells_the_others(found: Found, what: str, who: int, values: dict[str, Any]) -> None:
    ranks = [rank[what] for rank in found["refused"]]
    assert {"kind": "InvalidInput", **values}.items() <= ranks[who].items()
    assert stopped(who, 2, ranks[who]).items() <= ranks[1 - who].items()


def test_a_model_that_is_divided_is_refused(found: Found) -> None:
    for rank in found["refused"]:
        assert {"kind": "InvalidInput", "code": "model_sharded", "field": "model"}.items() <= rank["sharded"].items()


def test_a_loop_of_ones_own_is_for_one_process(found: Found) -> None:
    for rank in found["refused"]:
        assert {"code": "loop_in_several_processes", "processes": 2}.items() <= rank["own loop"].items()


def test_a_refusal_leaves_nothing_behind(found: Found) -> None:
    for rank in found["refused"]:
        np.testing.assert_allclose(rank["after"], found["alike-1"][0]["poisson"][0], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("what", "who", "own", "said", "told"),
    [
        ("not finite", 1, {"kind": "InvalidInput", "code": "records_not_finite"}, "", True),
        ("not readable", 2, {"kind": "OSError"}, "this record cannot be", True),
        ("not readable at first", 2, {"kind": "OSError"}, "this record cannot be", False),
        ("by a worker", 2, {"kind": "OSError"}, "Caught OSError in DataLoader", True),
        ("nowhere", 0, {"kind": "InvalidInput"}, "", False),
    ],
)
def test_an_error_in_one_process_ends_all(
    found: Found, what: str, who: int, own: dict[str, str], said: str, told: bool
) -> None:
    """The others are told what it was, unless they wait for something else."""
    ranks = [rank[what] for rank in found["errors"]]
    assert own.items() <= ranks[who].items()
    assert ranks[who]["text"].startswith(said)
    expected = stopped(who, 4, ranks[who]) if told else ENDED
    assert all(expected.items() <= one.items() for rank, one in enumerate(ranks) if rank != who)


def test_nobody_waits_for_a_process_that_has_failed(found: Found) -> None:
    assert max(rank["seconds"] for rank in found["errors"]) < 29  # the time after which waiting is given up
    assert len({tuple(rank["after"]) for rank in found["errors"]}) == 1


def test_a_training_goes_on_after_a_process_was_killed(found: Found) -> None:
    """4 steps were kept before rank 1 was killed in its fifth, 3 more before the leader was, and 5 are left of 12."""
    for launch, rank in (("killed", 0), ("leader killed", 1)):
        assert ENDED.items() <= found[launch][rank]["said"].items()
        assert found[launch][rank]["mode"] == "0o600"
    (whole, _), resumed = found["whole"], found["resumed"]
    assert [rank["taken"] for rank in resumed] == [5, 5]
    for rank in resumed:
        np.testing.assert_allclose(rank["weights"], whole["weights"], rtol=0, atol=1e-9)
        assert rank["left"] == []


def test_the_order_of_the_records_is_not_told_when_a_training_goes_on(found: Found) -> None:
    assert [rank["orders"] for rank in found["resumed"]] == [[True], [False]]


def test_without_a_seed_the_right_number_of_steps_is_taken(found: Found) -> None:
    assert [rank["taken"] for rank in found["private resumed"]] == [8, 8]
    first, second = found["private resumed"]
    assert first["weights"] == second["weights"]


def test_another_number_of_processes_is_another_run(found: Found) -> None:
    (alone,) = found["by another number"]
    assert "belongs to another run" in alone["said"]["text"]


def test_alone_without_a_group() -> None:
    assert team_of() is ALONE
    with raises("processes_not_initialised", kind=li.errors.InvalidInput):
        Processes()


def test_all_processes_have_as_many_lists_for_each_step() -> None:
    """Otherwise a loader that draws ahead would wait for a batch that the leader has not come to."""

    class Second(Team):
        rank, size = 1, 3

    run = li.Run(li.losses.network(clip=1.0), li.FixedSize(20, 7), 0.1, li.OnGradientSum(multiplier=1.0, clip=1.0), 4)
    sampler = BatchSampler(run, at_once=2, team=Second())
    lists = list(sampler)
    assert [len(one) for one in lists] == [2, 0] * 4
    assert len(sampler) == len(lists)
    assert list(sampler.drawn) == [(7, 2)] * 4
