"""The report of a network can be signed as any other; not with a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lastiterate as li

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.utils.data import TensorDataset  # noqa: E402

from lastiterate.torch import PrivateTrainer  # noqa: E402

DATA = TensorDataset(torch.zeros(24, 4), torch.zeros(24, dtype=torch.int64))
RUN = li.Run(li.losses.network(clip=0.5), li.Shuffled(24, 8), 0.1, li.OnGradientSum(8.0, 0.5), li.epochs(3))


def trained(seed: int | None) -> Any:
    model = torch.nn.Linear(4, 3)
    return PrivateTrainer(model, torch.nn.functional.cross_entropy, RUN, DATA, seed=seed).fit()


def page(report: li.results.Report, folder: Path) -> str:
    report.save(folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


def test_a_network(tmp_path: Path) -> None:
    found = trained(None)
    report = found.report(1e-5)
    text = page(report, tmp_path)
    verdict = li.verify(text)
    assert verdict.accepted, verdict.reason
    assert verdict.assumptions == report.assumptions
    assert report.also_assumed[0] in verdict.assumptions


def test_a_seed(tmp_path: Path) -> None:
    text = page(trained(1).report(1e-5), tmp_path)
    assert "Do not sign this page." in text
    assert not li.verify(text).accepted
