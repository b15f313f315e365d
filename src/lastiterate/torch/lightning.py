"""Support of PyTorch Lightning: a callback that records what is logged, saved and stopped at, and gives the report."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from lastiterate.errors import InvalidInput, worded
from lastiterate.facts import fact
from lastiterate.torch.recording import Recorder, StopAtBudget
from lastiterate.torch.trainer import Planned

__all__ = ["RecordReleases", "StopAtBudget"]

_DATA_FREE = {"epoch", "step", "lr", "learning_rate"}
_LOOKING = ("LearningRateFinder", "BatchSizeFinder")
_AVERAGING = ("WeightAveraging", "StochasticWeightAveraging")
_IN_FILE_NAME = re.compile(r"\{(\w[^:}]*)")


def _callback() -> Any:
    """Return the callback class of the user's Lightning, under whichever of its two names it is loaded."""
    for name in ("pytorch_lightning", "lightning.pytorch"):
        if name in sys.modules:
            return sys.modules[name].Callback
    try:
        return import_module("lightning.pytorch").Callback
    except ImportError as error:
        raise ImportError(
            worded("torch_library_missing", module=__name__, library="Lightning", install="lightning")
        ) from error


class RecordReleases(Recorder, _callback()):  # type: ignore[misc]
    """`Trainer(callbacks=[RecordReleases(run, public=["val_*"])])` records everything that a training of `run` releases.

    Every `self.log` and every checkpoint is recorded, with the step whose parameters it shows. Metrics named in `public`
    must be computed from the parameters and public data; they are accounted for, and so are checkpoints. Metrics and files
    named in `inside` must stay secret. Any other metric is a leak: the report then says DO NOT RELEASE. Names may contain *.
    `stop` ends the training when a budget is used up. `releases` is the record of earlier steps of a resumed training.
    """

    _trainer: Any = None
    _undo: tuple[Callable[[], None], ...] = ()
    _batches: int | None = None  # of a loop without optimisers, where each is a step
    _first = 0  # steps that were taken when the batch began
    _loaded: int | None = None  # of a file whose parameters are evaluated, its step

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            for one in trainer.callbacks:
                self._look_at(one)
        if self._trainer is not trainer:
            self._trainer = trainer
            _watch(trainer, "save_checkpoint", self._saving)
        self._loaded = None
        self._unwatch()
        self._undo = (_watch(pl_module, "log", self._logging),)
        if stage != "fit":
            self._undo += (_watch(pl_module, "on_load_checkpoint", self._loading),)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._unwatch()

    def _unwatch(self) -> None:
        for undo in self._undo:
            undo()
        self._undo = ()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if all(type(one).__name__ == "_MockOptimizer" for one in trainer.optimizers):
            self._batches = self._batches or 0
        self.recording.begin(self._steps())
        if any(one.reduce_on_plateau for one in trainer.lr_scheduler_configs):
            raise InvalidInput("schedule_looks_at_results", field="step_size", schedule="ReduceLROnPlateau")
        planned = trainer.estimated_stepping_batches
        Planned(planned, trainer.train_dataloader, trainer.accumulate_grad_batches, trainer.world_size).check(
            self.recording.run
        )
        if "PL_GLOBAL_SEED" in os.environ:
            self.recording.assumed = (fact("trainer_seed_unused", seed=os.environ["PL_GLOBAL_SEED"][:60]),)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._first = self._steps()
        self.recording.check_room(self._first)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if batch is None:
            raise InvalidInput("empty_batch_skipped", field="batches")
        if self._batches is not None:
            self._batches += 1
        self._first = self.recording.taken = self._steps()
        if self.recording.taken >= self.recording.limit:
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.recording.ended = True

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self.recording.metric("predictions", [self._steps() if self._loaded is None else self._loaded])

    def state_dict(self) -> dict[str, Any]:
        return {**self.recording.state, "batches": self._batches}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.recording.go_on(state_dict)
        self._batches = state_dict["batches"]

    def _logging(self, name: str, *args: Any, **options: Any) -> None:
        if name in _DATA_FREE or self._trainer.sanity_checking:
            return
        to = ", ".join(type(one).__name__ for one in self._trainer.loggers) if options.get("logger", True) else ""
        self.recording.metric(name, self._shown(), f"written by {to}" if to else "")

    def _shown(self) -> Iterable[int]:
        """Steps whose parameters may be in what is logged now: in a batch, before or after its update."""
        if self._loaded is not None:
            return [self._loaded]
        updating = self._batches is not None and self._trainer.training
        return range(self._first, self._steps() + 1 + updating)

    def _saving(self, filepath: Any, weights_only: bool | None = None, **options: Any) -> None:
        memory = not weights_only and not self.recording.run.process.update.plain
        self.recording.checkpoint(self._steps(), Path(filepath).name, memory=memory)

    def _loading(self, checkpoint: dict[str, Any]) -> None:
        """Note that parameters of an earlier step are loaded, to be evaluated."""
        counted = checkpoint.get("callbacks", {}).get(self.state_key, {}).get("taken")
        self._loaded = checkpoint["global_step"] if self._batches is None else counted
        if self._loaded is None:
            raise InvalidInput("checkpoint_without_step")

    def _steps(self) -> int:
        """Number of steps of the optimiser; accumulated batches are no steps of their own."""
        return int(self._trainer.global_step) if self._batches is None else self._batches

    def _look_at(self, callback: Any) -> None:
        """Record what another callback of the trainer averages or decides by; refuse one that looks at records."""
        kinds = {base.__name__ for base in type(callback).__mro__}
        if kinds & set(_LOOKING):
            raise InvalidInput("callback_looks_at_records", field="callbacks", got=type(callback).__name__)
        if kinds & set(_AVERAGING):
            self.recording.averaged()
        if "EarlyStopping" in kinds:
            self.recording.watch("EarlyStopping", callback.monitor)
        if "ModelCheckpoint" in kinds:
            names = {callback.monitor, *_IN_FILE_NAME.findall(callback.filename or "")} - {None, *_DATA_FREE}
            for name in sorted(names):
                self.recording.choose(
                    "ModelCheckpoint", name, f"{callback.filename or 'epoch'}{callback.FILE_EXTENSION}"
                )


def _watch(owner: Any, name: str, before: Callable[..., None]) -> Callable[[], None]:
    """Call `before` ahead of a method, with its arguments; return a function that undoes that."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def watched(*args: Any, **options: Any) -> Any:
        before(*args, **options)
        return original(*args, **options)

    object.__setattr__(owner, name, watched)
    return lambda: object.__delattr__(owner, name)
