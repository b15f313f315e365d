"""Audits of a claim: refuted or not, by an exit code; neighbours that are made; trainers that cannot be called."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.auditing import neighbours_of
from lastiterate.cli import main
from raising import raises

DELTA = 1e-5
BODY = "import numpy as np\ndata = np.zeros(9)\ndata[3] = 2.0\n"
TRAIN = "def train(data, seed):\n    return float(data.sum()) + np.random.default_rng(seed).normal()\n"


def mean(data: Any, seed: int) -> float:
    return float(np.sum(data)) + np.random.default_rng(seed).normal()


def test_a_false_claim_is_refuted_and_a_true_one_is_not() -> None:
    false = li.audit(mean, 3.0, 0.0, delta=DELTA, claimed=0.5, runs=400)
    assert false.refuted
    assert false.verdict == "the claim of epsilon = 0.5 at delta = 1e-05 is refuted, with 95% confidence"
    assert str(false).splitlines()[-1] == false.verdict
    assert (false.to_dict()["claimed"], false.to_dict()["refuted"]) == (0.5, True)
    true = li.audit(mean, 3.0, 0.0, delta=DELTA, claimed=li.notions.GaussianDP(3.0).epsilon(DELTA), runs=400)
    assert not true.refuted
    assert "not refuted by these runs; this does not prove the claim" in str(true)
    none = li.audit(mean, 3.0, 0.0, delta=DELTA, runs=400)
    assert not none.refuted
    assert none.verdict == ""
    assert "refuted" not in none.to_dict()
    assert none.epsilon == false.epsilon > 0.5


def test_a_claim_is_refuted_by_counting_alone() -> None:
    """What would follow if the trade-off were Gaussian is no refutation."""
    found = li.audit(mean, 1.0, 0.0, delta=DELTA, claimed=0.0, runs=400)
    between = (found.epsilon + found.epsilon_if_gaussian) / 2
    assert found.epsilon < between < found.epsilon_if_gaussian
    assert not li.audit(mean, 1.0, 0.0, delta=DELTA, claimed=between, runs=400).refuted


def test_true_claims_are_hardly_ever_refuted() -> None:
    exact = li.notions.GaussianDP(1.0).epsilon(0.2)
    judged = [li.audit(mean, 1.0, 0.0, delta=0.2, claimed=exact, runs=60, seed=seed).refuted for seed in range(60)]
    assert sum(judged) <= 6  # of 3 that are expected at most


@pytest.mark.parametrize("claimed", [-1.0, math.nan, math.inf, "1", True])
def test_bad_claims(claimed: Any) -> None:
    with raises("must_be", "claimed", kind=li.errors.InvalidInput, allowed="a float in [0, inf)"):
        li.audit(mean, 1.0, 0.0, delta=DELTA, claimed=claimed, runs=40)


def three(data: Any, seed: int, more: int) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("train", "got"),
    [
        (lambda data: 0.0, "<lambda>(data)"),
        (lambda: 0.0, "<lambda>()"),
        (three, "three(data: 'Any', seed: 'int', more: 'int') -> 'float'"),
        (lambda data, *, seed: 0.0, "<lambda>(data, *, seed)"),
    ],
)
def test_a_wrong_signature_is_one_sentence(train: Any, got: str) -> None:
    with pytest.raises(li.errors.InvalidInput) as caught:
        li.audit(train, 1.0, 0.0, delta=DELTA, runs=40)
    assert str(caught.value).startswith(f"train must take data and a seed: train(data, seed). Got {got}; ")


@pytest.mark.parametrize(
    "train", [partial(three, more=1), lambda *everything: 0.0, lambda data, seed, other=3: 0.0, max]
)
def test_whatever_takes_two_is_taken(train: Any) -> None:
    assert li.audit(train, 1.0, 0.0, delta=DELTA, runs=40).epsilon >= 0


def test_what_a_trainer_itself_raises_is_not_hidden() -> None:
    def train(data: Any, seed: int) -> float:
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        li.audit(train, 1.0, 0.0, delta=DELTA, runs=40)


def test_neighbours_differ_in_one_record_and_the_data_stay_as_they_are() -> None:
    features, targets = np.arange(12.0).reshape(4, 3), np.arange(4)
    data, neighbour = neighbours_of((features, targets))
    assert data[0] is features
    assert np.array_equal(neighbour[0][:3], features[:3])
    assert np.array_equal(neighbour[0][3], -features[3])
    assert np.array_equal(neighbour[1], targets)
    assert np.array_equal(features, np.arange(12.0).reshape(4, 3))
    _, second = neighbours_of((features, targets), record=1)
    assert np.array_equal(second[0][1], -features[1])
    _, fewer = neighbours_of((features, targets), li.ADD_OR_REMOVE_ONE, record=1)
    assert np.array_equal(fewer[0], np.delete(features, 1, axis=0))
    assert np.array_equal(fewer[1], [0, 2, 3])
    _, alone = neighbours_of([1, 2, 7, 3])
    assert alone.tolist() == [1, 2, -7, 3]
    _, unsigned = neighbours_of(np.array([1, 200], np.uint8))
    assert unsigned.tolist() == [1, -200]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((3.0,), "data must be an array of records"),
        ((["a", "b"],), "data must be an array of records"),
        (([],), "data must be arrays with the same number of records, at least one. Got 0."),
        (((np.ones(3), np.ones(4)),), "data must be arrays with the same number of records, at least one. Got 3, 4."),
        ((np.ones(3), "replace"), "adjacency must be one of"),
        ((np.ones(3), li.ZERO_OUT), "does not support li.ZERO_OUT"),
        ((np.ones(3), li.REPLACE_ONE, 3), "record must be from 0 to 2. Got 3."),
        ((np.ones(3), li.REPLACE_ONE, -1), "record must be an integer >= 0"),
        ((np.zeros(3),), "record 0 is 0 and equals its opposite"),
    ],
)
def test_neighbours_that_cannot_be_made(arguments: Any, said: str) -> None:
    with pytest.raises(li.errors.LastIterateError) as caught:
        neighbours_of(*arguments)
    assert said in str(caught.value)


def test_the_exit_code_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trainer.py"
    file.write_text(BODY + TRAIN)
    words = ["audit", str(file), "--make-neighbour", "replace-one", "--runs", "300"]
    assert main([*words, "--claimed", "1"]) == 1
    assert "is refuted, with 95% confidence" in capsys.readouterr().out
    assert main([*words, "--claimed", "1", "--plot", str(file / "x.png")]) == 1
    capsys.readouterr()
    assert main([*words, "--claimed", "30", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["refuted"] is False
    assert main(["audit", str(file), "--runs", "40"]) == 2
    assert "It lacks neighbour. The option --make-neighbour derives" in capsys.readouterr().err
    file.write_text(BODY + "def train(data):\n    return 0.0\n")
    assert main(words) == 2
    assert "train must take data and a seed: train(data, seed). Got train(data);" in capsys.readouterr().err
    assert main(["audit", "run.toml", "--make-neighbour", "replace-one"]) == 2
    assert "--make-neighbour needs a .py file" in capsys.readouterr().err
