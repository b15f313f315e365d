"""A callback for Lightning: every log and checkpoint at its step, ends that were planned or not, and what is refused."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import lastiterate as li
from lastiterate.facts import fact
from raising import raises
from recorded import DELTA, RUN, printed_and_shown

pytest.importorskip("lightning")

import lightning.pytorch as pl
from lightning.pytorch.callbacks import EarlyStopping, LearningRateFinder, ModelCheckpoint

from lastiterate.torch import loader
from lastiterate.torch.lightning import RecordReleases, StopAtBudget, _callback

pytestmark = pytest.mark.filterwarnings(
    r"ignore:`isinstance\(treespec, LeafSpec\)` is deprecated",
    "ignore:The '.*_dataloader' does not have many workers",
    "ignore:The number of training batches",
    "ignore:You defined a `validation_step` but have no `val_dataloader`",
    "ignore:train_dataloader yielded None",
    "ignore:`LightningModule.configure_optimizers` returned `None`",
    "ignore:Be aware that when using `ckpt_path`, callbacks used",
    r"ignore:Checkpoint directory .* exists and is not empty",
)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

DATA = TensorDataset(torch.linspace(-1, 1, 64).reshape(32, 2), torch.linspace(0, 1, 32))


class Module(pl.LightningModule):  # type: ignore[misc]
    def __init__(self, plateau: bool = False) -> None:
        super().__init__()
        self.net, self.plateau = torch.nn.Linear(2, 1), plateau

    def loss(self, batch: Any) -> Any:
        return (self.net(batch[0]).squeeze(1) - batch[1]).square().mean()

    def training_step(self, batch: Any, place: int) -> Any:
        loss = self.loss(batch)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch: Any, place: int) -> None:
        self.log("val_loss", self.loss(batch))

    def predict_step(self, batch: Any, place: int) -> Any:
        return self.net(batch[0])

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        if not self.plateau:
            return optimizer
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"}}


class Manual(Module):
    """Without any optimiser: pieces of the library move the parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch: Any, place: int) -> None:
        with torch.no_grad():
            self.net.weight -= 0.1
        if place == 6:
            self.log("weight", self.net.weight.norm())

    def configure_optimizers(self) -> None:
        return None


def trainer(folder: Path, *callbacks: Any, **options: Any) -> Any:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": None}
    settings = {"accelerator": "cpu", "devices": 1, "max_steps": 20, "check_val_every_n_epoch": 5, **quiet, **options}
    if not any(isinstance(one, ModelCheckpoint) for one in callbacks):
        settings["enable_checkpointing"] = False
    return pl.Trainer(default_root_dir=folder, callbacks=list(callbacks), **settings)


def batches(size: int = 32) -> Any:
    return DataLoader(DATA, batch_size=size)


def test_a_train_loss_is_a_leak_and_validation_on_public_data_is_charged(tmp_path: Path) -> None:
    callback = RecordReleases(RUN, public=["val_*"])
    with pytest.warns(li.errors.PrivacyLeak, match="^train_loss is treated as"):
        trainer(tmp_path, callback).fit(Module(), batches(), batches())
    assert callback.releases.steps == (5, 10, 15, 20)
    assert [one.step for one in callback.releases.uncharged] == list(range(20))  # computed before each step
    report = callback.report(DELTA)
    assert report.epsilon == li.account(RUN, DELTA, [5, 10, 15]).epsilon
    assert report.caveats == (fact("leaked", what=(("train_loss", tuple(range(20))),)),)
    assert str(report).startswith("DO NOT RELEASE: train_loss (after 0, 1, 2, 3, 4, 5, … steps) came from the records")


@pytest.mark.parametrize("weights_only", [True, False])
def test_checkpoints_are_charged_even_where_no_hook_is_called(tmp_path: Path, weights_only: bool) -> None:
    callback = RecordReleases(RUN, inside=["train_loss"], public=["val_*", "predictions"])
    files = ModelCheckpoint(tmp_path, every_n_train_steps=8, save_top_k=-1, save_weights_only=weights_only)
    executed, module = trainer(tmp_path, callback, files), Module()
    executed.fit(module, batches())
    assert [(one.step, one.what) for one in callback.releases.charged] == [
        (8, "epoch=7-step=8.ckpt"),
        (16, "epoch=15-step=16.ckpt"),
    ]
    report = callback.report(DELTA)
    assert report.epsilon == li.account(RUN, DELTA, [8, 16]).epsilon > li.account(RUN, DELTA).epsilon
    assert report.caveats == ()
    executed.predict(module, batches())
    assert callback.releases.charged[-1].step == 20


def test_a_file_that_stays_inside_is_charged_when_it_is_evaluated(tmp_path: Path) -> None:
    callback = RecordReleases(RUN, inside=["train_*", "*.ckpt"], public=["val_*"])
    executed = trainer(tmp_path, callback, ModelCheckpoint(tmp_path, every_n_train_steps=8, save_top_k=-1))
    executed.fit(Module(), batches())
    assert callback.report(DELTA).epsilon == li.account(RUN, DELTA).epsilon
    executed.validate(ckpt_path=str(tmp_path / "epoch=7-step=8.ckpt"), dataloaders=batches(), verbose=False)
    assert callback.releases.steps == (8,)
    assert callback.report(DELTA).promises[-1].code == "kept_inside"


