"""Random runs in one dimension, each as a process for the theorems and as a chain that is computed exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

import lastiterate as li
from lastiterate.algorithms.process import Process
from lastiterate.auditing.chain import Chain, cyclic_hazard, iid_hazard, shuffled_hazard

_WIDE = 60.0  # in units of the noise, for runs without a domain


@dataclass(frozen=True)
class Instance:
    process: Process
    chain: Chain


def random_instance(source: np.random.Generator, most_steps: int = 120) -> Instance:
    """Any batches, contracting, convex or not, bounded or not: a record that pushes as hard as it may."""
    steps = int(source.integers(1, most_steps))
    shape = str(source.choice(["linear", "linear", "drifting", "two wells", "steep"]))
    push, drift = float(10 ** source.uniform(-1.5, 0.3)), float(10 ** source.uniform(-1.5, 0.7))
    drift = max(drift, push)
    retain = 1.0
    if shape == "linear":
        lipschitz = float(source.choice([1.0, 1 - 10 ** source.uniform(-3, -0.3)]))
        middle, drift = (lambda x: lipschitz * x), math.inf
    elif shape == "drifting":
        lipschitz, pull = 1.0, float(source.uniform(0, 1))
        middle, drift = (lambda x: x + pull), math.inf
    elif shape == "two wells":
        lipschitz, retain = math.inf, float(source.choice([1.0, 0.9, 0.5, 0.1]))
        room = (drift - push) / 2
        middle = lambda x: retain * x + room * np.where(x >= 0, 1.0, -1.0)  # noqa: E731
    else:
        lipschitz, room = float(source.uniform(1.01, 1.5)), (drift - push) / 2
        middle = lambda x: np.clip(lipschitz * x, x - room, x + room)  # noqa: E731
    bounded = shape in ("drifting", "steep") or (shape == "two wells" and retain == 1) or source.random() < 0.7
    diameter = float(10 ** source.uniform(-0.5, 1.2)) if bounded else math.inf
    batches, hazard, per_epoch, half = _batches(source, steps)
    up, down = (push / 2, -push / 2) if half else (push, 0.0)
    turned = -1.0 if source.random() < 0.5 else 1.0
    chain = Chain(
        middle,
        lambda x: middle(x) + turned * up,
        lambda x: middle(x) + turned * down,
        np.ones(steps),
        hazard,
        diameter if bounded else _WIDE,
        per_epoch,
    )
    values = {
        name: np.broadcast_to(np.float64(value), steps) for name, value in _numbers(push, lipschitz, drift, retain)
    }
    process = Process(batches, diameter=diameter, reason="the test", dimension=1, **values)
    return Instance(process, chain)


def _numbers(push: float, lipschitz: float, drift: float, retain: float) -> list[tuple[str, float]]:
    return [
        ("sensitivity", push),
        ("noise", 1.0),
        ("lipschitz", lipschitz),
        ("drift", drift),
        ("retain", retain),
        ("sampled", push),
    ]


def _batches(source: np.random.Generator, steps: int) -> tuple[object, np.ndarray, int, bool]:
    """The batches, when the record is met, the length of an epoch, and whether the record must push both ways alike."""
    kind = int(source.integers(6))
    if kind == 0:
        return li.FullBatch(records=100), iid_hazard(1.0, steps), 1, bool(source.random() < 0.5)
    if kind == 1:
        every = int(source.integers(2, 8))
        place = int(source.integers(every))
        return li.Cyclic(records=every * 10, batch_size=10), cyclic_hazard(every, place, steps), every, True
    if kind == 2:
        every = int(source.integers(2, 8))
        return li.Shuffled(records=every * 10, batch_size=10), shuffled_hazard(every, steps), every, True
    rate = float(source.choice([0.01, 0.1, 0.3, 0.7]))
    if kind == 3:
        return li.Poisson(records=100, rate=rate), iid_hazard(rate, steps), 1, True
    batches = li.FixedSize(records=100, batch_size=round(100 * rate))
    return batches, iid_hazard(rate, steps), 1, bool(source.random() < 0.5)


def with_noise(instance: Instance, factor: float) -> Instance:
    """The same run with its noise scaled."""
    process = replace(instance.process, noise=instance.process.noise * factor)
    return Instance(process, replace(instance.chain, noise=instance.chain.noise * factor))
