"""What was set up with Opacus, as a run: batches, noise, update, and what sums are divided by."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import DataLoader

import lastiterate as li
from opacus_trainings import CLIP, DELTA, MULTIPLIER, QUIET, RATE, Training, a_run, linear, registered, set_up, table
from raising import raises

pytestmark = QUIET


@pytest.fixture(autouse=True)
def unseeded() -> None:
    torch.seed()


def run_of(training: Training, **given: Any) -> li.Run:
    return li.adapters.opacus.run_of(training.engine, training.optimizer, training.loader, **given)


@pytest.mark.parametrize(
    ("script", "batches", "steps"),
    [
        ({}, li.Shuffled(40, 10, last="smaller"), 8),
        ({"loader": {"shuffle": False}}, li.Cyclic(40, 10, last="smaller"), 8),
        ({"records": 45}, li.Shuffled(45, 10, last="smaller"), 10),
        ({"records": 45, "loader": {"shuffle": True, "drop_last": True}}, li.Shuffled(45, 10, last="drop"), 8),
        ({"batch_size": 40}, li.FullBatch(40), 2),
        ({"batch_size": 64}, li.FullBatch(40), 2),
        ({"poisson_sampling": True}, li.Poisson(40, 0.25), 8),
        ({"records": 45, "poisson_sampling": True}, li.Poisson(45, 0.2), 10),
        ({"records": 93, "batch_size": 1, "poisson_sampling": True}, li.Poisson(93, 1 / 93), 184),
    ],
)
def test_a_run_that_is_described_is_the_one_that_is_executed(
    script: dict[str, Any], batches: li.Shuffled, steps: int
) -> None:
    """Of 93 batches the Poisson sampler makes ⌊1/(1/93)⌋ = 92 in an epoch; rates and steps are those of the sampler."""
    run = run_of(set_up(**script, accountant="rdp"), epochs=2)
    assert (run.batches, run.steps, run.noise) == (batches, steps, li.OnGradientSum(MULTIPLIER, CLIP))
    assert run.adjacency is (li.ADD_OR_REMOVE_ONE if script.get("poisson_sampling") else li.ZERO_OUT)
    assert run.loss == li.losses.network(clip=CLIP)
    with registered(run):
        assert set_up(**script).epochs(2).accountant.run == run


@pytest.mark.parametrize(
    ("make", "optimizer"),
    [
        (lambda weights: torch.optim.SGD(weights, lr=RATE, momentum=0.9), li.SGD(momentum=0.9)),
        (lambda weights: torch.optim.Adam(weights, lr=RATE, weight_decay=0.1), li.Adam()),
        (lambda weights: torch.optim.AdamW(weights, lr=RATE), li.Adam(decoupled=True)),
        (lambda weights: torch.optim.Adagrad(weights, lr=RATE), "Adagrad"),
    ],
)
def test_updates(make: Any, optimizer: Any) -> None:
    """With momentum, 45 records in 5 batches are divided by 9, not by 10; with Adam the division is part of the update."""
    script = {"records": 45, "optimizer": make}
    training = set_up(**script, accountant="rdp")
    run, decay = run_of(training, epochs=1), training.optimizer.param_groups[0]["weight_decay"]
    assert run.optimizer == a_run(optimizer=optimizer).optimizer
    if run.optimizer == li.SGD(momentum=0.9):
        assert run.step_size == pytest.approx(RATE * 10 / 9)
    elif optimizer == "Adagrad":
        assert run.step_size == 1.0
    else:
        assert (run.step_size, run.weight_decay) == (RATE, decay)
    with registered(run):
        again = set_up(**script)
        again.model.load_state_dict(training.model.state_dict())  # start_norm is that of these weights
        assert again.epochs(1).accountant.run == run


def test_a_division_by_another_number_keeps_the_decay() -> None:
    """lr·(g + weight_decay·x) with lr = step_size·9/10: the same share of x is lost at each step."""
    training = set_up(
        records=45, optimizer=lambda weights: torch.optim.SGD(weights, lr=RATE, weight_decay=0.3), accountant="rdp"
    )
    run = run_of(training, epochs=1)
    assert float(run.step_size) * run.weight_decay == pytest.approx(RATE * 0.3)  # type: ignore[arg-type]
    assert float(run.step_size) / run.batches.divisor == pytest.approx(RATE / 9)  # type: ignore[arg-type]
    assert (
        run.start_norm >= sum(float(one.detach().double().square().sum()) for one in training.optimizer.params) ** 0.5
    )
    assert run.domain == li.Unbounded(22)


def test_weight_decay_may_be_the_l2_term_of_the_loss() -> None:
    training = set_up(
        model=linear(), optimizer=lambda weights: torch.optim.SGD(weights, lr=RATE, weight_decay=0.3), accountant="rdp"
    )
    run = run_of(training, epochs=1, loss=li.losses.logistic(feature_norm=1.0, l2=0.3))
    assert (run.weight_decay, run.decay) == (0.0, 0.3)
    with raises("opacus_weight_decay", "weight_decay", kind=li.errors.InvalidInput, needed=0.4, step=1, got="0.3"):
        run_of(training, epochs=1, loss=li.losses.logistic(feature_norm=1.0, l2=0.1))


def test_a_file_that_was_shuffled_once() -> None:
    run = a_run(batches=li.Shuffled(40, 10, each_epoch=False))
    with registered(run):
        assert set_up(loader={"shuffle": False}).epochs(2).accountant.run == run


def test_sums_that_are_not_divided() -> None:
    training = set_up(loss_reduction="sum", accountant="rdp")
    assert run_of(training, steps=7).step_size == pytest.approx(RATE * 10)


def test_what_is_known_of_the_loss_and_the_neighbours_is_given() -> None:
    loss = li.losses.logistic(feature_norm=1.0)
    run = run_of(set_up(model=linear(), accountant="rdp"), epochs=2, loss=loss, adjacency=li.REPLACE_ONE)
    assert (run.loss, run.adjacency) == (loss, li.REPLACE_ONE)
    assert li.account(run, DELTA).epsilon < li.account(a_run(adjacency=li.REPLACE_ONE), DELTA).epsilon


def test_a_scheduler_is_named() -> None:
    training = set_up(accountant="rdp")
    torch.optim.lr_scheduler.CosineAnnealingLR(training.optimizer, T_max=8)
    with raises("opacus_scheduler", "step_size", kind=li.errors.InvalidInput):
        run_of(training, epochs=2)
    assert run_of(training, epochs=2, step_size=li.cosine(RATE)).step_size == a_run(step_size=li.cosine(RATE)).step_size


def test_batches_that_are_cut_up_are_whole() -> None:
    training = set_up(accountant="rdp")
    with BatchMemoryManager(
        data_loader=training.loader, max_physical_batch_size=3, optimizer=training.optimizer
    ) as training.loader:
        assert (run_of(training, epochs=2).batches, run_of(training, epochs=2).steps) == (
            li.Shuffled(40, 10, last="smaller"),
            8,
        )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"engine": None}, "engine must be a PrivacyEngine"),
        ({"optimizer": None}, "optimizer must be a DPOptimizer"),
        ({"loader": None}, "loader must be a DataLoader"),
        ({"loader": DataLoader(table(40), batch_size=10)}, "the one that this engine's make_private returned"),
        ({"epochs": None}, "run_of needs either epochs or steps"),
        ({"steps": 3}, "run_of needs either epochs or steps"),
        ({"epochs": 0}, "epochs must be an integer >= 1"),
        ({"step_size": -1.0}, "step_size must be"),
        ({"loss": li.losses.logistic(feature_norm=1.0, classes=3)}, "Opacus clips all classes together"),
    ],
)
def test_refusals(change: dict[str, Any], said: str) -> None:
    training = set_up(accountant="rdp")
    usual = {"engine": training.engine, "optimizer": training.optimizer, "loader": training.loader, "epochs": 1}
    with pytest.raises(li.errors.InvalidInput, match=said):
        li.adapters.opacus.run_of(**{**usual, **change})


def test_a_training_that_has_begun() -> None:
    with raises("opacus_training_begun", kind=li.errors.InvalidInput):
        run_of(set_up(accountant="rdp").epochs(1), epochs=1)


def test_clipping_per_layer() -> None:
    training = set_up(clipping="per_layer", max_grad_norm=[0.5] * 4, accountant="rdp")
    with raises("opacus_clipping_per_layer", "clipping", kind=li.errors.InvalidInput):
        run_of(training, epochs=1)
