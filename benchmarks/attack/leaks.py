"""Attacks on what is said, stored and handed over."""

from __future__ import annotations

import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.attack.attacks import Shown, refusal, refused
from lastiterate.training import steps as walk

_RECORDS = 12
_DATA = (np.eye(_RECORDS, 3), np.tile([1, -1], _RECORDS // 2))


def seeded_and_traced_samples() -> list[Shown]:
    found = []
    for name, given in (("seed", {"seed": 1}), ("trace", {"trace": True})):
        sample = li.mechanisms.langevin(
            lambda x: x, 0.0, lipschitz=1.0, step_size=0.1, steps=3, smoothness=1.0, **given
        )  # type: ignore[arg-type]
        first = str(sample.report(1e-5)).splitlines()[0]
        found.append(Shown(f"langevin with a {name}", "DO NOT RELEASE", first[:14], first.startswith("DO NOT RELEASE")))
    return found


def gradients_beyond_what_is_declared() -> list[Shown]:
    loss = replace(li.losses.logistic(feature_norm=1.0), gradient_bound=0.1, gradient_sensitivity=0.2)
    run = li.Run(loss, li.FullBatch(1), 1.0, li.OnIterate(1e-4), 1)
    moved = float(np.linalg.norm(li.train(run, ([[1.0, 0.0]], [1])).weights))
    return [Shown("a linear model with gradients beyond its loss's bound", "0.1", f"{moved:.4f}", moved < 0.101)]


def one_long_row() -> list[Shown]:
    with tempfile.TemporaryDirectory() as folder:
        rows = np.memmap(Path(folder) / "rows", np.float32, "w+", shape=(200_000, 500))
        rows[:] = 0.01
        rows[77] = 1e30
        run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(200_000), 0.5, li.OnMeanGradient(0.1), 2)
        tracemalloc.start()
        li.train(run, (rows, np.ones(200_000)))
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
    return [Shown("one long row in a memmap of 400 MB: memory", "< 60 MB", f"{peak:.0f} MB", peak < 60)]


def flipped_bits() -> list[Shown]:
    """Each bit of a checkpoint in turn."""
    loss = li.losses.logistic(feature_norm=1.0)
    run = li.Run(loss, li.Shuffled(_RECORDS, 4), 0.5, li.OnMeanGradient(0.1), 6)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state"
        _killed(run, file)
        content = file.read_bytes()
        loaded = 0
        for bit in range(8 * len(content)):
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            file.write_bytes(bytes(changed))
            loaded += refusal(lambda: li.train(run, _DATA, checkpoint=file)) is None
    what = f"a checkpoint with one of its {8 * len(content)} bits flipped"
    return [Shown(what, "never loaded", f"loaded {loaded} times", loaded == 0)]


def _killed(run: li.Run, file: Path) -> None:
    """A training that dies in its fourth step, and leaves its checkpoint."""
    whole = walk.TrainingStep.__call__

    def cut(self: Any, step: int, *rest: Any) -> Any:
        if step == 4:
            raise KeyboardInterrupt
        return whole(self, step, *rest)

    walk.TrainingStep.__call__ = cut  # type: ignore[method-assign]
    try:
        li.train(run, _DATA, checkpoint=file, checkpoint_every=0)
    except KeyboardInterrupt:
        pass
    finally:
        walk.TrainingStep.__call__ = whole  # type: ignore[method-assign]


def networks_that_remember() -> list[Shown]:
    import torch

    module = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 2))

    def trained() -> None:
        run = li.Run(li.losses.network(clip=1.0), li.FullBatch(_RECORDS), 0.1, li.OnIterate(0.1), 2)
        rows, labels = torch.as_tensor(_DATA[0]).float(), torch.as_tensor(_DATA[1] > 0).long()
        data = torch.utils.data.TensorDataset(rows, labels)
        li.torch.PrivateTrainer(module, torch.nn.functional.cross_entropy, run, data).fit()

    return [refused("spectral norm, whose vectors are not parameters", trained, "eval")]


def labels_beyond_single_precision() -> list[Shown]:
    run = li.Run(li.losses.huber(feature_norm=1.0), li.FullBatch(1), 0.5, li.OnIterate(0.1), 1)
    rows = np.ones((1, 1), np.float32)
    return [refused("a label of 1e39 in single precision", lambda: li.train(run, (rows, [1e39])), "targets")]


def each_and_everybody() -> list[Shown]:
    loss = li.losses.logistic(feature_norm=1.0)
    run = li.Run(loss, li.Cyclic(40, 10), 0.5, li.OnMeanGradient(0.2), 4000, li.Ball(radius=0.2))
    worst, everybody = li.account_each(run, 1e-5).worst, li.account(run, 1e-5).epsilon
    return [Shown("the worst record's own epsilon", f"<= {everybody:.4f}", f"{worst:.4f}", worst <= everybody)]


LEAKS = (
    seeded_and_traced_samples,
    gradients_beyond_what_is_declared,
    one_long_row,
    flipped_bits,
    networks_that_remember,
    labels_beyond_single_precision,
    each_and_everybody,
)
