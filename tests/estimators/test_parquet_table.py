"""`lastiterate train` reads Parquet as it reads CSV: the same table, and one clear sentence on bad input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.cli import main
from lastiterate.estimators.command import read_table
from raising import raises

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet_files = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

FEATURES = np.random.default_rng(0).normal(size=(400, 2)) / 3
LABELS = np.where(FEATURES[:, 0] > 0, "yes", "no")


def written(path: Path, **columns: Any) -> str:
    parquet_files.write_table(pyarrow.table(columns), path)
    return str(path)


@pytest.mark.parametrize("target", [LABELS.tolist(), (FEATURES[:, 0] > 0).astype(int), FEATURES[:, 1]])
def test_the_same_table_as_from_csv(target: Any, tmp_path: Path) -> None:
    rows = zip(*FEATURES.T, target, strict=True)
    (tmp_path / "data.csv").write_text("\n".join(["a,b,y", *(",".join(map(str, row)) for row in rows)]))
    csv = read_table(str(tmp_path / "data.csv"), "y")
    parquet = read_table(written(tmp_path / "data.parquet", a=FEATURES[:, 0], b=FEATURES[:, 1], y=target), "y")
    assert parquet.names == csv.names == ("a", "b")
    assert np.array_equal(parquet.features, csv.features)
    assert parquet.target == csv.target


def test_a_model_is_trained_from_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = written(tmp_path / "data.PARQUET", y=LABELS, a=FEATURES[:, 0].astype("f4"), b=FEATURES[:, 1] > 0)
    options = ["--target", "y", "--epsilon", "2", "--delta", "1e-5", "--feature-norm", "1.5", "--classes", "no", "yes"]
    assert main(["train", data, *options]) == 0
    assert "epsilon = 2 at delta = 1e-05" in capsys.readouterr().out


def test_bad_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("a,b,y\n1,2,3\n")
    cases = {
        "cannot be read as a Parquet file": str(tmp_path / "text.parquet"),
        "cannot be read": str(tmp_path / "missing.parquet"),
        "has no column 'y'": written(tmp_path / "1.parquet", a=[1.0], b=[2.0]),
        r"record 2: column a must hold numbers. Got None; encode or fill it": written(
            tmp_path / "2.parquet", a=[1.0, None], y=["no", "yes"]
        ),
        "column a must hold numbers. Got 'x'": written(tmp_path / "3.parquet", a=["x"], y=["no"]),
        "column a must hold numbers. Got inf": written(tmp_path / "4.parquet", a=[np.inf], y=["no"]),
        "record 1: column y is empty": written(tmp_path / "5.parquet", a=[1.0], y=pyarrow.array([None], "string")),
        "at least one record": written(
            tmp_path / "6.parquet", a=pyarrow.array([], "double"), y=pyarrow.array([], "string")
        ),
    }
    for message, path in cases.items():
        with pytest.raises(li.errors.InvalidInput, match=message):
            read_table(path, "y")


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "data.parquet", a=[1.0], y=["no"])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with raises("pyarrow_missing", kind=li.errors.Unavailable):
        read_table(path, "y")
