"""A folder without MNIST is noticed before anything is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastiterate.cli import main


def test_an_empty_folder_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["reproduce", "bok2024", "--quick", "--mnist", str(tmp_path), "--out", str(out)]) == 2
    assert "It lacks train-images-idx3-ubyte" in capsys.readouterr().err
    assert not out.exists()
