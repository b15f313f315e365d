"""Training from mapped files, Parquet files and sources of one's own is, bit by bit, training from memory."""

from __future__ import annotations

import os
import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lastiterate as li
from lastiterate.estimators import PrivateLinearRegression, PrivateLogisticRegression
from lastiterate.runs.batches import Batches
from lastiterate.runs.kinds import BATCHES, UNEVEN, Kind
from lastiterate.training import ParquetRecords, RecordSource
from lastiterate.training.train import _objective
from raising import raises
from training_stops import Killed, stop_after

TIMES, MOST, WIDTH = 1500, 21_000, 4  # pieces have 8192 records: batches of these kinds have one, two and three of them
SOURCE = np.random.default_rng(0)
ROWS = (SOURCE.normal(size=(MOST, WIDTH)) / 2).astype(np.float32)  # some longer than 1, some far too long
ROWS[::5000] *= 1e5
SIDES = np.where(ROWS[:, 0] > 0, 1, -1).astype(np.int8)
LOSS = li.losses.logistic(feature_norm=1.0, l2=0.1, clip=0.4)
KINDS = [*BATCHES, *UNEVEN]


def larger(kind: Kind) -> Batches:
    """The listed example with more records."""
    sizes = {name: TIMES * kind.arguments[name] for name in ("records", "batch_size") if name in kind.arguments}
    return kind.make(**{**kind.arguments, **sizes})


def a_run(batches: Batches, loss: Any = LOSS) -> li.Run:
    return li.Run(loss, batches, 0.5, li.OnMeanGradient(std=0.01), 5)


def mapped(folder: Path, array: np.ndarray, name: str = "features") -> np.ndarray:
    np.save(folder / f"{name}.npy", array)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def written(folder: Path, rows: np.ndarray, targets: np.ndarray) -> Path:
    """Three files, whose row groups fit no batch."""
    folder.mkdir()
    for number, (part, labels) in enumerate(zip(np.array_split(rows, 3), np.array_split(targets, 3), strict=True)):
        columns = {f"x{place}": part[:, place] for place in range(part.shape[1])} | {"label": labels}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=2700 + 500 * number)
    return folder


def places_of_all(folder: Path, records: int) -> dict[str, Any]:
    rows, sides = ROWS[:records], SIDES[:records]
    parquet = written(folder / "parquet", rows, sides)
    return {
        "mapped": (mapped(folder, rows), sides),
        "mapped column by column": (mapped(folder, np.asfortranarray(rows), "by columns"), mapped(folder, sides, "y")),
        "Parquet, little memory": ParquetRecords(parquet, target="label", cache_bytes=100_000),
        "Parquet, no memory": ParquetRecords(parquet / "*.parquet", target="label", cache_bytes=0),
        "Parquet, kept": ParquetRecords(sorted(parquet.iterdir()), target="label"),
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.example.described)
def test_it_is_training_from_memory_bit_by_bit(kind: Kind, tmp_path: Path) -> None:
    batches = larger(kind)
    run = a_run(batches)
    expected = li.train(run, (ROWS[: batches.records], SIDES[: batches.records]), seed=1)
    assert expected.shortened > 0
    for name, data in places_of_all(tmp_path, batches.records).items():
        found = li.train(run, data, seed=1)
        assert np.array_equal(found.weights, expected.weights), name
        assert (found.run, found.shortened) == (expected.run, expected.shortened), name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_so_it_is_with_classes_and_rows_that_are_short(dtype: Any, clip: float | None, tmp_path: Path) -> None:
    loss, rows = li.losses.softmax(feature_norm=1e6, classes=3, clip=clip), ROWS.astype(dtype)
    run, targets = replace(a_run(li.Shuffled(MOST, 7000), loss), step_size=1e-6), np.arange(MOST) % 3
    expected = li.train(run, (rows, targets), classes=3, seed=1)
    source = ParquetRecords(written(tmp_path / "parquet", rows, targets), target="label", cache_bytes=10**5)
    for data in ((mapped(tmp_path, rows), targets.tolist()), source, source.to_memmap(tmp_path / "copy")):
        found = li.train(run, data, classes=3, seed=1)
        assert np.array_equal(found.weights, expected.weights)
        assert found.weights.dtype == dtype


