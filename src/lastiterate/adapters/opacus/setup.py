"""Everything that `PrivacyEngine.make_private` has set up, watched during the training.

Opacus hands an accountant the sample rate alone. The rest is read from the call that asks for the hook. Counters are put on
the loader's batches, on the sums of clipped gradients and, for ghost clipping, on the gradients themselves; none of them
changes a number.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

import torch
from opacus.data_loader import CollateFnWithEmpty
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.privacy_engine import PrivacyEngine
from torch.utils.data import DataLoader, default_collate

from lastiterate.accounting.account import account, account_by
from lastiterate.accounting.report import Report
from lastiterate.adapters.opacus.described import check_batches, dealer_of, watch_of
from lastiterate.adapters.opacus.steps import check_setup, executed_by, norm_of, same, seen_records
from lastiterate.errors import InvalidInput
from lastiterate.facts import Basis, Fact, fact
from lastiterate.runs.noise import STRAYING, Arithmetic
from lastiterate.runs.optimizers import SGD
from lastiterate.runs.per_step import extremes
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import OF_EVERY_ITERATE
from lastiterate.theorems.evidence import About
from lastiterate.torch.sampling import generator_of
from lastiterate.torch.trusted import ORDER_SEEDED, SeedWatch, seeded


def set_up_by_caller(run: Run) -> Setup | None:
    """Return the setup of the `make_private` that is being executed, if the run allows it; None for other callers."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code is PrivacyEngine.make_private.__code__:
            module, optimizer, loader = (frame.f_locals.get(name) for name in ("module", "optimizer", "data_loader"))
            known = isinstance(optimizer, DPOptimizer) and isinstance(loader, DataLoader)
            return Setup(run, module, optimizer, loader) if known else None
        frame = frame.f_back
    return None


class Setup:
    """Module, optimiser and loader of one `make_private`.

    `added`: records whose clipped gradients wait for the next step; `drawn`: records that the loader drew for
    it, `new_pass`: as the first of a pass.
    """

    def __init__(self, run: Run, module: Any, optimizer: DPOptimizer, loader: DataLoader[Any]) -> None:
        check_setup(run, optimizer)
        check_batches(run.batches, loader)
        self.run, self.module, self.optimizer = run, module, optimizer
        self.ghost = isinstance(optimizer, DPOptimizerFastGradientClipping)
        self.batches, self.added = watch_of(loader, run.batches), 0
        self.drawn, self.new_pass = 0, False
        self.order: SeedWatch | None = None
        if run.batches.random or run.batches.reshuffled:
            self.order = SeedWatch(generator_of(dealer_of(loader)))
        self.noise = SeedWatch(optimizer.generator, optimizer.params[0].device)
        collate = loader.collate_fn
        collate = collate.wrapped_collator_fn if isinstance(collate, CollateFnWithEmpty) else collate
        self.collates = collate is not default_collate
        self._clipped: dict[Any, tuple[Any, int] | None] = {}
        name = "accumulate" if self.ghost else "clip_and_accumulate"
        self._accumulate = getattr(optimizer, name)
        setattr(optimizer, name, self._add)
        if self.ghost:
            for weights in optimizer.params:
                weights.register_post_accumulate_grad_hook(self._see_gradient)

    def _see_gradient(self, weights: Any) -> None:
        """Note the gradient of clipped losses: ghost clipping switches its hooks off for that pass alone."""
        self._clipped[weights] = None if self.module.hooks_enabled else (weights.grad, weights.grad._version)

    def _add(self) -> None:
        """Count the records that Opacus adds to the sum of the next step; of a batch that is cut up, part by part."""
        if self.ghost:
            self._check_clipped()
        if self.optimizer.params[0].summed_grad is None:
            self.added = 0
        self._accumulate()
        self.added += seen_records(self.optimizer) or 0

    def _check_clipped(self) -> None:
        """Raise an error unless gradients are those of the criterion of `make_private`, untouched, or zero."""
        found, self._clipped = self._clipped, {}
        clip = getattr(self.module, "max_grad_norm", None)
        if not same(clip, self.optimizer.max_grad_norm):
            raise InvalidInput(
                "opacus_module_clip", field="criterion", needed=self.optimizer.max_grad_norm, got=f"{clip}"
            )
        for weights in self.optimizer.params:
            gradient, left = weights.grad, found.get(weights)
            untouched = left is not None and gradient is left[0] and gradient._version == left[1]
            if not untouched and gradient is not None and bool(torch.count_nonzero(gradient)):
                raise InvalidInput("opacus_other_gradients", field="criterion")


