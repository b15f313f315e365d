"""The benchmark of accuracies: its data, Opacus' algorithm in numpy, its settings, its sentence, a run in small."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from benchmarks.accuracy import dp_sgd, groups, held_out, run, verdict
from benchmarks.accuracy.dp_sgd import Setting
from benchmarks.accuracy.rows import ADJACENCIES, EPSILONS, REPLACED, ZEROED, Row
from benchmarks.accuracy.tune import climbed, found, setting_of

import lastiterate as li

SMALL_DATA = [name for name in groups.NAMES if name not in ("adult", "mnist", "quadratic", "topics")]


@pytest.mark.parametrize("name", SMALL_DATA)
def test_rows_are_as_short_as_is_said(name: str) -> None:
    data = groups.load(name)
    for features in (data.train_features, data.test_features):
        assert np.linalg.norm(features, axis=1).max() <= data.feature_norm
    if data.classes:
        assert set(np.unique(data.train_labels)) == set(range(data.classes))
    else:
        assert np.abs(data.train_labels).max() <= data.target_bound


def test_ten_data_sets_are_held_out() -> None:
    assert len(held_out.NAMES) == 10
    assert not set(held_out.NAMES) & set(groups.GROUPS[groups.MAIN])


def test_small_ones_are_split_anew_and_the_others_never() -> None:
    assert (groups.load("iris", 0).test_features != groups.load("iris", 1).test_features).any()
    assert (groups.load("block", 0).test_features == groups.load("block", 1).test_features).all()


@pytest.mark.parametrize("name", ["iris", "diabetes", "breast-cancer"])
@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.filterwarnings("ignore")
def test_in_numpy_it_is_what_opacus_does(name: str, steps: int) -> None:
    """All records in every batch and no noise, so that nothing is random."""
    pytest.importorskip("opacus")
    from benchmarks.accuracy import opacus_fits

    data, setting = groups.load(name), Setting(1, steps, learning_rate=2.0, clip=0.3, momentum=0.9)
    weight, bias = (each.detach().numpy() for each in opacus_fits.trained(data, setting, 0.0, seed=0).parameters())
    ours = dp_sgd.trained(data, setting, 0.0, np.random.default_rng(0))
    assert np.abs(ours).max() > 0.01
    assert ours == pytest.approx(np.vstack([weight.T, bias]), abs=2e-6)


@pytest.mark.parametrize("batches", [1, 4])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_noise_of_opacus_is_the_least_for_its_epsilon(adjacency: str, batches: int) -> None:
    multiplier = dp_sgd.noise_multiplier(1.0, adjacency, batches, 50)
    neighbours = li.REPLACE_ONE if adjacency == REPLACED else li.ZERO_OUT
    for factor, low, high in ((1.0, 0.99, 1.0), (0.97, 1.0, 2.0)):
        step = li.notions.subsampled_gaussian(
            mu=(2 if adjacency == REPLACED else 1) / (factor * multiplier), inclusion=1 / batches, adjacency=neighbours
        )
        assert low <= step.compose(50 * batches).epsilon(1e-5) <= high


def test_every_cell_has_a_setting_of_opacus() -> None:
    cells = itertools.product(groups.NAMES, ADJACENCIES, EPSILONS)
    assert [cell for cell in cells if found(*cell) is None] == []


@pytest.mark.parametrize("name", SMALL_DATA)
def test_a_loader_has_as_many_batches_as_the_noise_is_for(name: str) -> None:
    records = len(groups.load(name).train_labels)
    for adjacency, epsilon in itertools.product(ADJACENCIES, EPSILONS):
        assert dp_sgd.is_cut_into(records, setting_of(name, adjacency, epsilon).batches)
    assert not dp_sgd.is_cut_into(120, 16)


def test_the_search_ends_at_the_top() -> None:
    def moves(setting: Setting) -> list[Setting]:
        return [Setting(1, setting.epochs + step, 1.0, 1.0) for step in (-1, 1)]

    best = climbed(
        Setting(1, 2, 1.0, 1.0), lambda setting: iter(moves(setting)), lambda setting: -abs(setting.epochs - 7)
    )
    assert best.epochs == 7


def row(method: str, seed: int, accuracy: float, epsilon: float = 1.0) -> Row:
    given = {"method": method, "dataset": "iris", "adjacency": ZEROED, "epsilon": epsilon}
    return {**given, "seed": seed, "accuracy": accuracy}


def test_the_sentence_counts_cells_and_names_those_below() -> None:
    rows = [row("lastiterate", seed, 0.9) for seed in range(3)] + [row("opacus", seed, 0.9) for seed in range(3)]
    rows += [row("lastiterate", seed, 0.8, 2.0) for seed in range(2)]
    rows += [row("opacus", seed, 0.81 + 0.02 * seed, 2.0) for seed in range(2)]
    told = verdict.sentence("held-out", rows, ["iris"], [1.0, 2.0, 4.0])
    assert told == ("held-out: at or above Opacus in 1 of 2 cells; below in: iris, zero out one, 2 (-2.00 ± 1.00)")


@pytest.mark.filterwarnings("ignore")
def test_in_small_it_runs_and_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("opacus")
    words = ["--quick", "--datasets", "iris", "--epsilons", "1", "--seeds", "1", "--out", str(tmp_path)]
    run.main(words)
    shown = capsys.readouterr().out
    assert "of 2 cells" in shown
    kept = (tmp_path / "opacus.json").stat().st_mtime_ns
    run.main([*words, "--methods", "opacus"])
    assert capsys.readouterr().out == shown
    assert (tmp_path / "opacus.json").stat().st_mtime_ns == kept
