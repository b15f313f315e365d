"""What the accountant takes from outside, entry by entry: for each an attack that is refused, or a line in the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, default_collate

import lastiterate as li
from lastiterate.adapters.opacus.trusted import TRUSTED
from lastiterate.errors import worded
from lastiterate.facts import fact
from opacus_trainings import DELTA, MULTIPLIER, QUIET, RATE, Training, a_run, registered, set_up, table

pytestmark = QUIET
POISSON = {"batches": li.Poisson(40, 0.25), "adjacency": li.ADD_OR_REMOVE_ONE}
GHOST = {"grad_sample_mode": "ghost", "criterion": nn.BCEWithLogitsLoss()}
DOCUMENT = Path(__file__).parents[2] / "docs" / "tutorials" / "opacus.md"


@pytest.fixture(autouse=True)
def unseeded() -> None:
    """Other tests may have seeded PyTorch's generator."""
    torch.seed()


def own_criterion(training: Training) -> None:
    """Ghost clipping clips in the backward pass of its own criterion, and nowhere else."""
    training.criterion = nn.BCEWithLogitsLoss()
    training.epochs(1)


def own_criterion_besides(training: Training) -> None:
    features, targets = next(iter(training.loader))
    training.optimizer.zero_grad()
    training.criterion(training.model(features), targets).backward()
    nn.BCEWithLogitsLoss()(training.model(features), targets).backward()
    training.optimizer.step()


def own_criterion_for_a_part(training: Training) -> None:
    """The first part of a batch is added up where no step is taken."""
    given = {"data_loader": training.loader, "max_physical_batch_size": 5, "optimizer": training.optimizer}
    clipped, own = training.criterion, nn.BCEWithLogitsLoss()
    with BatchMemoryManager(**given) as loader:
        for place, (features, targets) in enumerate(loader):
            training.criterion = clipped if place % 2 else own
            training.one_step(features, targets)


def gradient_scaled_by_hand(training: Training) -> None:
    features, targets = next(iter(training.loader))
    training.criterion(training.model(features), targets).backward()
    for one in training.optimizer.params:
        one.grad.mul_(3.0)
    training.optimizer.step()


def clip_of_the_module(training: Training) -> None:
    training.model.max_grad_norm = 2.0
    training.epochs(1)


def original_loader(training: Training) -> None:
    training.epochs(1, loader=DataLoader(training.loader.dataset, batch_size=10, shuffle=True))


def batch_left_out(training: Training) -> None:
    for place, (features, targets) in enumerate(training.loader):
        if place != 1:
            training.one_step(features, targets)


def batch_used_twice(training: Training) -> None:
    for features, targets in training.loader:
        training.one_step(features, targets)
        training.one_step(features, targets)


def records_left_out(training: Training) -> None:
    for features, targets in training.loader:
        training.one_step(features[1:], targets[1:])


def skipped_by_hand(training: Training) -> None:
    """One batch in two sums without a step between: every record is added twice."""
    for features, targets in training.loader:
        training.optimizer.signal_skip_step(True)
        training.one_step(features, targets)
        training.optimizer.signal_skip_step(False)
        training.one_step(features, targets)


def learning_rate(training: Training) -> None:
    training.optimizer.param_groups[0]["lr"] = 2 * RATE
    training.epochs(1)


def multiplier(training: Training) -> None:
    training.optimizer.noise_multiplier = MULTIPLIER / 2
    training.epochs(1)


def accumulated(training: Training) -> None:
    for features, targets in list(training.loader)[:2]:
        training.criterion(training.model(features), targets).backward()
    training.optimizer.step()


def half_precision(training: Training) -> None:
    training.model.bfloat16()
    features, targets = next(iter(training.loader))
    training.one_step(features.bfloat16(), targets.bfloat16())


def older_state(training: Training) -> None:
    """Eleven of thirty steps would be counted."""
    old = training.epochs(1).accountant.state_dict()
    training.epochs(1)
    training.accountant.load_state_dict(old)


Attack = tuple[Callable[[Training], None], dict[str, Any], dict[str, Any]]
ATTACKS: dict[str, list[Attack]] = {
    "optimiser": [(learning_rate, {}, {})],
    "noise": [(multiplier, {}, {})],
    "weights": [(half_precision, {}, {})],
    "sample rate": [(accumulated, {}, {})],
    "criterion": [
        (own_criterion, {}, GHOST),
        (own_criterion, POISSON, {**GHOST, "poisson_sampling": True}),
        (own_criterion_besides, {}, GHOST),
        (own_criterion_for_a_part, {}, GHOST),
        (gradient_scaled_by_hand, {}, GHOST),
        (clip_of_the_module, {}, GHOST),
    ],
    "loader": [
        (original_loader, {}, {}),
        (original_loader, POISSON, {"poisson_sampling": True}),
        (batch_left_out, {}, {}),
        (batch_left_out, POISSON, {"poisson_sampling": True}),
        (batch_used_twice, {}, {}),
        (batch_used_twice, POISSON, {"poisson_sampling": True}),
    ],
    "batch": [
        (records_left_out, {}, {}),
        (records_left_out, POISSON, {"poisson_sampling": True}),
        (skipped_by_hand, {}, {}),
        (skipped_by_hand, POISSON, {"poisson_sampling": True}),
        (skipped_by_hand, {}, GHOST),
    ],
    "state": [(older_state, {}, {})],
}


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name, attacks in ATTACKS.items() for place in range(len(attacks))]
)
def test_every_attack_is_refused_before_the_weights_move(name: str, place: int) -> None:
    attack, changes, script = ATTACKS[name][place]
    with registered(a_run(epochs=4, **changes)):
        training = set_up(**script)
        counted: list[int] = []
        moved = training.optimizer.original_optimizer.register_step_post_hook(lambda *_: counted.append(1))
        with pytest.raises(li.errors.InvalidInput) as refusal:
            attack(training)
        moved.remove()
    assert str(refusal.value).count("\n") == 0
    assert len(training.accountant) == len(counted)


