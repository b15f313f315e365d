"""What an execution by Opacus rests on, and what is wrong with it: seeds, generators, precision, what was not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from opacus.optimizers import DPOptimizer

from lastiterate.adapters.opacus.hidden import Hiding, limit_of, precision_of
from lastiterate.adapters.opacus.setup import Setup
from lastiterate.torch.seeded import ORDER_SEEDED, seeded

NOISE_SEEDED = (
    "DO NOT RELEASE: the noise came from a seeded PyTorch generator, and anyone who knows the seed can subtract it; call "
    "torch.seed() before training"
)
EXACT = (
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
REDUCED = "The criterion reduces the loss as loss_reduction says, so each record's gradient is clipped separately."
UNCHANGED = "Between the loader that make_private returned and the model, no record is exchanged for another."
INSECURE = (
    "Nobody can predict PyTorch's generator, which drew noise and batches and is not cryptographic (secure_mode=False): its "
    "seed came from the operating system. Nobody can recover the noise from the low bits of the released weights."
)
COLLATED = "What the collate function of the loader makes of a record does not depend on the rest of its batch."
RESUMED = "Weights and optimiser were those saved with the accountant's state when the training was resumed from it."
LOADER_UNSEEN = "The loader, which the accountant could not check, draws the batches of the run."
STEPS_UNSEEN = (
    "For {count} steps the accountant could not check the optimiser: its update, learning rate and clip are those of the "
    "run."
)


@dataclass(frozen=True)
class Circumstances:
    """As seen so far, at all steps together."""

    precision: str = "floating point"
    secure: bool = True
    noise_seeded: bool = False
    order_seeded: bool = False
    squared_straying: float = 0.0
    loader_seen: bool = True
    collated: bool = False
    resumed: bool = False
    unseen_steps: int = 0

    def with_step(self, optimizer: DPOptimizer | None, setup: Setup | None, strayed: float = 0.0) -> Circumstances:
        """One step more, of an optimiser and a setup as far as they are known; `strayed` as in `squared_straying`."""
        seen = self.loader_seen and setup is not None
        if optimizer is None:
            return replace(self, unseen_steps=self.unseen_steps + 1, secure=False, loader_seen=seen)
        secure = bool(optimizer.secure_mode)
        noise_seeded, order_seeded = (False, False) if secure else _seeds(optimizer, setup)
        return replace(
            self,
            precision=str(precision_of(optimizer)).removeprefix("torch."),
            secure=self.secure and secure,
            noise_seeded=self.noise_seeded or noise_seeded,
            order_seeded=self.order_seeded or order_seeded,
            squared_straying=self.squared_straying + strayed,
            loader_seen=seen,
            collated=self.collated or (setup is not None and setup.collates),
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        return (*((NOISE_SEEDED,) if self.noise_seeded else ()), *((ORDER_SEEDED,) if self.order_seeded else ()))

    @property
    def rounding(self) -> float | None:
        """What is charged for the rounding of hidden weights; None where it is too much, or was not seen."""
        return None if self.unseen_steps else limit_of(self.precision, math.sqrt(self.squared_straying))

    def assumed(self, hiding: Hiding) -> tuple[str, ...]:
        """The lines of the report on what nothing could check, beside what the run promises."""
        lines = {
            EXACT.format(precision=self.precision) + _HIDING[hiding]: True,
            REDUCED: True,
            UNCHANGED: True,
            INSECURE: not self.secure,
            COLLATED: self.collated,
            RESUMED: self.resumed,
            LOADER_UNSEEN: not self.loader_seen,
            STEPS_UNSEEN.format(count=self.unseen_steps): self.unseen_steps > 0,
        }
        return tuple(line for line, applies in lines.items() if applies)


def _seeds(optimizer: DPOptimizer, setup: Setup | None) -> tuple[bool, bool]:
    """Whether the noise of this step, and its batch, came from numbers that somebody could repeat."""
    if setup is None:
        return seeded(optimizer.generator, optimizer.params[0].device), False
    return setup.noise.repeatable(drawn=True), setup.order is not None and setup.order.repeatable(drawn=setup.new_pass)