def test_other_numbers_are_converted_piece_by_piece(tmp_path: Path) -> None:
    whole = (4 * SOURCE.normal(size=(9000, 2))).astype(np.int16)
    run, sides = a_run(li.Cyclic(9000, 3000)), SIDES[:9000]
    for dtype in (None, np.float32):
        expected = li.train(run, (whole, sides), seed=1, dtype=dtype)
        found = li.train(run, (mapped(tmp_path, whole), sides), seed=1, dtype=dtype)
        assert np.array_equal(found.weights, expected.weights)
        assert found.weights.dtype == expected.weights.dtype == (dtype or np.float64)


def test_nothing_as_large_as_the_data_is_held(tmp_path: Path) -> None:
    records = 400_000
    rows = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, (records, WIDTH))
    rows[:] = 0.1
    sides = np.lib.format.open_memmap(tmp_path / "sides.npy", "w+", np.int8, (records,))
    sides[:] = 1
    run = a_run(li.Cyclic(records, 50_000))
    tracemalloc.start()
    li.train(run, (rows, sides), seed=1, checkpoint=tmp_path / "state")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6 < rows.nbytes / 2


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ((7, 2), np.nan, "data must be finite"),
        ((17_500, 0), np.inf, "data must be finite"),
        (17_500, np.nan, "data must be finite"),
        (17_500, 1e300, "targets must be at most"),
        (17_500, 2.0, "targets must be -1 or 1. Got 2"),
    ],
)
def test_what_is_refused_is_refused_in_the_same_words(place: Any, value: float, said: str, tmp_path: Path) -> None:
    rows, sides = ROWS.copy(), SIDES.astype(float)
    (rows if isinstance(place, tuple) else sides)[place] = value
    run = a_run(li.FullBatch(MOST))
    for data in (
        (rows, sides),
        (mapped(tmp_path, rows), sides),
        ParquetRecords(written(tmp_path / "parquet", rows, sides), target="label"),
    ):
        with pytest.raises(li.errors.InvalidInput, match=said):
            li.train(run, data, seed=1)


def test_shapes_counts_and_kinds_are_checked(tmp_path: Path) -> None:
    rows = mapped(tmp_path, ROWS)
    for data, said in (
        ((rows[:-1], SIDES[:-1]), "data must have as many records as the run, 21000. Got 20999"),
        ((rows, SIDES[:-1]), "with one row per record. Got shapes"),
        ((rows, SIDES[:, None]), "with one row per record. Got shapes"),
        ((rows, SIDES.astype(str)), "targets must be real numbers"),
        ((mapped(tmp_path, ROWS.astype(complex), "c"), SIDES), "features must be real numbers"),
        ((rows, np.ma.masked_less(SIDES, 0)), "no masked entries"),
    ):
        with pytest.raises(li.errors.InvalidInput, match=said):
            li.train(a_run(li.FullBatch(MOST)), data)


def test_a_checkpoint_knows_the_data_wherever_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, file = a_run(li.Shuffled(MOST, 7000)), tmp_path / "state"
    expected = li.train(run, (ROWS, SIDES), seed=1)
    for data in places_of_all(tmp_path, MOST).values():
        stop_after(monkeypatch, 3)
        with pytest.raises(Killed):
            li.train(run, (ROWS, SIDES), seed=1, checkpoint=file, checkpoint_every=0)
        other = mapped(tmp_path, np.where(np.arange(MOST)[:, None] == 20_000, ROWS / 2, ROWS), "other")
        with raises("checkpoint_of_another_run", kind=li.errors.InvalidInput):
            li.train(run, (other, SIDES), seed=1, checkpoint=file)
        again = li.train(run, data, seed=1, checkpoint=file)
        assert np.array_equal(again.weights, expected.weights)


