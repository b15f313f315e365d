"""What an execution by Opacus rests on, and what is wrong with it: seeds, generators, precision, what was not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from opacus.optimizers import DPOptimizer

from lastiterate.adapters.opacus.hidden import Hiding, limit_of, precision_of
from lastiterate.adapters.opacus.setup import Setup
from lastiterate.facts import Basis, Fact, fact
from lastiterate.torch.seeded import ORDER_SEEDED, seeded

NOISE_SEEDED = fact("noise_seeded", generator="torch")


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
    def caveats(self) -> tuple[Fact, ...]:
        return (*((NOISE_SEEDED,) if self.noise_seeded else ()), *((ORDER_SEEDED,) if self.order_seeded else ()))

    @property
    def basis(self) -> tuple[tuple[str, Basis], ...]:
        """What was checked at every step, by the code of the assumption."""
        steps = () if self.unseen_steps else ("clipped", "l2_in_full", "optimizer_sees_noisy_gradients")
        loader = ("batches", "smaller_batch_divisor") if self.loader_seen else ()
        return tuple((code, Basis.CHECKED) for code in (*steps, *loader))

    @property
    def rounding(self) -> float | None:
        """What is charged for the rounding of hidden weights; None where it is too much, or was not seen."""
        return None if self.unseen_steps else limit_of(self.precision, math.sqrt(self.squared_straying))

    def assumed(self, hiding: Hiding) -> tuple[Fact, ...]:
        """What nothing could check, beside what the run promises."""
        applies = {
            fact("exact_arithmetic", precision=self.precision, hidden=hiding.name.lower()): True,
            fact("criterion_reduction"): True,
            fact("loader_to_model"): True,
            fact("generator_unpredictable", drew="all"): not self.secure,
            fact("collate_separate", compared="never"): self.collated,
            fact("resumed_as_saved"): self.resumed,
            fact("loader_unseen"): not self.loader_seen,
            fact("steps_unseen", count=self.unseen_steps): self.unseen_steps > 0,
        }
        return tuple(one for one, holds in applies.items() if holds)


def _seeds(optimizer: DPOptimizer, setup: Setup | None) -> tuple[bool, bool]:
    """Whether the noise of this step, and its batch, came from numbers that somebody could repeat."""
    if setup is None:
        return seeded(optimizer.generator, optimizer.params[0].device), False
    return setup.noise.repeatable(drawn=True), setup.order is not None and setup.order.repeatable(drawn=setup.new_pass)