def seeded_again(training: Training) -> None:
    """The same seed before each epoch, too long to look like one that was typed."""
    for _ in range(2):
        torch.manual_seed(3**38)
        training.epochs(1)


def seeded_otherwise(training: Training) -> None:
    for epoch in range(2):
        torch.manual_seed(3**38 + epoch)
        training.epochs(1)


def seeded_order(training: Training) -> None:
    for _ in range(2):
        training.loader.generator.manual_seed(3**38)
        training.epochs(1)


def long_seed(training: Training) -> None:
    torch.manual_seed(2**33 + 1)
    training.epochs(1)


SEEDED: list[tuple[Callable[[Training], None], dict[str, Any], int]] = [
    (seeded_again, {}, 2),
    (seeded_otherwise, {}, 2),
    (long_seed, {}, 2),
    (seeded_order, {"loader": {"shuffle": True, "generator": torch.Generator()}}, 1),
]


@pytest.mark.parametrize("place", range(len(SEEDED)))
def test_seeds_are_looked_at_in_every_step(place: int) -> None:
    attack, script, count = SEEDED[place]
    with registered(a_run(epochs=2)):
        training = set_up(**script)
        attack(training)
        report = training.accountant.report(DELTA)
    assert [one.code for one in report.caveats] == ["noise_seeded", "order_seeded"][-count:]


def test_what_cannot_be_seen_is_in_the_report() -> None:
    """Of a training that was resumed, with a collate function of its own."""

    def mixing(records: list[Any]) -> Any:
        features, targets = default_collate(records)
        return features.lerp(features.roll(1, 0), 0.3), targets

    with registered(a_run(epochs=2)):
        first = set_up().epochs(1)
        second = set_up(loader={"shuffle": True, "collate_fn": mixing})
        second.accountant.load_state_dict(first.accountant.state_dict())
        report = second.epochs(1).accountant.report(DELTA)
    said = {one.name for one in TRUSTED if {line.code for line in report.also_assumed} & set(one.assumed)}
    assert {"criterion", "loader", "collate function", "state", "seeds"} <= said
    assert fact("collate_separate", compared="never") in report.promises
    assert all(one.assumed or one.name in ATTACKS for one in TRUSTED)


def test_every_entry_has_an_attack_or_a_line_in_the_report_and_is_documented() -> None:
    names = [one.name for one in TRUSTED]
    assert len(set(names)) == len(names)
    assert set(ATTACKS) <= set(names)
    text = DOCUMENT.read_text()
    assert all(f"| {one.name} | {worded(one.needed)} |" in text for one in TRUSTED)


def test_a_ghost_optimiser_that_make_private_did_not_set_up() -> None:
    with registered(a_run()):
        training = set_up(accountant="rdp", **GHOST)
        accountant = li.adapters.opacus.accountant_for(a_run())()
        training.optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(0.25))
        with pytest.raises(li.errors.InvalidInput) as refusal:
            training.epochs(1)
    assert refusal.value.field == "criterion"
    assert len(accountant) == 0


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("script", [{}, GHOST])
def test_poisson_batches_of_the_loader_are_counted(script: dict[str, Any], workers: int) -> None:
    run = a_run(epochs=3, **POISSON)
    with registered(run):
        training = set_up(poisson_sampling=True, loader={"shuffle": True, "num_workers": workers}, **script)
        next(iter(training.loader))
        training.epochs(3)
    assert training.accountant.run == run


@pytest.mark.parametrize("script", [{}, GHOST])
def test_poisson_batches_that_are_cut_up_are_counted(script: dict[str, Any]) -> None:
    run = a_run(epochs=3, **POISSON)
    with registered(run):
        training = set_up(poisson_sampling=True, **script)
        given = {"data_loader": training.loader, "max_physical_batch_size": 3, "optimizer": training.optimizer}
        with BatchMemoryManager(**given) as loader:
            training.epochs(3, loader=loader)
    assert training.accountant.run == run


def test_records_by_ten_with_a_smaller_last_batch() -> None:
    """95 records by 10, called Poisson batches: passes have more than twice the epsilon."""
    run = a_run(batches=li.Poisson(95, 0.1), adjacency=li.ADD_OR_REMOVE_ONE, step_size=RATE * 9.5 / 9)
    with registered(run):
        training = set_up(records=95, poisson_sampling=True)
        with pytest.raises(li.errors.InvalidInput) as refusal:
            training.epochs(2, loader=DataLoader(table(95), batch_size=10, shuffle=True))
    assert refusal.value.field == "loader"
    assert len(training.accountant) == 0


@pytest.mark.parametrize("cut_up", [False, True])
@pytest.mark.parametrize("script", [{}, GHOST])
def test_empty_batches_are_steps(script: dict[str, Any], cut_up: bool) -> None:
    """About one in three: noise alone is added there."""
    run = a_run(batches=li.Poisson(8, 0.125), epochs=4, adjacency=li.ADD_OR_REMOVE_ONE)
    with registered(run):
        training = set_up(records=8, batch_size=1, poisson_sampling=True, **script)
        given = {"data_loader": training.loader, "max_physical_batch_size": 1, "optimizer": training.optimizer}
        sizes: list[int] = []
        torch.manual_seed(1)  # so that some are
        with BatchMemoryManager(**given) as loader:
            for _ in range(4):
                for features, targets in loader if cut_up else training.loader:
                    sizes.append(len(features))
                    training.one_step(features, targets)
    assert 0 in sizes
    assert training.accountant.run == run
