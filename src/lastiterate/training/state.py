"""Where a training stands, and what a state has to be to belong to one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from lastiterate.numerics.arrays import Floats
from lastiterate.numerics.randomness import Source
from lastiterate.runs.encode import run_to_dict
from lastiterate.runs.run import Run
from lastiterate.training.data import Data
from lastiterate.training.fingerprint import array_fingerprint, fingerprint


class Standing(Protocol):
    """What a step has to know of a state."""

    @property
    def step(self) -> int: ...

    @property
    def weights(self) -> Any: ...

    @property
    def memory(self) -> tuple[Any, ...]: ...


@dataclass(frozen=True, eq=False)
class State:
    """Where a training stands: after `step` steps, with the iterates that will be released, and what random numbers need.

    `memory`: what the optimiser remembers, and the average that will be released.
    """

    step: int
    weights: Floats
    released: tuple[Floats, ...] = ()
    order: np.ndarray | None = None
    randomness: Any = None
    memory: tuple[Floats, ...] = ()

    @property
    def arrays(self) -> tuple[Floats, ...]:
        """All that are like the weights."""
        return self.weights, *self.memory, *self.released

    @property
    def finite(self) -> bool:
        return all(np.isfinite(one).all() for one in self.arrays)


@dataclass(frozen=True, eq=False)
class Training:
    """All that a training was asked for. Two with the same `identity` differ in their noise alone."""

    run: Run
    data: Data
    start: Floats
    releases: tuple[int, ...]
    seed: int | None
    loss: Callable[..., Any] | None = None
    classes: int | None = None
    precision: Any = None

    @cached_property
    def identity(self) -> str:
        told = [
            run_to_dict(self.run),
            list(self.releases),
            fingerprint([self.seed, self.classes]),
            str(np.dtype(self.precision)),
            None if self.loss is None else fingerprint(self.loss),
            *self.data.fingerprints(),
            array_fingerprint(self.start),
        ]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    @property
    def remembered(self) -> int:
        """So many arrays are remembered beside the weights."""
        return self.run.optimizer.slots + self.run.released.slots

    def releases_until(self, step: int) -> int:
        """So many iterates have been kept for their release after `step` steps."""
        return sum(place <= step for place in self.releases)

    def has_order(self, step: int) -> bool:
        """Whether an order of the records has been drawn by then; it is kept until the next is."""
        return self.run.batches.shuffled and step > 0

    def allows(self, state: State) -> bool:
        """Whether this training can be where the state says."""
        return (
            0 <= state.step <= self.run.steps
            and len(state.released) == self.releases_until(state.step)
            and len(state.memory) == self.remembered
            and all(one.shape == self.start.shape and one.dtype == np.float64 for one in state.arrays)
            and state.finite
            and self._allows_order(state)
            and self._allows_randomness(state.randomness)
        )

    def _allows_order(self, state: State) -> bool:
        if state.order is None or not self.has_order(state.step):
            return state.order is None and not self.has_order(state.step)
        return state.order.dtype.kind == "i" and self.run.batches.allows_order(state.order)

    def _allows_randomness(self, randomness: Any) -> bool:
        """Without a seed there is nothing to go on with; with one, a source has to take it as it is."""
        if self.seed is None or randomness is None:
            return self.seed is None and randomness is None
        source = Source(self.seed)
        try:
            source.go_on(randomness)
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
            return False
        return bool(source.state() == randomness)