@dataclass
class OfOnesOwn:
    """A source as users write them; it counts what is read, and may give too few or too many records."""

    more: int = 0
    read: int = 0

    shape = (MOST, WIDTH)
    dtype = np.float32

    def __len__(self) -> int:
        return MOST

    def pieces(self, chosen: Any, rows: int) -> Iterator[tuple[Any, Any]]:
        places = np.arange(MOST)[chosen]
        for first in range(0, len(places), rows):
            part = places[first : first + rows + self.more]
            self.read += len(part)
            yield ROWS[part], SIDES[part].tolist()


def test_sources_of_ones_own_are_read_once_before_training(tmp_path: Path) -> None:
    run, own = a_run(li.Cyclic(MOST, 7000)), OfOnesOwn()
    assert isinstance(own, RecordSource)
    found = li.train(run, own, seed=1, checkpoint=tmp_path / "state")
    assert np.array_equal(found.weights, li.train(run, (ROWS, SIDES), seed=1).weights)
    assert own.read == MOST + 5 * 7000
    for wrong in (1, -1):
        with raises("pieces_shapes", "data", kind=li.errors.InvalidInput):
            li.train(run, OfOnesOwn(wrong))


def test_gradients_of_ones_own_take_them_as_well(tmp_path: Path) -> None:
    def gradients(weights: Any, features: Any, targets: Any) -> Any:
        return (np.tanh(features @ weights) - targets)[:, None] * features

    run = a_run(li.FixedSize(MOST, 3000), li.losses.network(clip=1.0))
    given: dict[str, Any] = {"loss": gradients, "start": np.zeros(WIDTH), "seed": 1}
    expected = li.train(run, (ROWS, SIDES), **given).weights
    for data in places_of_all(tmp_path, MOST).values():
        again = li.train(run, data, **given, checkpoint=tmp_path / "state")
        assert np.allclose(again.weights, expected, rtol=0, atol=1e-12)


def test_slices_with_a_stride_are_the_records_that_they_name(tmp_path: Path) -> None:
    weights, every = np.ones(WIDTH), np.arange(MOST)
    for data in ((ROWS, SIDES), *places_of_all(tmp_path, MOST).values()):
        objective = _objective(a_run(li.FullBatch(MOST)), data, None, None, None)
        for chosen in (slice(1, None, 3), slice(None, 5, -2), slice(20_000, 3), slice(100, 9_000)):
            found = objective.gradient_sum(weights, chosen, 0.4)
            assert np.allclose(found, objective.gradient_sum(weights, every[chosen], 0.4), rtol=0, atol=1e-9)


def test_parquet_is_a_data_set_of_pairs(tmp_path: Path) -> None:
    source = ParquetRecords(written(tmp_path / "parquet", ROWS, SIDES), target="label", cache_bytes=50_000)
    for one in (source, pickle.loads(pickle.dumps(source))):
        assert len(one) == MOST
        features, target = one[20_000]
        assert np.array_equal(features, ROWS[20_000])
        assert (target, target.dtype) == (SIDES[20_000], np.int8)
        places = [3, 20_999, -1, 7, 3]
        assert all(
            np.array_equal(row, ROWS[place]) and label == SIDES[place]
            for place, (row, label) in zip(places, one.__getitems__(places), strict=True)
        )
    with pytest.raises(IndexError, match="below 21000, the number of records"):
        source[MOST]
    assert str(source) == "ParquetRecords(21000 records, 4 features, target 'label')"


