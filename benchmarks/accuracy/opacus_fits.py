"""Opacus itself, as it is in the tables: DP-SGD on a linear model, set as `tune` found best on the test data."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.accuracy import dp_sgd
from benchmarks.accuracy.datasets import Dataset
from benchmarks.accuracy.dp_sgd import Setting
from benchmarks.accuracy.rows import ADJACENCIES, DELTA, Method
from benchmarks.accuracy.tune import setting_of

NAME = "opacus"


def opacus_methods() -> list[Method]:
    return [_method(adjacency) for adjacency in ADJACENCIES]


def _method(adjacency: str) -> Method:
    def score(data: Dataset, epsilon: float | None, seed: int) -> float:
        assert epsilon is not None
        setting = setting_of(data.name, adjacency, epsilon)
        return opacus_score(data, setting, _multiplier(epsilon, adjacency, setting), seed)

    def settings(name: str, epsilon: float | None) -> str:
        assert epsilon is not None
        setting = setting_of(name, adjacency, epsilon)
        values = ", ".join(f"{key} {value:g}" for key, value in asdict(setting).items())
        return f"Opacus DP-SGD, linear model from zero, Poisson batches, delta {DELTA:g}: {values}"

    return Method(NAME, adjacency, settings, score)


def _multiplier(epsilon: float, adjacency: str, setting: Setting) -> float:
    return dp_sgd.noise_multiplier(epsilon, adjacency, setting.batches, setting.epochs)


def opacus_score(data: Dataset, setting: Setting, multiplier: float, seed: int) -> float:
    """Of the test data: accuracy, or R² for regression."""
    import torch

    model = trained(data, setting, multiplier, seed)
    with torch.no_grad():
        scores = model(torch.as_tensor(data.test_features, dtype=torch.float32)).numpy()
    return dp_sgd.score_of(data, scores)


def trained(data: Dataset, setting: Setting, multiplier: float, seed: int) -> Any:
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader

    warnings.filterwarnings("ignore")
    torch.manual_seed(seed)
    model = zero_linear_model(data)
    rows = rows_of(data)
    if not dp_sgd.is_cut_into(len(rows), setting.batches):
        raise ValueError(f"{len(rows)} records cannot be cut into {setting.batches} batches of one size.")
    criterion: Any = torch.nn.CrossEntropyLoss() if data.classes else torch.nn.MSELoss()
    # Ghost clipping: the same gradients as the default, several times faster here; only for classes, because in Opacus 1.6
    # the squared error of a column of targets is multiplied by their number.
    model, optimizer, *clipped, loader = PrivacyEngine(accountant="prv").make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=setting.learning_rate, momentum=setting.momentum),
        criterion=criterion,
        data_loader=DataLoader(rows, batch_size=-(-len(rows) // setting.batches), collate_fn=lambda batch: batch),
        noise_multiplier=multiplier,
        max_grad_norm=setting.clip,
        grad_sample_mode="ghost" if data.classes else "hooks",
    )
    criterion = clipped[0] if clipped else criterion
    for _ in range(setting.epochs):
        for features, targets in loader:
            optimizer.zero_grad()
            criterion(model(features), targets).backward()
            optimizer.step()
    return model


def zero_linear_model(data: Dataset) -> Any:
    import torch

    model = torch.nn.Linear(data.train_features.shape[1], data.classes or 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    return model


def rows_of(data: Dataset) -> Any:
    """Hands the loader a whole batch at once instead of one row at a time."""
    import torch
    from torch.utils.data import TensorDataset

    class Rows(TensorDataset):
        def __getitems__(self, indices: list[int]) -> tuple[torch.Tensor, ...]:
            chosen = torch.as_tensor(indices, dtype=torch.int64)
            return tuple(tensor[chosen] for tensor in self.tensors)

    features = torch.as_tensor(data.train_features, dtype=torch.float32)
    targets = np.asarray(data.train_labels) if data.classes else dp_sgd.targets_of(data)
    return Rows(features, torch.as_tensor(targets))
