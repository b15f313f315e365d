"""What an execution by Opacus rests on, and what is wrong with it: seeds, generators, precision, what was not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from opacus.optimizers import DPOptimizer

from lastiterate.adapters.opacus.hidden import Hiding, limit_of, precision_of
from lastiterate.torch.seeded import ORDER_SEEDED, seeded

NOISE_SEEDED = (
    "DO NOT RELEASE: the noise came from a seeded PyTorch generator, and anyone who knows the seed can subtract it; call "
    "torch.seed() before training"
)
_EXACT = (
    "The arithmetic of Opacus and PyTorch is treated as exact: epsilon does not include the {precision} rounding of "
    "gradients, their sums and the noise."
)
_HIDING = {
    Hiding.UNUSED: "",
    Hiding.CHARGED: " It includes the rounding of hidden weights.",
    Hiding.ASSUMED: " Nor that of hidden weights and of the optimiser's state, which was measured to be small.",
    Hiding.TOO_COARSE: (
        " Every iterate is accounted as released, because the rounding of weights is not small compared with the noise, or "
        "could not be measured; train in double precision."
    ),
}
_REDUCED = "The criterion reduces the loss as loss_reduction says, so each record's gradient is clipped separately."
_WHOLE = "Every epoch uses the whole loader that make_private returned, once and in order."
_INSECURE = (
    "Nobody can predict PyTorch's generator, which drew noise and batches and is not cryptographic (secure_mode=False), and "
    "nobody can recover the noise from the low bits of the released weights."
)
_CUT_UP = "The parts of a batch that BatchMemoryManager has split belong to one batch of the loader."
_LOADER_UNSEEN = "The loader, which the accountant could not check, draws the batches of the run."
_STEPS_UNSEEN = (
    "For {count} steps the accountant could not check the optimiser: its update, learning rate and clip are those of the "
    "run."
)


@dataclass(frozen=True)
class Dealer:
    """Where the loader takes its random choices from: a generator of its own, PyTorch's (None), or there are none."""

    random: bool
    generator: torch.Generator | None = None

    @property
    def seeded(self) -> bool:
        return self.random and seeded(self.generator)


@dataclass(frozen=True)
class Circumstances:
    """As seen so far, at all steps together."""

    precision: str = "floating point"
    secure: bool = True
    noise_seeded: bool = False
    order_seeded: bool = False
    squared_straying: float = 0.0
    loader_seen: bool = True
    cut_up: bool = False
    unseen_steps: int = 0

    def with_step(self, optimizer: DPOptimizer | None, dealer: Dealer | None, strayed: float = 0.0) -> Circumstances:
        """One step more, of an optimiser and a loader as far as they are known; `strayed` as in `squared_straying`."""
        seen = self.loader_seen and dealer is not None
        if optimizer is None:
            return replace(self, unseen_steps=self.unseen_steps + 1, secure=False, loader_seen=seen)
        secure, weights = bool(optimizer.secure_mode), optimizer.params[0]
        noise_seeded = not secure and seeded(optimizer.generator, weights.device)
        order_seeded = not secure and dealer is not None and dealer.seeded
        return replace(
            self,
            precision=str(precision_of(optimizer)).removeprefix("torch."),
            secure=self.secure and secure,
            noise_seeded=self.noise_seeded or noise_seeded,
            order_seeded=self.order_seeded or order_seeded,
            squared_straying=self.squared_straying + strayed,
            loader_seen=seen,
            cut_up=self.cut_up or bool(optimizer._is_last_step_skipped),
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        return (*((NOISE_SEEDED,) if self.noise_seeded else ()), *((ORDER_SEEDED,) if self.order_seeded else ()))

    @property
    def rounding(self) -> float | None:
        """What is charged for the rounding of hidden weights; None where it is too much, or was not seen."""
        return None if self.unseen_steps else limit_of(self.precision, math.sqrt(self.squared_straying))

    def assumed(self, hiding: Hiding, passes: bool) -> tuple[str, ...]:
        """Beside what the run promises."""
        lines = [_EXACT.format(precision=self.precision) + _HIDING[hiding], _REDUCED]
        lines += [_WHOLE] if passes else []
        lines += [] if self.secure else [_INSECURE]
        lines += [_CUT_UP] if self.cut_up else []
        lines += [] if self.loader_seen else [_LOADER_UNSEEN]
        lines += [_STEPS_UNSEEN.format(count=self.unseen_steps)] if self.unseen_steps else []
        return tuple(lines)
