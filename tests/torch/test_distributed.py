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

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from lastiterate.torch.distributed import Processes, team_of  # noqa: E402
from lastiterate.torch.sampler import BatchSampler  # noqa: E402
from lastiterate.torch.team import ALONE, Team  # noqa: E402

SCRIPT = Path(__file__).with_name("ranks.py")
RUNS = ("poisson", "momentum", "adam", "projected")
SIZES = (1, 2, 4)
ENDED = "Stopped: another process of this training ended or cannot be reached: "
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
    ("what", "sentence"),
    [
        ("run", "same run. Rank 1 of 2 differs from rank 0."),
        ("records", "same run. Rank 1 of 2 differs from rank 0."),
        ("model", "same model. Rank 1 of 2 differs from rank 0."),
        ("seed", "same seed. Rank 1 of 2 differs from rank 0."),
        ("budget", "same budget. Rank 1 of 2 differs from rank 0."),
        ("releases", "same releases. Rank 1 of 2 differs from rank 0."),
        ("loader", "same num_workers and at_once. Rank 1 of 2 differs from rank 0."),
    ],
)
def test_a_process_that_trains_something_else_is_refused_by_all(found: Found, what: str, sentence: str) -> None:
    expected = f"InvalidInput: all processes must train with the {sentence}"
    assert [rank[what] for rank in found["refused"]] == [expected] * 2


@pytest.mark.parametrize(
    ("what", "who", "message"),
    [
        ("not those of its run", 1, "dataset must have as many records as the run, 24. Got 23."),
        ("no model", 1, "model must be a torch.nn.Module. Got NoneType."),
        ("impossible", 0, "epsilon must be from 1e-06 to 1e+09 for a search. Got 1e-200."),
    ],
)
def test_whoever_cannot_begin_tells_the_others(found: Found, what: str, who: int, message: str) -> None:
    ranks = [rank[what] for rank in found["refused"]]
    assert ranks[who] == f"InvalidInput: {message}"
    assert ranks[1 - who] == f"Stopped: rank {who} of 2 stopped: {message}"


def test_a_model_that_is_divided_is_refused(found: Found) -> None:
    for rank in found["refused"]:
        assert rank["sharded"].startswith("InvalidInput: every process must hold the whole model")


def test_a_loop_of_ones_own_is_for_one_process(found: Found) -> None:
    for rank in found["refused"]:
        assert rank["own loop"].startswith("InvalidInput: clip_and_noise must run in one process. Got 2 processes of")


def test_a_refusal_leaves_nothing_behind(found: Found) -> None:
    for rank in found["refused"]:
        np.testing.assert_allclose(rank["after"], found["alike-1"][0]["poisson"][0], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("what", "who", "own", "others"),
    [
        ("not finite", 1, "InvalidInput: records must be finite.", "Stopped: rank 1 of 4 stopped: records must be"),
        ("not readable", 2, "OSError: this record cannot be", "Stopped: rank 2 of 4 stopped: this record cannot be"),
        ("not readable at first", 2, "OSError: this record cannot be", ENDED),
        ("by a worker", 2, "OSError: Caught OSError in", "Stopped: rank 2 of 4 stopped: Caught OSError in DataLoader"),
        ("nowhere", 0, "InvalidInput: ", ENDED),
    ],
)
def test_an_error_in_one_process_ends_all(found: Found, what: str, who: int, own: str, others: str) -> None:
    for rank, one in enumerate(found["errors"]):
        assert one[what].startswith(own if rank == who else others)


def test_nobody_waits_for_a_process_that_has_failed(found: Found) -> None:
    assert max(rank["seconds"] for rank in found["errors"]) < 29  # the time after which waiting is given up
    assert len({tuple(rank["after"]) for rank in found["errors"]}) == 1


def test_a_training_goes_on_after_a_process_was_killed(found: Found) -> None:
    """4 steps were kept before rank 1 was killed in its fifth, 3 more before the leader was, and 5 are left of 12."""
    for launch, rank in (("killed", 0), ("leader killed", 1)):
        assert found[launch][rank]["said"].startswith(ENDED)
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
    assert "belongs to another run" in alone["said"]


def test_alone_without_a_group() -> None:
    assert team_of() is ALONE
    with pytest.raises(li.InvalidInput, match="init_process_group first"):
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
