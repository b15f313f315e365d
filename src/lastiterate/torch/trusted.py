"""A thing that a training takes from outside: a row of a table that is checked, documented and tested."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from lastiterate.facts import fact


@dataclass(frozen=True)
class Trusted:
    """A row: `needed` is the code of what must hold; `check` raises an error at a step where it does not.

    `assumed`: the codes of what the report states of it, where it applies, because nothing can check it.
    """

    name: str
    needed: str
    check: Callable[[Any], None] | None = None
    assumed: tuple[str, ...] = ()


def check_all(table: tuple[Trusted, ...], step: Any) -> None:
    """Check every entry that can be checked, in the order of the table."""
    for entry in table:
        if entry.check is not None:
            entry.check(step)


# Seeds: whoever knows one can repeat PyTorch's random numbers.


_TYPED_BY_HAND = 2**41  # a time in milliseconds is below; one in eight million seeds from the operating system is, too
_OF_A_NEW_GENERATOR = torch.Generator().initial_seed()  # the same for all of them
ORDER_SEEDED = fact("order_seeded")


def seeded(generator: Any, device: Any = None) -> bool:
    """Whether a generator has a seed that was typed, or that all new generators have; None is PyTorch's own."""
    seed = _generator(generator, device).initial_seed()
    return bool(seed < _TYPED_BY_HAND or seed == _OF_A_NEW_GENERATOR)


class SeedWatch:
    """Watch on a generator during a training: a seed that is set on the way makes its numbers known."""

    def __init__(self, generator: Any, device: Any = None) -> None:
        self._generator, self._device = generator, device
        self._seed: int | None = None
        self._states: set[bytes] = set()

    def repeatable(self, *, drawn: bool) -> bool:
        """Whether the generator is seeded, was seeded since the last look, or is where it was at an earlier look.

        `drawn`: numbers were drawn since the last look, so that its state has to be a new one.
        """
        generator = _generator(self._generator, self._device)
        before, self._seed = self._seed, generator.initial_seed()
        again = before not in (None, self._seed)
        if drawn:
            state = hashlib.blake2b(generator.get_state().numpy().tobytes(), digest_size=8).digest()
            again = again or state in self._states
            self._states.add(state)
        return again or seeded(self._generator, self._device)


def _generator(generator: Any, device: Any) -> Any:
    """Return the generator itself, or PyTorch's own for this device."""
    if generator is None and device is not None and device.type == "cuda":
        return torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
    return torch.default_generator if generator is None else generator
