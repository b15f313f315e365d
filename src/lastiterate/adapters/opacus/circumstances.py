"""What an execution by Opacus rests on, and what is wrong with it: seeds, generators, precision, what was not seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from opacus.optimizers import DPOptimizer

_TYPED_BY_HAND = 2**32  # below are one in four billion of the seeds that PyTorch takes from the operating system
_OF_A_NEW_GENERATOR = torch.Generator().initial_seed()  # the same for all of them

NOISE_SEEDED = (
    "DO NOT RELEASE: the noise came from a seeded PyTorch generator, so whoever knows the seed can take it off; call "
    "torch.seed() before training"
)
ORDER_SEEDED = (
    "DO NOT RELEASE: batches came from a seeded PyTorch generator, so whoever knows the seed knows which records each step "
    "used; call torch.seed() before training, or give the loader no generator"
)
_EXACT = (
    "The arithmetic of Opacus and PyTorch is taken as exact: what {precision} rounds in gradients, sums, noise and weights "
    "is not included in epsilon."
)
_HIDDEN = " Where the account relies on hidden iterates, this includes the rounding of every hidden iterate."
_REDUCED = "The criterion reduces as loss_reduction says, so that what is clipped is each record's own gradient."
_WHOLE = "Every epoch goes through the whole loader that make_private returned, once and in its order."
_INSECURE = (
    "Noise and batches came from PyTorch's own generator (secure_mode=False), which is not cryptographic: that nobody can "
    "predict it, and that nobody reads the noise off the low bits of what is released, is assumed."
)
_LOADER_UNSEEN = "The loader deals the batches of the run: it was not seen."
_STEPS_UNSEEN = "Of {count} steps the optimiser was not seen: its update, learning rate and clip are those of the run."


@dataclass(frozen=True)
class Circumstances:
    """As seen so far, at all steps together."""

    precision: str = "floating point"
    secure: bool = True
    noise_seeded: bool = False
    order_seeded: bool = False
    order_by_pytorch: bool = False
    loader_seen: bool = False
    unseen_steps: int = 0

    def with_loader(self, generator: torch.Generator | None, random: bool) -> Circumstances:
        """`generator`: of a loader whose choices are `random`; None for PyTorch's own, which is looked at when it is used."""
        seeded = random and generator is not None and _seeded(generator)
        own = random and generator is None
        return replace(
            self, loader_seen=True, order_seeded=self.order_seeded or seeded, order_by_pytorch=self.order_by_pytorch or own
        )

    def with_step(self, optimizer: DPOptimizer | None) -> Circumstances:
        if optimizer is None:
            return replace(self, unseen_steps=self.unseen_steps + 1, secure=False)
        secure, weights = bool(optimizer.secure_mode), optimizer.params[0]
        return replace(
            self,
            precision=str(weights.dtype).removeprefix("torch."),
            secure=self.secure and secure,
            noise_seeded=self.noise_seeded or (not secure and _seeded(optimizer.generator, weights.device)),
            order_seeded=self.order_seeded or (not secure and self.order_by_pytorch and _seeded(None)),
        )

    def after(self, earlier: Circumstances) -> Circumstances:
        """Those of a training that goes on: `earlier` as in its checkpoint, these as `make_private` has just seen them."""
        return replace(
            earlier,
            order_seeded=earlier.order_seeded or self.order_seeded,
            order_by_pytorch=earlier.order_by_pytorch or self.order_by_pytorch,
            loader_seen=earlier.loader_seen and self.loader_seen,
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        return (*((NOISE_SEEDED,) if self.noise_seeded else ()), *((ORDER_SEEDED,) if self.order_seeded else ()))

    def assumed(self, hidden: bool, passes: bool) -> tuple[str, ...]:
        """Beside what the run promises; `hidden`: the account is about the last iterate, and not about all of them."""
        lines = [_EXACT.format(precision=self.precision) + (_HIDDEN if hidden else ""), _REDUCED]
        lines += [_WHOLE] if passes else []
        lines += [] if self.secure else [_INSECURE]
        lines += [] if self.loader_seen else [_LOADER_UNSEEN]
        lines += [_STEPS_UNSEEN.format(count=self.unseen_steps)] if self.unseen_steps else []
        return tuple(lines)

    @property
    def plain(self) -> dict[str, Any]:
        return asdict(self)


def _seeded(generator: torch.Generator | None, device: torch.device | None = None) -> bool:
    """Whether it has a seed that somebody typed, or that all new generators have."""
    if generator is None and device is not None and device.type == "cuda":
        seed = torch.cuda.initial_seed()
    else:
        seed = torch.initial_seed() if generator is None else generator.initial_seed()
    return seed < _TYPED_BY_HAND or seed == _OF_A_NEW_GENERATOR
