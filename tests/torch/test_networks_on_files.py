"""Networks on records that lie in files: the same parameters as from memory, to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from torch.utils.data import TensorDataset

import lastiterate as li

SOURCE = np.random.default_rng(0)
FEATURES = SOURCE.normal(size=(60, 4)).astype(np.float32)
LABELS = SOURCE.integers(3, size=60)
RUN = li.Run(
    loss=li.losses.network(clip=0.5),
    batches=li.Shuffled(records=60, batch_size=20),
    step_size=0.1,
    noise=li.OnGradientSum(multiplier=1.0, clip=0.5),
    steps=li.epochs(3),
)


def trained(dataset: object, run: object = RUN, precision: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)).to(precision)
    trainer = li.torch.PrivateTrainer(model, torch.nn.functional.cross_entropy, run, dataset, seed=1)  # type: ignore[arg-type]
    return torch.nn.utils.parameters_to_vector(trainer.fit().model.parameters()).detach()


@pytest.fixture(scope="module")
def in_memory() -> torch.Tensor:
    return trained(TensorDataset(torch.from_numpy(FEATURES), torch.from_numpy(LABELS)))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    columns = {f"x{place}": FEATURES[:, place] for place in range(4)} | {"label": LABELS}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "records.parquet", row_group_size=16)
    np.save(folder / "features.npy", FEATURES)
    return folder


def test_parquet_files(files: Path, in_memory: torch.Tensor) -> None:
    assert torch.equal(trained(li.training.ParquetRecords(files / "records.parquet", target="label")), in_memory)


def test_a_mapped_array(files: Path, in_memory: torch.Tensor) -> None:
    mapped = np.load(
        files / "features.npy", mmap_mode="c"
    )  # torch wants arrays that may be written to: copies of pages
    assert torch.equal(trained(TensorDataset(torch.from_numpy(mapped), torch.from_numpy(LABELS))), in_memory)


def test_a_plan_is_trained_as_its_run() -> None:
    data = TensorDataset(torch.from_numpy(FEATURES).double(), torch.from_numpy(LABELS))
    loss = li.losses.network(clip=0.5, smoothness=4.0)
    plans = li.plan(loss=loss, records=60, features=30, epsilon=5.0, delta=1e-3, passes=2)
    assert torch.equal(trained(data, plans.best, torch.float64), trained(data, plans.best.run, torch.float64))
