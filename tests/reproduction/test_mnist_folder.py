"""A folder without MNIST is noticed before anything is made; MNIST may also be among the data that the environment names."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastiterate.cli import main
from lastiterate.reproduction.command import _mnist


def test_an_empty_folder_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["reproduce", "bok2024", "--quick", "--mnist", str(tmp_path), "--out", str(out)]) == 2
    assert "It lacks train-images-idx3-ubyte" in capsys.readouterr().err
    assert not out.exists()


def test_the_environment_may_name_the_folder_of_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LASTITERATE_DATA", raising=False)
    assert _mnist(None) is None
    monkeypatch.setenv("LASTITERATE_DATA", str(tmp_path))
    assert _mnist(None) is None
    (tmp_path / "mnist").mkdir()
    assert _mnist(None) == tmp_path / "mnist"
