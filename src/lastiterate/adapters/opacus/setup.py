"""What `PrivacyEngine.make_private` has set up, and what happens to it during the training.

Opacus hands an accountant the sample rate alone. The rest is read from the call that asks for the hook. Counters are put on
the loader's batches, on the sums of clipped gradients and, for ghost clipping, on the gradients themselves; none of them
changes a number.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from opacus.data_loader import CollateFnWithEmpty
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.privacy_engine import PrivacyEngine
from torch.utils.data import DataLoader, default_collate

from lastiterate.adapters.opacus.loaders import check_batches, dealer_of, watch_of
from lastiterate.adapters.opacus.steps import check_setup, same, seen_records
from lastiterate.errors import InvalidInput
from lastiterate.runs.run import Run
from lastiterate.torch.loaders import generator_of
from lastiterate.torch.seeded import SeedWatch


def set_up_by_caller(run: Run) -> Setup | None:
    """What the `make_private` that is being executed has set up, if the run allows it; None if somebody else asks."""
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
        """Ghost clipping switches its hooks off for the pass that computes clipped gradients, and for no other."""
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
        """That the gradients at hand are those that the criterion of `make_private` has left, untouched, or zero."""
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