def test_streams_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    source = ParquetRecords(written(tmp_path / "parquet", ROWS, SIDES), target="label", cache_bytes=0)
    streams = zip(source.pieces(slice(None), 999), source.pieces(slice(500, None), 999), strict=False)
    for number, ((one, _), (two, _)) in enumerate(streams):
        assert np.array_equal(one, ROWS[999 * number :][:999])
        assert np.array_equal(two, ROWS[500 + 999 * number :][:999])


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    folder = written(tmp_path / "parquet", ROWS, SIDES)
    source = ParquetRecords(folder, features=["x2", "x0"], target="x1", dtype=np.float64)
    assert (source.features, source.shape, source.dtype) == (("x2", "x0"), (MOST, 2), np.float64)
    assert np.array_equal(source.take([5])[0][0], ROWS[5, [2, 0]])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"target": "y"},
            "target must name columns that occur once in .* Got 'y'; the columns are x0, x1, text, label",
        ),
        ({"target": "label"}, "columns must hold numbers. Got text of type string"),
        ({"target": "label", "features": ["x0", "x0"]}, "each once"),
        ({"target": "label", "features": "x0"}, "must be a list"),
        ({"target": "label", "features": []}, "Got none"),
        ({"target": "text", "features": ["x0"]}, "columns must hold numbers"),
        ({"target": "label", "features": ["x0"], "dtype": int}, "dtype must be"),
        ({"target": "label", "features": ["x0"], "cache_bytes": -1}, "cache_bytes"),
    ],
)
def test_columns_that_are_not_there_are_refused(arguments: Any, said: str, tmp_path: Path) -> None:
    table = {"x0": [1.0, 2.0], "x1": [1, None], "text": ["a", "b"], "label": [1, -1]}
    pq.write_table(pa.table(table), tmp_path / "one.parquet")
    with pytest.raises(li.errors.InvalidInput, match=said):
        ParquetRecords(tmp_path, **arguments)


def test_files_that_are_missing_damaged_changed_or_have_gaps_are_refused(tmp_path: Path) -> None:
    with raises("parquet_not_found", "path", kind=li.errors.InvalidInput):
        ParquetRecords(tmp_path / "*.parquet", target="y")
    file = tmp_path / "one.parquet"
    file.write_bytes(b"text")
    with raises("parquet_not_read", "path", kind=li.errors.InvalidInput):
        ParquetRecords(file, target="y")
    pq.write_table(pa.table({"x": [1.0, None], "y": [1, 0]}), file)
    with raises("column_has_missing", "data", kind=li.errors.InvalidInput, column="x"):
        ParquetRecords(file, target="y").take([0])
    source = ParquetRecords(file, target="y")
    os.utime(file, ns=(1, 1))
    with raises("parquet_changed", kind=li.errors.InvalidInput):
        source.take([0])
    pq.write_table(pa.table({"x": [1.0], "y": [0.5]}), tmp_path / "two.parquet")
    with raises("target_types_differ", "target", kind=li.errors.InvalidInput):
        ParquetRecords(tmp_path, target="y")


def test_a_copy_on_disk_replaces_nothing(tmp_path: Path) -> None:
    source = ParquetRecords(written(tmp_path / "parquet", ROWS, SIDES), target="label")
    rows, sides = source.to_memmap(tmp_path / "copy")
    assert isinstance(rows, np.memmap)
    assert np.array_equal(rows, ROWS)
    assert np.array_equal(sides, SIDES)
    with raises("memmap_exists", "folder", kind=li.errors.InvalidInput):
        source.to_memmap(tmp_path / "copy")


@pytest.mark.filterwarnings("ignore::lastiterate.errors.PrivacyLeak")
@pytest.mark.parametrize("intercept", [True, False])
def test_estimators_do_not_copy_mapped_features(intercept: bool, tmp_path: Path) -> None:
    for model, targets in (
        (PrivateLogisticRegression(classes=[-1, 1]), SIDES),
        (PrivateLogisticRegression(classes=[0, 1, 2], l2=0.01), np.arange(MOST) % 3),
        (PrivateLinearRegression(target_bound=2.0), ROWS[:, 1]),
    ):
        model.set_params(delta=1e-6, feature_norm=1.0, epochs=2, batches=1, random_state=1, fit_intercept=intercept)
        expected = model.fit(ROWS, targets).coef_.copy()
        again = model.fit(mapped(tmp_path, ROWS), targets)
        assert np.array_equal(again.coef_, expected)
    large = np.lib.format.open_memmap(tmp_path / "large.npy", "w+", np.float32, (200_000, 50))
    model = PrivateLogisticRegression(delta=1e-6, feature_norm=1.0, epochs=2, batches=1, classes=[-1, 1])
    model.set_params(fit_intercept=intercept)
    tracemalloc.start()
    model.fit(large, np.resize(SIDES, 200_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < large.nbytes / 2  # pieces of 8,192 rows with their norms take up to 9 MB