def test_accumulated_batches_are_one_step_and_a_budget_ends_the_training(tmp_path: Path) -> None:
    stop = StopAtBudget(li.account(RUN.first(12), DELTA).epsilon * 1.001, DELTA)
    callback = RecordReleases(RUN, inside=["train_*"], stop=stop)
    executed = trainer(tmp_path, callback, accumulate_grad_batches=2, max_steps=20)
    executed.fit(Module(), batches(16))
    assert executed.global_step == callback.recording.limit == callback.recording.taken < 14
    report = callback.report(DELTA)
    assert report.run.steps == executed.global_step
    assert report.epsilon <= stop.epsilon
    assert report.caveats == ()


def test_steps_without_an_optimiser_are_batches(tmp_path: Path) -> None:
    callback = RecordReleases(RUN, public=["weight"])
    trainer(tmp_path, callback, max_epochs=1, max_steps=-1).fit(Manual(), loader(DATA, RUN))
    assert callback.recording.taken == 20
    assert callback.releases.steps == (6, 7)  # logged in the seventh batch, before its update or after


def test_stopping_by_public_data_costs_the_whole_run(tmp_path: Path) -> None:
    callback = RecordReleases(RUN, public=["val_*"], inside=["train_*"])
    stopping = EarlyStopping("val_loss", patience=1, min_delta=100.0, check_on_train_epoch_end=False)
    executed = trainer(tmp_path, callback, stopping)
    executed.fit(Module(), batches(), batches())
    assert executed.global_step == 10
    report = callback.report(DELTA)
    assert report.caveats == ()
    assert report.epsilon == li.account(RUN, DELTA, [5, *range(10, 20)]).epsilon


def test_a_training_goes_on_from_a_checkpoint_with_its_book(tmp_path: Path) -> None:
    first = RecordReleases(RUN, inside=["train_*"])
    files = ModelCheckpoint(tmp_path, every_n_train_steps=8, save_top_k=-1)
    trainer(tmp_path, first, files, max_steps=20).fit(Module(), batches())
    again = RecordReleases(RUN, inside=["train_*"])
    trainer(tmp_path, again).fit(
        Module(), batches(), ckpt_path=str(tmp_path / "epoch=7-step=8.ckpt"), weights_only=False
    )
    assert again.recording.taken == 20
    assert again.releases.steps == (8,)


BY_CHECKPOINT = {"by": "ModelCheckpoint", "metric": "train_loss", "chosen": "files"}


@pytest.mark.parametrize(
    ("run", "module", "callbacks", "code", "values"),
    [
        (
            RUN,
            Module(),
            [EarlyStopping("train_loss")],
            "chosen_by_records",
            {"by": "EarlyStopping", "metric": "train_loss", "chosen": "end"},
        ),
        (RUN, Module(), [ModelCheckpoint(monitor="train_loss")], "chosen_by_records", BY_CHECKPOINT),
        (RUN, Module(), [ModelCheckpoint(filename="{train_loss:.2f}")], "chosen_by_records", BY_CHECKPOINT),
        (RUN, Module(), [LearningRateFinder()], "callback_looks_at_records", {"got": "LearningRateFinder"}),
        (RUN, Module(plateau=True), [], "schedule_looks_at_results", {"schedule": "ReduceLROnPlateau"}),
        (replace(RUN, steps=19), Module(), [], "trainer_steps_differ", {"steps": 19, "planned": 20}),
        (
            replace(RUN, batches=li.FullBatch(33)),
            Module(),
            [],
            "dataset_length_differs",
            {"records": 33, "length": 32},
        ),
    ],
)
def test_what_is_refused_at_the_start(
    tmp_path: Path, run: Any, module: Any, callbacks: Any, code: str, values: dict[str, Any]
) -> None:
    callback = RecordReleases(run, public=["val_*"])
    with raises(code, kind=li.errors.InvalidInput, **values):
        trainer(tmp_path, callback, *callbacks).fit(module, batches(), batches())
    assert callback.recording.taken == 0


def test_batches_without_records_are_not_skipped(tmp_path: Path) -> None:
    class Empty(Module):
        def transfer_batch_to_device(self, batch: Any, device: Any, dataloader_idx: int) -> None:
            return None

    with raises("empty_batch_skipped", "batches"):
        trainer(tmp_path, RecordReleases(RUN)).fit(Empty(), batches())


def test_without_lightning_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] in ("lightning", "pytorch_lightning")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lightning", None)
    with pytest.raises(ImportError, match=r"needs Lightning\. Install it with: pip install lightning"):
        _callback()


def test_the_tutorial_shows_what_its_example_prints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    data = DataLoader(TensorDataset(torch.zeros(256, 2), torch.zeros(256)), batch_size=256)
    printed, shown = printed_and_shown("Lightning", {"Module": Module, "batches": lambda: data})
    assert printed == shown
