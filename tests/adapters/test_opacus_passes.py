"""Every pass through the loader goes to its end: where one is left in the middle, records may be used twice as often."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager

import lastiterate as li
from opacus_trainings import DELTA, MULTIPLIER, QUIET, Training, a_run, registered, set_up
from raising import raises

pytestmark = QUIET
LEFT = "a pass was stopped early"


@pytest.fixture(autouse=True)
def unseeded() -> None:
    """Other tests may have seeded PyTorch's generator."""
    torch.seed()


def steps_of_one_pass(training: Training, count: int, loader: Any = None) -> None:
    for place, (features, targets) in enumerate(training.loader if loader is None else loader):
        if place == count:
            break
        training.one_step(features, targets)


def weights_of(training: Training) -> torch.Tensor:
    return torch.cat([one.detach().flatten().clone() for one in training.optimizer.params])


@pytest.mark.parametrize("loader", [{"shuffle": True}, {"shuffle": False}, {"shuffle": True, "num_workers": 1}])
def test_a_pass_that_is_left_in_the_middle_ends_what_can_be_accounted_for(loader: dict[str, Any]) -> None:
    """The steps before are the beginning of the run, and stay so: the next step is refused before the weights move."""
    shuffled = loader["shuffle"]
    run = a_run(epochs=3, batches=(li.Shuffled if shuffled else li.Cyclic)(40, 10, last="smaller"))
    with registered(run):
        training = set_up(loader=loader)
        steps_of_one_pass(training, 2)
        before = weights_of(training)
        for _ in range(2):
            with pytest.raises(li.errors.InvalidInput, match=LEFT):
                steps_of_one_pass(training, 1)
    assert torch.equal(weights_of(training), before)
    assert training.accountant.history == [(MULTIPLIER, 0.25, 2)]
    report = training.accountant.report(DELTA)
    assert report.run == run.first(2)
    assert report.epsilon == pytest.approx(li.account(run.first(2), DELTA).epsilon, rel=1e-9)


def test_a_training_that_ends_in_the_middle_has_the_steps_that_were_taken() -> None:
    run = a_run(epochs=3)
    with registered(run):
        training = set_up().epochs(1)
        steps_of_one_pass(training, 3)
    assert len(training.accountant) == 7
    assert training.engine.get_epsilon(DELTA) == li.account(run.first(7), DELTA).epsilon


def test_poisson_batches_are_drawn_anew_so_that_a_pass_may_end_anywhere() -> None:
    run = a_run(epochs=3, batches=li.Poisson(40, 0.25), adjacency=li.ADD_OR_REMOVE_ONE)
    with registered(run):
        training = set_up(poisson_sampling=True)
        for count in (2, 3):
            steps_of_one_pass(training, count)
    assert training.accountant.run == run.first(5)


def test_batches_that_are_looked_at_between_steps_are_no_steps() -> None:
    """Before training, between epochs, and in the middle of one that goes on."""
    run = a_run(epochs=2)
    with registered(run):
        training = set_up()
        next(iter(training.loader))
        training.epochs(1, after=lambda: [len(batch) for batch in training.loader])
        list(training.loader)
        training.epochs(1)
    assert training.accountant.run == run


def test_a_batch_that_no_step_has_used() -> None:
    with registered(a_run(epochs=2)):
        training = set_up()
        batches = iter(training.loader)
        training.one_step(*next(batches))
        next(batches)
        with raises("batch_not_next", "loader", kind=li.errors.InvalidInput):
            training.one_step(*next(batches))


def test_batches_that_are_cut_up_are_left_in_the_middle_as_well() -> None:
    with registered(a_run(epochs=2)):
        training = set_up()
        given = {"data_loader": training.loader, "max_physical_batch_size": 5, "optimizer": training.optimizer}
        with BatchMemoryManager(**given) as loader:
            steps_of_one_pass(training, 4, loader)
            with pytest.raises(li.errors.InvalidInput, match=LEFT):
                steps_of_one_pass(training, 4, loader)
    assert len(training.accountant) == 2


def test_several_batches_for_one_step() -> None:
    with registered(a_run(batch_size=20)):
        training = set_up()
        for _ in range(2):
            batches = iter(training.loader)
            for features, targets in (next(batches), next(batches)):
                training.criterion(training.model(features), targets).backward()
            if len(training.accountant):
                with pytest.raises(li.errors.InvalidInput, match=LEFT):
                    training.optimizer.step()
            else:
                training.optimizer.step()
            training.optimizer.zero_grad()
    assert len(training.accountant) == 1
