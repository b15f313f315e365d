"""Support of Hugging Face's Trainer: a callback that records what is logged, saved and stopped at, for the report."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lastiterate.errors import InvalidInput, worded
from lastiterate.facts import fact
from lastiterate.torch.recording import Recorder, StopAtBudget
from lastiterate.torch.trainer import Planned

__all__ = ["RecordReleases", "StopAtBudget"]

_DATA_FREE = {"epoch", "step", "learning_rate"}
_TIMES = ("_runtime", "_samples_per_second", "_steps_per_second", "_preparation_time", "_compilation_time")
_BY_LENGTH = ("group_by_length", "batch_rebalance")
_LOOKING = ("reduce_lr_on_plateau", "greedy")


def _callback() -> Any:
    try:
        return import_module("transformers").TrainerCallback
    except ImportError as error:
        install = "'transformers[torch]'"
        raise ImportError(
            worded("torch_library_missing", module=__name__, library="transformers", install=install)
        ) from error


class RecordReleases(Recorder, _callback()):  # type: ignore[misc]
    """`Trainer(..., callbacks=[RecordReleases(run, public=["eval_*"])])` records all that a training of `run` releases.

    Every log, evaluation and checkpoint is recorded. Metrics named in `public` must be computed from the parameters and
    public data; they are accounted for, and so are checkpoints. Metrics and files named in `inside`, such as "loss" or
    "checkpoint-*", must stay secret. Any other metric, such as "loss", "grad_norm" or "train_loss", is a leak: the report
    then says DO NOT RELEASE. `stop` ends the training when a budget is used up. `releases` is the record of earlier steps of
    a resumed training.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **others: Any) -> None:
        _check_arguments(args)
        self._look_at_choices(args, state)
        self.recording.begin(state.global_step)
        planned = Planned(state.max_steps, train_dataloader, args.gradient_accumulation_steps, args.world_size)
        planned.check(self.recording.run)
        self.recording.assumed = (fact("trainer_seed_unused", seed=str(args.seed)), fact("durations_tell_nothing"))

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.recording.check_room(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> Any:
        self.recording.taken = state.global_step
        if state.global_step >= self.recording.limit:
            control.should_training_stop = True
        return control

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.recording.ended = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
        self._enter(args, state, logs)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **others: Any) -> None:
        self._enter(args, state, metrics)

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any = None, **others: Any) -> None:
        self._enter(args, state, {**(metrics or {}), "predictions": True})

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        file = f"checkpoint-{state.global_step}"
        if not self.recording.checkpoint(state.global_step, file):
            return
        if not args.save_only_model:
            self.recording.leak(state.global_step, "rng_state.pth", worded("rng_state_saved", file=file))
        self._tell_history(state, f"trainer_state.json of {file}")

    def on_push_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._tell_history(state, "what was pushed to the hub")

    def _enter(self, args: Any, state: Any, numbers: Any) -> None:
        to = ", ".join(args.report_to or ())
        for name, value in (numbers or {}).items():
            if not _data_free(name, value):
                self.recording.metric(name, [state.global_step], f"reported to {to}" if to else "")

    def _tell_history(self, state: Any, where: str) -> None:
        """Record a leak for each secret metric, since the whole history of the log is written there."""
        kept = {name for entry in state.log_history for name in entry if self.recording.is_inside(name)}
        for name in sorted(kept):
            self.recording.leak(state.global_step, f"{name} in it", f"{name} in {where}")

    def _look_at_choices(self, args: Any, state: Any) -> None:
        """Record the metrics that decide the end of the training, its result or its files."""
        metric = args.metric_for_best_model or "loss"
        metric = metric if metric.startswith("eval_") else f"eval_{metric}"
        if "EarlyStoppingCallback" in state.stateful_callbacks:
            self.recording.watch("EarlyStoppingCallback", metric)
        if args.load_best_model_at_end:
            self.recording.watch("load_best_model_at_end", metric)
        if str(getattr(args.save_strategy, "value", args.save_strategy)) == "best":
            self.recording.choose('save_strategy="best"', metric, "checkpoint-*")
        if args.push_to_hub and self.recording.is_inside("checkpoint-1"):
            raise InvalidInput("secret_checkpoints_published", field="inside")


def _check_arguments(args: Any) -> None:
    by = getattr(args, "train_sampling_strategy", "group_by_length" if getattr(args, "group_by_length", False) else "")
    if by in _BY_LENGTH:
        raise InvalidInput("records_sorted_by_length", field="batches", strategy=by)
    schedule = str(getattr(args.lr_scheduler_type, "value", args.lr_scheduler_type))
    if schedule in _LOOKING:
        raise InvalidInput("schedule_looks_at_results", field="step_size", schedule=f"lr_scheduler_type={schedule!r}")
    if getattr(args, "auto_find_batch_size", False):
        raise InvalidInput("batch_size_searched", field="batches")


def _data_free(name: str, value: Any) -> bool:
    """Whether a metric does not depend on the data; counts of operations do, unless they are 0."""
    return name in _DATA_FREE or name.endswith(_TIMES) or (name == "total_flos" and value == 0)
