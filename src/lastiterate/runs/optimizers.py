"""Optimisers, which map noisy gradients to iterates, and what is released: the last iterate or an average."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lastiterate.errors import POSITIVE, Interval, InvalidInput, checked_count, checked_number, must_be, shown
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.named import names_arguments

# Optimisers: plain steps, momentum, Adam, or anything else computed from noisy gradients.
#
# Units are those of a plain step: `noise` on the iterate is what one noisy gradient, times the step size, adds to it.


_BELOW_ONE = Interval(0.0, 1.0, low_included=True, high_included=False)


@dataclass(frozen=True)
class LinearFilter:
    """An optimiser that is a linear filter of its steps −step_size·(noisy gradient), written by a sequence p.

    Step t is Σ steps[i]·p_{t−i}; the point where the next gradient is taken is Σ point[i]·p_{t−i}, and what is released, but
    for a factor, is made of the first `taps` of p alone. Any p that is 0 before the start is possible.
    """

    steps: tuple[float, ...] = (1.0, -1.0)
    point: tuple[float, ...] = (1.0,)
    taps: int = 1

    def averaged(self, kept: float) -> LinearFilter:
        """Return the filter whose release is y_t = kept·y_{t−1} + point instead of the point."""
        factor = (1.0, -kept)
        return LinearFilter(_product(self.steps, factor), _product(self.point, factor), len(self.point))


def _product(one: tuple[float, ...], two: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(np.convolve(one, two).tolist())


Memory = tuple[Floats, ...]


@dataclass(frozen=True)
class At:
    """A step, counted from 0: its size, its ratio to the size before, and the share of weights that decay removes."""

    step: int
    size: float = 1.0
    ratio: float = 1.0
    shrink: float = 0.0


class Optimizer(ABC):
    """A map from noisy gradients to iterates. `kind` is its name in files, `slots` its number of arrays of memory."""

    kind: ClassVar[str]
    slots: ClassVar[int] = 0

    @property
    def plain(self) -> bool:
        """Whether it is x ← x − step_size·(noisy gradient)."""
        return False

    @property
    def linear(self) -> LinearFilter | None:
        """The linear filter of the noisy gradients that the optimiser is, or None if it is not linear."""
        return None

    @property
    @abstractmethod
    def fact(self) -> Fact:
        """The optimiser and its numbers, as a fact."""

    @property
    def described(self) -> str:
        """Describe the optimiser in a few words, with its numbers."""
        return str(self.fact)

    decoupled: bool = False
    """Whether weights decay beside its steps, and not by a term of the gradient."""

    noise_factor: float = 1.0
    """By which the noise of a noisy gradient is multiplied where it enters."""

    def noised(self, x: Floats, taken: Floats, memory: Memory, ratio: float) -> Floats:
        """Return what gets the noise; `taken` is −step_size·(gradient), `ratio` this step size over the one before."""
        return taken

    @abstractmethod
    def settled(self, x: Floats, noised: Floats, memory: Memory, at: At) -> tuple[Floats, Memory]:
        """Return the next iterate and memory from the value that got the noise."""

    def moved(self, x: Floats, taken: Floats, memory: Memory, at: At) -> tuple[Floats, Memory]:
        """Make a whole step: return the next iterate and memory, where `taken` is −step_size·(noisy gradient)."""
        return self.settled(x, self.noised(x, taken, memory, at.ratio), memory, at)

    def as_released(self, x: Floats, memory: Memory, ratio: float) -> tuple[float, Floats | float]:
        """Return (factor, offset) with which the next iterate is factor·(what got the noise) + offset."""
        return 1.0, 0.0


@names_arguments
@dataclass(frozen=True, kw_only=True)
class SGD(Optimizer):
    """v ← momentum·v + (1 − dampening)·g, x ← x − step_size·v; with `nesterov`, x ← x − step_size·(g + momentum·v).

    Like torch.optim.SGD, but v starts at 0, so the first step is dampened like all others.
    """

    momentum: float = 0.0
    nesterov: bool = False
    dampening: float = 0.0
    kind: ClassVar[str] = "sgd"

    def __post_init__(self) -> None:
        for name in ("momentum", "dampening"):
            object.__setattr__(self, name, checked_number(name, getattr(self, name), _BELOW_ONE))
        if not isinstance(self.nesterov, bool):
            raise must_be("nesterov", "True or False", f"{shown(self.nesterov):.60}")
        if self.nesterov and (not self.momentum or self.dampening):
            momentum, dampening = self.momentum, self.dampening
            raise InvalidInput("nesterov_needs_momentum", field="nesterov", momentum=momentum, dampening=dampening)
        if self.dampening and not self.momentum:
            raise InvalidInput("dampening_needs_momentum", field="dampening", dampening=self.dampening)

    @property
    def plain(self) -> bool:
        return self.momentum == 0

    @property
    def slots(self) -> int:  # type: ignore[override]
        """Number of arrays remembered: with momentum one, the last step."""
        return 0 if self.plain else 1

    @property
    def linear(self) -> LinearFilter:
        """Linear filter whose sequence p is the iterate; with `nesterov`, the iterate before its look ahead."""
        if self.plain:
            return LinearFilter()
        steps = tuple(one / (1 - self.dampening) for one in _product((1.0, -1.0), (1.0, -self.momentum)))
        if not self.nesterov:
            return LinearFilter(steps)
        return LinearFilter(steps, (1 + self.momentum, -self.momentum), taps=2)

    @property
    def fact(self) -> Fact:
        return fact("sgd", momentum=self.momentum, nesterov=self.nesterov, dampening=self.dampening)

    @property
    def noise_factor(self) -> float:  # type: ignore[override]
        return 1 - self.dampening

    def noised(self, x: Floats, taken: Floats, memory: Memory, ratio: float) -> Floats:
        """Return the iterate, so that rounding happens once after the noise; with `nesterov`, before its look ahead."""
        if self.plain or self.nesterov:
            return x + taken
        found = (self.momentum * ratio) * memory[0]
        found += x
        found += taken if not self.dampening else (1 - self.dampening) * taken
        return found

    def settled(self, x: Floats, noised: Floats, memory: Memory, at: At) -> tuple[Floats, Memory]:
        if self.plain:
            return noised, ()
        if not self.nesterov:
            return noised, (noised - x,)
        last = (noised - x) + (self.momentum * at.ratio) * memory[0]
        return noised + self.momentum * last, (last,)

    def as_released(self, x: Floats, memory: Memory, ratio: float) -> tuple[float, Floats | float]:
        if not self.nesterov:
            return 1.0, 0.0
        ahead = self.momentum
        return 1 + ahead, ahead * ((ahead * ratio) * memory[0] - x)


@names_arguments
@dataclass(frozen=True, kw_only=True)
class Adam(Optimizer):
    """torch.optim.Adam, or torch.optim.AdamW if the weight decay is `decoupled`."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    decoupled: bool = False
    kind: ClassVar[str] = "adam"
    slots: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not isinstance(self.betas, tuple | list) or len(self.betas) != 2:
            raise must_be("betas", "two numbers, such as (0.9, 0.999)", f"{shown(self.betas):.60}")
        object.__setattr__(self, "betas", tuple(checked_number("betas", one, _BELOW_ONE) for one in self.betas))
        object.__setattr__(self, "eps", checked_number("eps", self.eps, POSITIVE))
        if not isinstance(self.decoupled, bool):
            raise must_be("decoupled", "True or False", f"{shown(self.decoupled):.60}")

    @property
    def fact(self) -> Fact:
        return fact("adamw" if self.decoupled else "adam", beta1=self.betas[0], beta2=self.betas[1])

    def settled(self, x: Floats, noised: Floats, memory: Memory, at: At) -> tuple[Floats, Memory]:
        gradient, (of_mean, of_square) = noised / -at.size, self.betas
        first = of_mean * memory[0] + (1 - of_mean) * gradient
        second = of_square * memory[1] + (1 - of_square) * np.square(gradient)
        mean, square = first / (1 - of_mean ** (at.step + 1)), second / (1 - of_square ** (at.step + 1))
        return (1 - at.shrink) * x - at.size * mean / (np.sqrt(square) + self.eps), (first, second)


