"""Seconds an epoch of Opacus and of plain torch on a linear softmax model.

`python -m benchmarks.speed.training_peers [THREADS]`

Run with the peers' Python (see `environments`); prints one line of JSON. The work of one epoch is 40 batches of 1500
random rows of 784 numbers in 10 classes; a median over warm epochs, wall-clock time, on the CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from opacus import PrivacyEngine
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

RECORDS, FEATURES, CLASSES, BATCH = 60_000, 784, 10, 1500
LEARNING_RATE, CLIP, NOISE_MULTIPLIER = 0.1, 1.0, 1.0

Epoch = Callable[[], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("threads", type=int, nargs="?", default=os.cpu_count())
    parser.add_argument("--epochs", type=int, default=5, help="warm epochs measured for each way of training")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    table = {
        loader: {way: seconds_an_epoch(epoch_of(make_loader()), arguments.epochs) for way, epoch_of in WAYS.items()}
        for loader, make_loader in LOADERS.items()
    }
    print(json.dumps({"threads": arguments.threads, "batches": RECORDS // BATCH, "seconds an epoch": table}))


def seconds_an_epoch(epoch: Epoch, repeats: int) -> float:
    epoch()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        epoch()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def opacus_hooks(batches: DataLoader) -> Epoch:
    model, optimizer = linear_model()
    model, optimizer, batches = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=batches, **PRIVACY
    )
    return training_epoch(model, optimizer, torch.nn.CrossEntropyLoss(), batches)


def opacus_ghost(batches: DataLoader) -> Epoch:
    """Ghost clipping returns a loss of its own, whose `backward` makes both passes."""
    model, optimizer = linear_model()
    model, optimizer, criterion, batches = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        criterion=torch.nn.CrossEntropyLoss(),
        data_loader=batches,
        grad_sample_mode="ghost",
        **PRIVACY,
    )
    return training_epoch(model, optimizer, criterion, batches)


def plain_torch(batches: DataLoader) -> Epoch:
    model, optimizer = linear_model()
    return training_epoch(model, optimizer, torch.nn.CrossEntropyLoss(), batches)


def batches_alone(batches: DataLoader) -> Epoch:
    """What the loader takes by itself."""

    def epoch() -> None:
        for _ in batches:
            pass

    return epoch


def loader_of_rows() -> DataLoader:
    """In memory and in this process, as a user would write it. It fetches row by row: a good part of an epoch."""
    return DataLoader(random_rows(), batch_size=BATCH, shuffle=True)


def loader_of_batches() -> DataLoader:
    """The same batches fetched whole, which few users do: it leaves little but the training itself."""
    rows = random_rows()
    sampler = BatchSampler(RandomSampler(rows), batch_size=BATCH, drop_last=False)
    return DataLoader(rows, sampler=sampler, batch_size=None)


# Without Poisson sampling, so that every epoch is the same 40 batches; the guarantee is not at issue here.
PRIVACY: dict[str, Any] = {"noise_multiplier": NOISE_MULTIPLIER, "max_grad_norm": CLIP, "poisson_sampling": False}
WAYS: dict[str, Callable[[DataLoader], Epoch]] = {
    "opacus hooks": opacus_hooks,
    "opacus ghost": opacus_ghost,
    "torch without privacy": plain_torch,
    "batches alone": batches_alone,
}
LOADERS: dict[str, Callable[[], DataLoader]] = {"row by row": loader_of_rows, "whole batches": loader_of_batches}


def linear_model() -> tuple[Any, Any]:
    model = torch.nn.Linear(FEATURES, CLASSES)
    return model, torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)


def random_rows() -> TensorDataset:
    torch.manual_seed(0)
    return TensorDataset(torch.randn(RECORDS, FEATURES), torch.randint(CLASSES, (RECORDS,)))


def training_epoch(model: Any, optimizer: Any, criterion: Any, batches: DataLoader) -> Epoch:
    def epoch() -> None:
        for features, labels in batches:
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()

    return epoch


if __name__ == "__main__":
    main()
