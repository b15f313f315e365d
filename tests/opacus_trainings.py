"""Small trainings with Opacus, as scripts write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from opacus.accountants import register_accountant
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import lastiterate as li

QUIET = [  # for tests, where warnings are errors
    pytest.mark.filterwarnings("ignore:Secure RNG turned off:UserWarning"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning"),
]
FEATURES, CLIP, MULTIPLIER, RATE, DELTA = 4, 1.0, 1.2, 0.1, 1e-5


def table(records: int) -> TensorDataset:
    """Features of norm at most 1, a constant one included."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(records, FEATURES, generator=generator)
    features = features / features.norm(dim=1, keepdim=True) * 0.7
    return TensorDataset(torch.cat([features, torch.full((records, 1), 0.7)], dim=1), (features[:, :1] > 0).float())


def a_run(records: int = 40, batch_size: int = 10, epochs: int = 2, **changes: Any) -> li.Run:
    """Of a network; batches are shuffled unless said otherwise."""
    given: dict[str, Any] = {
        "loss": li.losses.network(clip=CLIP),
        "batches": li.Shuffled(records, batch_size, last="smaller"),
        "step_size": RATE,
        "noise": li.OnGradientSum(MULTIPLIER, CLIP),
        "steps": li.epochs(epochs),
        "adjacency": li.ZERO_OUT,
    }
    return li.Run(**{**given, **changes})


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES + 1, 3), nn.Tanh(), nn.Linear(3, 1))


def linear() -> nn.Module:
    return nn.Linear(FEATURES + 1, 1, bias=False)


@dataclass
class Training:
    """What `make_private` returned, and its engine."""

    engine: PrivacyEngine
    model: nn.Module
    optimizer: Any
    loader: Any
    criterion: Any = nn.functional.binary_cross_entropy_with_logits

    @property
    def accountant(self) -> Any:
        return self.engine.accountant

    def epochs(self, count: int = 1, loader: Any = None, after: Callable[[], Any] | None = None) -> Training:
        for _ in range(count):
            for features, targets in self.loader if loader is None else loader:
                self.one_step(features, targets)
                if after is not None:
                    after()
        return self

    def one_step(self, features: torch.Tensor, targets: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        self.criterion(self.model(features), targets).backward()
        self.optimizer.step()


def set_up(
    *,
    records: int = 40,
    batch_size: int = 10,
    model: nn.Module | None = None,
    optimizer: Callable[..., Any] = lambda weights: torch.optim.SGD(weights, lr=RATE),
    loader: dict[str, Any] | None = None,
    accountant: str = "lastiterate",
    epsilon: dict[str, Any] | None = None,
    **options: Any,
) -> Training:
    """As in every script of Opacus; `epsilon`, if given, goes to `make_private_with_epsilon`."""
    model = network() if model is None else model
    engine = PrivacyEngine(accountant=accountant)
    given: dict[str, Any] = {
        "module": model,
        "optimizer": optimizer(model.parameters()),
        "data_loader": DataLoader(table(records), batch_size=batch_size, **(loader or {"shuffle": True})),
        "max_grad_norm": CLIP,
        "poisson_sampling": False,
        **({"noise_multiplier": MULTIPLIER} if epsilon is None else {}),
        **options,
    }
    made = engine.make_private(**given) if epsilon is None else engine.make_private_with_epsilon(**given, **epsilon)
    if len(made) == 4:
        return Training(engine, made[0], made[1], made[3], made[2])
    return Training(engine, *made)


@contextmanager
def registered(run: li.Run) -> Iterator[None]:
    """The accountant of this run, under its usual name."""
    from opacus.accountants.registry import _ACCOUNTANTS

    register_accountant("lastiterate", li.adapters.opacus.accountant_for(run), force=True)
    try:
        yield
    finally:
        del _ACCOUNTANTS["lastiterate"]
