"""What an execution by Opacus rests on, and what is wrong with it: seeds, generators, precision, what was not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from opacus.optimizers import DPOptimizer

from lastiterate.adapters.opacus.hidden import Hiding, limit_of, precision_of
from lastiterate.torch.seeded import ORDER_SEEDED, seeded

NOISE_SEEDED = (
    "DO NOT RELEASE: the noise came from a seeded PyTorch generator, so whoever knows the seed can take it off; call "
    "torch.seed() before training"
)
_EXACT = (
    "The arithmetic of Opacus and PyTorch is taken as exact: what {precision} rounds in gradients, their sums and the noise "
    "is not included in epsilon."
)
_HIDING = {
    Hiding.UNUSED: "",
    Hiding.CHARGED: " The rounding of hidden weights is included.",
    Hiding.ASSUMED: " Nor is the rounding of hidden weights and of the optimiser's memory, which was seen to be small.",
    Hiding.TOO_COARSE: (
        " Hidden iterates are not made use of, because the rounding of weights is not small beside the noise, or was not "
        "seen; train in double precision."
    ),
}
_REDUCED = "The criterion reduces as loss_reduction says, so that what is clipped is each record's own gradient."
_WHOLE = "Every epoch goes through the whole loader that make_private returned, once and in its order."
_INSECURE = (
    "Noise and batches came from PyTorch's own generator (secure_mode=False), which is not cryptographic: that nobody can "
    "predict it, and that nobody reads the noise off the low bits of what is released, is assumed."
)
_CUT_UP = "The parts of a batch that was cut up (BatchMemoryManager) are those of one batch of the loader."
_LOADER_UNSEEN = "The loader deals the batches of the run: it was not seen."
_STEPS_UNSEEN = "Of {count} steps the optimiser was not seen: its update, learning rate and clip are those of the run."


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