@dataclass(frozen=True)
class OtherOptimizer(Optimizer):
    """Any other optimiser, by its name: it may compute anything from noisy gradients, and nothing else."""

    name: str
    kind: ClassVar[str] = "other"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise must_be("name", "the name of an optimiser", f"{shown(self.name):.60}")

    @property
    def fact(self) -> Fact:
        return fact("optimizer_named", name=self.name)

    def settled(self, x: Floats, noised: Floats, memory: Memory, at: At) -> tuple[Floats, Memory]:
        raise InvalidInput("update_unknown", field="optimizer", name=self.name)


PLAIN = SGD()
_BY_NAME = {"sgd": SGD, "adam": Adam}


def optimizer_of(value: Any) -> Optimizer:
    """Return the optimiser given as None, as an optimiser or by a name."""
    if value is None:
        return PLAIN
    if isinstance(value, str):
        known = _BY_NAME.get(value.strip().lower())
        if value.strip().lower() == "adamw":
            return Adam(decoupled=True)
        return OtherOptimizer(value) if known is None else known()
    if not isinstance(value, Optimizer):
        raise InvalidInput("not_an_optimizer", field="optimizer", got=f"{shown(value):.60}")
    return value


# Releases: the last iterate, or an average.


_INSIDE = Interval(0.0, 1.0, low_included=False, high_included=False)


