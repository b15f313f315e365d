"""Attacks by what a script brings itself: a criterion, a loader, a state, seeds, a collate function, one more step."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lastiterate as li
from benchmarks.attack.attacks import Shown, refused

_RECORDS, _CLIP, _RATE, _DELTA = 95, 1.0, 0.1, 1e-5


@contextmanager
def _opacus(run: li.Run, **options: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Engine, module, optimiser and loader of a script with this accountant."""
    import torch
    from opacus import PrivacyEngine
    from opacus.accountants import register_accountant
    from torch.utils.data import DataLoader

    torch.seed()
    register_accountant("lastiterate", li.adapters.opacus.accountant_for(run), force=True)
    module = torch.nn.Linear(3, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = PrivacyEngine(accountant="lastiterate")
        made = engine.make_private(
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=_RATE),
            data_loader=DataLoader(_data(), batch_size=10, shuffle=True),
            noise_multiplier=1.0,
            max_grad_norm=_CLIP,
            criterion=torch.nn.MSELoss(),
            **options,
        )
        yield engine, made[0], made[1], made[-1]


def _data() -> Any:
    import torch

    features = 1000 * torch.randn(_RECORDS, 3, generator=torch.Generator().manual_seed(0))
    return torch.utils.data.TensorDataset(features, features[:, :1])


def _poisson() -> li.Run:
    loss, noise = li.losses.network(clip=_CLIP), li.OnGradientSum(1.0, _CLIP)
    step_size = _RATE * _RECORDS / 10 / 9  # Opacus divides by 9
    batches = li.Poisson(_RECORDS, 0.1)
    return li.Run(loss, batches, step_size, noise, 30, adjacency=li.ADD_OR_REMOVE_ONE)


def _steps(module: Any, optimizer: Any, loader: Any) -> None:
    """As in every script, with a criterion of its own."""
    import torch

    for features, targets in loader:
        optimizer.zero_grad()
        torch.nn.MSELoss()(module(features), targets).backward()
        optimizer.step()


def _attack_on_opacus(what: str, attack: Callable[[Any, Any, Any, Any], None], word: str, **options: Any) -> Shown:
    with _opacus(_poisson(), **options) as found:
        return refused(what, lambda: attack(*found), word)


def _older_state(engine: Any, module: Any, optimizer: Any, loader: Any) -> None:
    state = engine.accountant.state_dict()
    _steps(module, optimizer, loader)
    engine.accountant.load_state_dict(state)


def _skips(_: Any, module: Any, optimizer: Any, loader: Any) -> None:
    for batch in loader:
        for skip in (True, False):
            optimizer.signal_skip_step(skip)
            _steps(module, optimizer, [batch])


def scripts_with_opacus() -> list[Shown]:
    from torch.utils.data import DataLoader

    return [
        _attack_on_opacus(
            "ghost clipping with a criterion that clips nothing",
            lambda _, module, optimizer, loader: _steps(module, optimizer, loader),
            "criterion",
            grad_sample_mode="ghost",
        ),
        _attack_on_opacus(
            "95 records by 10 in passes, called Poisson batches",
            lambda _, module, optimizer, __: _steps(module, optimizer, DataLoader(_data(), 10, shuffle=True)),
            "loader",
        ),
        _attack_on_opacus("each batch added twice to one sum, by signal_skip_step", _skips, "records"),
        _attack_on_opacus("an older state loaded in mid-training", _older_state, "before the first step"),
    ]


def seeds_set_again() -> list[Shown]:
    import torch

    with _opacus(_poisson()) as (engine, module, optimizer, loader):
        for _ in range(2):
            torch.manual_seed(3**38)
            _steps(module, optimizer, loader)
        torch.seed()
        caveats = engine.accountant.report(_DELTA).caveats
    return [Shown("one long seed, set before each epoch", "DO NOT RELEASE", str(caveats[0])[:14], len(caveats) == 2)]


def _begun(batches: Any = None, **more: Any) -> tuple[Any, Any]:
    import torch

    run = li.Run(li.losses.network(clip=_CLIP), li.Poisson(_RECORDS, 0.1), _RATE, li.OnGradientSum(1.0, _CLIP), 20)
    model, loader = torch.nn.Linear(3, 1), li.torch.loader(_data(), run, collate_fn=batches)
    optimizer = torch.optim.SGD(model.parameters(), _RATE)
    return loader, li.torch.clip_and_noise(optimizer, model, torch.nn.functional.mse_loss, run, loader, **more)


def _on_after_the_end() -> None:
    loader, steps = _begun()
    for step, batch in enumerate(loader):
        if batch is not None:
            steps.accumulate(*batch)
        steps.step()
        if step == 9:
            steps.finish(stopped=True)


def _mixed(records: list[Any]) -> Any:
    import torch

    features, targets = torch.utils.data.default_collate(records)
    share = torch.rand(())
    return share * features + (1 - share) * features.roll(1, 0), targets


def _locked_by_a_link() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(Path(folder) / "elsewhere", Path(folder) / "state.lock")
        _begun(checkpoint=Path(folder) / "state")


def loops_of_ones_own() -> list[Shown]:
    return [
        refused("steps after finish(stopped=True)", _on_after_the_end, "finished"),
        refused("mixup in a collate function", lambda: _begun(_mixed), "collate function"),
        refused("a link in the place of a checkpoint's lock", _locked_by_a_link, "link"),
    ]


OUTSIDE = (scripts_with_opacus, seeds_set_again, loops_of_ones_own)
