"""A callback for the Trainer of Hugging Face: logs, evaluations, checkpoints, ends, and what is refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import lastiterate as li
from lastiterate.facts import fact
from raising import raises
from recorded import DELTA, RUN, printed_and_shown

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from transformers import EarlyStoppingCallback, Trainer, TrainingArguments

from lastiterate.torch.transformers import RecordReleases, StopAtBudget, _callback

pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator is found")

DATA = [{"input_ids": torch.tensor([i / 32, 1.0]), "labels": torch.tensor(i / 32)} for i in range(32)]
TRAINING = ["loss", "grad_norm", "train_loss"]


class Module(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Linear(2, 1)

    def forward(self, input_ids: Any, labels: Any = None) -> dict[str, Any]:
        out = self.net(input_ids).squeeze(1)
        return {"loss": (out - labels).square().mean(), "logits": out}


def trainer(folder: Path, callback: RecordReleases, *callbacks: Any, **options: Any) -> Any:
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "save_strategy": "no", "logging_strategy": "no"}
    settings = {"max_steps": 20, "per_device_train_batch_size": 32, "learning_rate": 0.1, **quiet, **options}
    arguments = TrainingArguments(str(folder), **settings)
    return Trainer(Module(), arguments, train_dataset=DATA, eval_dataset=DATA, callbacks=[callback, *callbacks])


def test_losses_are_leaks_and_evaluations_on_public_data_are_charged(tmp_path: Path) -> None:
    callback = RecordReleases(RUN, public=["eval_*"])
    executed = trainer(
        tmp_path, callback, logging_strategy="steps", logging_steps=10, eval_strategy="steps", eval_steps=5
    )
    with pytest.warns(li.errors.PrivacyLeak) as told:
        executed.train()
    assert sorted(str(one.message).split()[0] for one in told) == ["grad_norm", "loss", "train_loss"]
    assert [(one.step, one.what) for one in callback.releases.charged] == [(k, "eval_loss") for k in (5, 10, 15, 20)]
    report = callback.report(DELTA)
    assert report.epsilon == li.account(RUN, DELTA, [5, 10, 15]).epsilon > li.account(RUN, DELTA).epsilon
    leaked = (("loss", (10, 20)), ("grad_norm", (10, 20)), ("train_loss", (20,)))
    assert report.caveats == (fact("leaked", what=leaked),)
    assert str(report.caveats[0]) == (
        "DO NOT RELEASE: loss (after 10, 20 steps); grad_norm (after 10, 20 steps); train_loss (after 20 steps) came "
        "from the records without noise, and no theorem covers that"
    )
    assert {fact("trainer_seed_unused", seed="42"), fact("durations_tell_nothing")} <= set(report.promises)


def test_checkpoints_are_charged_and_hold_more_than_weights(tmp_path: Path) -> None:
    callback = RecordReleases(RUN, inside=TRAINING)
    saving = {"save_strategy": "steps", "save_steps": 8}
    trainer(tmp_path, callback, save_only_model=True, **saving).train()
    assert callback.releases.steps == (8, 16, 20)
    report = callback.report(DELTA)
    assert report.epsilon == li.account(RUN, DELTA, [8, 16]).epsilon
    assert report.caveats == ()

    whole = RecordReleases(RUN, inside=TRAINING)
    with pytest.warns(li.errors.PrivacyLeak):
        trainer(tmp_path, whole, logging_strategy="steps", logging_steps=8, **saving).train()
    [leaked] = whole.report(DELTA).caveats
    what = dict(dict(leaked.values)["what"])  # type: ignore[arg-type,call-overload]
    assert leaked.code == "leaked"
    assert what["rng_state.pth in checkpoint-8 (without it: save_only_model=True)"] == (8,)
    assert what["loss in trainer_state.json of checkpoint-16"] == (16,)

    kept = RecordReleases(RUN, inside=[*TRAINING, "checkpoint-*"])
    trainer(tmp_path, kept, **saving).train()
    assert kept.report(DELTA).epsilon == li.account(RUN, DELTA).epsilon
    assert kept.report(DELTA).caveats == ()

    again = RecordReleases(RUN, inside=TRAINING)
    with raises("steps_not_recorded", "releases", steps=8):
        trainer(tmp_path, again).train(resume_from_checkpoint=str(tmp_path / "checkpoint-8"))


def test_a_budget_ends_the_training(tmp_path: Path) -> None:
    stop = StopAtBudget(li.account(RUN.first(12), DELTA).epsilon * 1.001, DELTA)
    callback = RecordReleases(RUN, inside=TRAINING, stop=stop)
    executed = trainer(tmp_path, callback, per_device_train_batch_size=16, gradient_accumulation_steps=2)
    executed.train()
    assert executed.state.global_step == callback.recording.limit < 14
    assert callback.report(DELTA).epsilon <= stop.epsilon
    assert callback.report(DELTA).caveats == ()


def test_stopping_by_public_data_costs_the_whole_run(tmp_path: Path) -> None:
    callback = RecordReleases(RUN, public=["eval_*"], inside=[*TRAINING, "checkpoint-*"])
    looking = {"eval_strategy": "steps", "eval_steps": 5, "save_strategy": "steps", "save_steps": 5}
    stopping = EarlyStoppingCallback(1, early_stopping_threshold=100.0)
    best = {"load_best_model_at_end": True, "metric_for_best_model": "loss"}
    executed = trainer(tmp_path, callback, stopping, **looking, **best)
    executed.train()
    assert executed.state.global_step == 10
    report = callback.report(DELTA)
    assert report.caveats == ()
    assert report.epsilon == li.account(RUN, DELTA, [5, *range(10, 20)]).epsilon


LOOKING = {"eval_strategy": "steps", "eval_steps": 5, "save_strategy": "steps", "save_steps": 5}


@pytest.mark.parametrize(
    ("run", "inside", "options", "code", "values"),
    [
        (
            RUN,
            [],
            {**LOOKING, "load_best_model_at_end": True},
            "chosen_by_records",
            {"by": "load_best_model_at_end", "metric": "eval_loss", "chosen": "end"},
        ),
        (
            RUN,
            [],
            {**LOOKING, "save_strategy": "best", "metric_for_best_model": "accuracy"},
            "chosen_by_records",
            {"by": 'save_strategy="best"', "metric": "eval_accuracy", "chosen": "files"},
        ),
        (
            RUN,
            [],
            {"lr_scheduler_type": "reduce_lr_on_plateau", **LOOKING},
            "schedule_looks_at_results",
            {"schedule": "lr_scheduler_type='reduce_lr_on_plateau'"},
        ),
        (
            RUN,
            [],
            {"train_sampling_strategy": "group_by_length"},
            "records_sorted_by_length",
            {"strategy": "group_by_length"},
        ),
        (RUN, [], {"max_steps": 19}, "trainer_steps_differ", {"steps": 20, "planned": 19}),
        (
            replace(RUN, batches=li.Cyclic(32, 8)),
            [],
            {"per_device_train_batch_size": 8},
            "trainer_batches_differ",
            {"size": 8, "accumulated": 1, "devices": 1, "order": "random"},
        ),
        (replace(RUN, batches=li.FullBatch(33)), [], {}, "dataset_length_differs", {"records": 33, "length": 32}),
    ],
)
def test_what_is_refused_at_the_start(
    tmp_path: Path, run: Any, inside: Any, options: Any, code: str, values: dict[str, Any]
) -> None:
    callback = RecordReleases(run, inside=inside)
    with raises(code, kind=li.errors.InvalidInput, **values):
        trainer(tmp_path, callback, **options).train()
    assert callback.recording.taken == 0


def test_without_transformers_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"needs transformers\. Install it with: pip install"):
        _callback()


def test_the_tutorial_shows_what_its_example_prints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    printed, shown = printed_and_shown("Hugging Face", {})
    assert printed == shown