# Circumstances of an execution: seeds, generators, precision, and what was not seen.


NOISE_SEEDED = fact("noise_seeded", generator="torch")


@dataclass(frozen=True)
class Circumstances:
    """Circumstances seen so far, at all steps together."""

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
        """Return the circumstances after one more step; `strayed` is its part of `squared_straying`."""
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
        """Codes of the assumptions that were checked at every step."""
        steps = () if self.unseen_steps else ("clipped", "l2_in_full", "optimizer_sees_noisy_gradients")
        loader = ("batches", "smaller_batch_divisor") if self.loader_seen else ()
        return tuple((code, Basis.CHECKED) for code in (*steps, *loader))

    @property
    def rounding(self) -> float | None:
        """Mu of the rounding of hidden weights; None if it is too much or was not seen."""
        limit = _LIMITS.get(self.precision, 0.0)
        return limit if not self.unseen_steps and math.sqrt(self.squared_straying) <= limit else None

    def assumed(self, hiding: HiddenState) -> tuple[Fact, ...]:
        """Facts that nothing could check, besides what the run promises."""
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


# Rounding of hidden weights, bounded at every step beside the noise and charged where it is little.


_UNITS = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}
_LIMITS = {"float32": 1e-3, "float64": STRAYING}
_ROUNDINGS = 9  # of a step: noise and decay are added, it is divided, multiplied, added to the weights; some to spare
COARSEST = max(_LIMITS.values())


class HiddenState(Enum):
    """State of the guarantees that rely on hidden iterates."""

    UNUSED = auto()  # all iterates together are as good
    CHARGED = auto()  # the rounding of hidden weights is in ε
    ASSUMED = auto()  # it is little, but of other steps than plain ones no bound is known
    TOO_COARSE = auto()  # it is too much beside the noise, or was not seen: all iterates count


def accounted(run: Run, delta: float, releases: Iterable[int], limit: float | None) -> tuple[Report, HiddenState]:
    """Return the account of a run whose hidden weights strayed by at most `limit`, or by too much."""
    at, plain = (delta, tuple(releases)), run.process.update.plain
    if limit is not None and plain and _may_hide(run):
        charged = account(replace(run, arithmetic=Arithmetic(displacement=limit)), *at)
        if _hides(charged):
            return charged, HiddenState.CHARGED
    report = account(run, *at)
    if not _hides(report):
        return report, HiddenState.UNUSED
    if limit is not None and not plain:
        return report, HiddenState.ASSUMED
    return account_by(OF_EVERY_ITERATE, run, *at), HiddenState.TOO_COARSE


def _hides(report: Report) -> bool:
    return report.best.evidence.about is not About.EVERY_ITERATE


def _may_hide(run: Run) -> bool:
    """Whether a theorem could use hidden iterates: none can if steps may do anything to them."""
    return isinstance(run.optimizer, SGD) and (math.isfinite(extremes(run.process.lipschitz)[1]) or run.decay > 0)


def precision_of(optimizer: DPOptimizer) -> torch.dtype:
    """Precision of the weights, the coarser one if there are two."""
    return max((one.dtype for one in optimizer.params), key=lambda one: _UNITS[one])


def squared_straying(run: Run, optimizer: DPOptimizer, step: int, multiplier: float) -> float:
    """Square of e/ν: the weights after this step are off by at most e, and their next noise is ν.

    What is off in a hidden iterate moves the mean of the next Gaussian by that much, times the Lipschitz constant where the
    account uses one. At the step the noisy gradient is there, and the weights have not moved yet.
    """
    expansion = extremes(run.process.lipschitz)[1]
    executed = executed_by(optimizer.original_optimizer)
    if not _may_hide(run):
        return 0.0
    weights, decay, rate = norm_of(optimizer), executed.weight_decay or 0.0, executed.learning_rate or 0.0
    moved = rate * (_length(optimizer, "grad") + decay * weights + _length(optimizer, "momentum_buffer"))
    error = _UNITS[precision_of(optimizer)] * (weights + _ROUNDINGS * 2 * moved)
    noise = float(run.process.noise[min(step + 1, run.steps - 1)]) * multiplier / run.noise.at(step)
    return float((max(1.0, expansion if math.isfinite(expansion) else 1.0) * error / noise) ** 2)


def _length(optimizer: DPOptimizer, name: str) -> float:
    """Length of the noisy gradient, or of an array that the optimiser remembers."""
    held = [one.grad if name == "grad" else optimizer.state.get(one, {}).get(name) for one in optimizer.params]
    return math.sqrt(sum(float(one.detach().double().square().sum()) for one in held if one is not None))