class Released(ABC):
    """A choice of what is released at the end and at checkpoints; `kind` is its name in files."""

    kind: ClassVar[str]

    @property
    def called(self) -> str:
        """Name of what is released, for the middle of a sentence."""
        from lastiterate.report.english import released

        return released(self.kind, self.parameter)

    @property
    def parameter(self) -> float | None:
        """Number that a release has besides its kind, if there is one."""
        return None

    @property
    def plain(self) -> bool:
        """Whether it is the last iterate."""
        return False

    @abstractmethod
    def filtered(self, linear: LinearFilter) -> LinearFilter:
        """Return the filter of what is released once averaging has begun."""

    def begins(self, steps: int) -> int:
        """Number of steps before the average begins."""
        return 0

    @property
    def slots(self) -> int:
        """Number of arrays that an average keeps: itself, and what its sum has rounded off."""
        return 2

    def weight(self, step: int, steps: int) -> float:
        """Weight of the iterate of this step, counted from 0, in the update of the average."""
        return 1.0


@dataclass(frozen=True)
class Last(Released):
    """Release the last iterate."""

    kind: ClassVar[str] = "last"

    @property
    def plain(self) -> bool:
        return True

    @property
    def slots(self) -> int:
        return 0

    def filtered(self, linear: LinearFilter) -> LinearFilter:
        return linear


@dataclass(frozen=True)
class EMA(Released):
    """y ← decay·y + (1 − decay)·x after every step, from y = the start; y is released, and no x."""

    decay: float
    kind: ClassVar[str] = "ema"

    def __post_init__(self) -> None:
        object.__setattr__(self, "decay", checked_number("decay", self.decay, _INSIDE))

    @property
    def parameter(self) -> float | None:
        return self.decay

    def filtered(self, linear: LinearFilter) -> LinearFilter:
        return linear.averaged(self.decay)

    def weight(self, step: int, steps: int) -> float:
        return 1 - self.decay


@dataclass(frozen=True)
class Average(Released):
    """Release the mean of the `last` iterates, of all by default, and no iterate itself."""

    last: int | None = None
    kind: ClassVar[str] = "average"

    def __post_init__(self) -> None:
        if self.last is not None:
            object.__setattr__(self, "last", checked_count("last", self.last))

    @property
    def parameter(self) -> float | None:
        return self.last

    def filtered(self, linear: LinearFilter) -> LinearFilter:
        return linear.averaged(1.0)

    def begins(self, steps: int) -> int:
        return 0 if self.last is None else max(steps - self.last, 0)

    def weight(self, step: int, steps: int) -> float:
        """Weight of the newest iterate in a growing mean: 1, 1/2, 1/3, …; before it begins, the mean is the iterate."""
        return 1 / max(step + 1 - self.begins(steps), 1)


LAST = Last()
AVERAGE = Average
