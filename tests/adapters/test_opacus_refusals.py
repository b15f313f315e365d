"""What a run does not say is refused with one sentence, before the weights move."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from opacus.optimizers import DistributedDPOptimizer, DPOptimizerFastGradientClipping
from opacus.schedulers import ExponentialGradClip, ExponentialNoise
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, WeightedRandomSampler

import lastiterate as li
from lastiterate.adapters.opacus.described import batches_of
from lastiterate.adapters.opacus.steps import check_setup
from opacus_trainings import DELTA, MULTIPLIER, QUIET, RATE, a_run, linear, registered, set_up, table
from raising import raises

pytestmark = QUIET


@pytest.fixture(autouse=True)
def unseeded() -> None:
    torch.seed()


def sgd(**options: Any) -> Callable[..., Any]:
    return lambda weights: torch.optim.SGD(weights, **{"lr": RATE, **options})


def adam(**options: Any) -> Callable[..., Any]:
    return lambda weights: torch.optim.Adam(weights, **{"lr": RATE, **options})


POISSON = li.Poisson(40, 0.25)
ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 2.0,
    "min_clipbound": 0.1,
    "unclipped_num_std": 1.0,
}

# Changes of the run, changes of the script, what is said; nothing of these comes as far as the first step.
BEFORE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "Poisson batches": ({}, {"poisson_sampling": True}, "Poisson batches at rate 0.25 .* use poisson_sampling=False"),
    "no Poisson batches": ({"batches": POISSON}, {}, "from the loader; use poisson_sampling=True"),
    "a fixed order": ({}, {"loader": {"shuffle": False}}, "in a fixed order from the loader"),
    "another batch size": ({}, {"batch_size": 8}, "batches of 8 of 40 records"),
    "another number of records": ({}, {"records": 44}, "batches of 10 of 44 records"),
    "last batches that are dropped": (
        {"batches": li.Shuffled(45, 10, last="smaller")},
        {"records": 45, "loader": {"shuffle": True, "drop_last": True}},
        "5 left out from the loader",
    ),
    "last batches that are not dropped": (
        {"batches": li.Shuffled(45, 10, last="drop")},
        {"records": 45},
        "the last of each epoch of 5 from the loader",
    ),
    "a sampler that pads": (
        {"batches": li.Shuffled(45, 10, last="smaller")},
        {"records": 45, "loader": {"sampler": DistributedSampler(table(45), num_replicas=2, rank=0)}},
        "it repeats 1 records to fill its last batches, so one record may be used twice per epoch",
    ),
    "a sampler with a public order": (
        {},
        {"loader": {"sampler": DistributedSampler(table(40), num_replicas=2, rank=0)}},
        "its order comes from a public seed",
    ),
    "a sampler with weights": (
        {},
        {"loader": {"sampler": WeightedRandomSampler([1.0] * 40, 40)}},
        "Got the sampler WeightedRandomSampler",
    ),
    "a sampler with replacement": (
        {},
        {"loader": {"sampler": RandomSampler(table(40), replacement=True)}},
        "records once per epoch. Got RandomSampler with replacement",
    ),
    "random records for empty batches": (
        {"batches": POISSON},
        {"poisson_sampling": True, "rand_on_empty": True},
        "rand_on_empty must be False",
    ),
    "momentum": (
        {},
        {"optimizer": sgd(momentum=0.9)},
        r"plain gradient steps. Got momentum 0.9; .*li.SGD\(momentum=0.9\)",
    ),
    "Adam": ({}, {"optimizer": adam()}, r"use optimizer=li.Adam\(\) in the run"),
    "plain steps": ({"optimizer": li.Adam()}, {}, r"Got plain gradient steps; use optimizer=li.SGD\(\) in the run"),
    "other decay rates": (
        {"optimizer": li.Adam()},
        {"optimizer": adam(betas=(0.5, 0.9))},
        r"li.Adam\(betas=\(0.5, 0.9\)\)",
    ),
    "Adam with amsgrad": ({"optimizer": li.Adam()}, {"optimizer": adam(amsgrad=True)}, "optimizer='Adam with amsgrad'"),
    "a loss that is maximised": ({}, {"optimizer": sgd(maximize=True)}, "optimizer='SGD with maximize'"),
    "dampening": (
        {"optimizer": li.SGD(momentum=0.9, dampening=0.5)},
        {"optimizer": sgd(momentum=0.9, dampening=0.5)},
        "optimizer='SGD with dampening'",
    ),
    "clipping per layer": ({}, {"clipping": "per_layer", "max_grad_norm": [0.5] * 4}, "Got clipping per layer"),
    "adaptive clipping": ({}, ADAPTIVE, "an adaptive clip depends on the data"),
}


@pytest.mark.parametrize("name", BEFORE)
def test_before_the_first_step(name: str) -> None:
    changes, script, said = BEFORE[name]
    with registered(a_run(**changes)), pytest.raises(li.errors.InvalidInput, match=said) as refusal:
        set_up(**script)
    assert str(refusal.value).count("\n") == 0


# Changes of the run, changes of the script, what is said, and how many steps before that are executed.
DURING: dict[str, tuple[dict[str, Any], dict[str, Any], str, int]] = {
    "another multiplier": (
        {},
        {"noise_multiplier": 1.0},
        "noise_multiplier must be that of the run, 1.2, at step 1. Got 1.0",
        0,
    ),
    "another clip": ({}, {"max_grad_norm": 2.0}, "max_grad_norm must be the clip of the run, 1, at step 1. Got 2.0", 0),
    "another learning rate": ({}, {"optimizer": sgd(lr=0.2)}, "lr must be 0.1, the step_size of the run, at step 1", 0),
    "another learning rate of Adam": (
        {"optimizer": li.Adam()},
        {"optimizer": adam(lr=0.2)},
        "lr must be 0.1, .* Got 0.2",
        0,
    ),
    "weight decay": (
        {},
        {"optimizer": sgd(weight_decay=0.1)},
        "weight_decay must be 0, as in the run, at step 1. Got 0.1",
        0,
    ),
    "a start that is too far": (
        {"weight_decay": 0.1},
        {"optimizer": sgd(weight_decay=0.1)},
        "start_norm must be at least the norm of the weights before training",
        0,
    ),
    "another number of weights": (
        {"domain": li.Unbounded(dimension=7)},
        {},
        "dimension must be the number of weights, 22",
        0,
    ),
    "sums that are not divided": (
        {},
        {"loss_reduction": "sum"},
        "divides by nothing, .* use step_size = 1.0",
        0,
    ),
    "sums that Opacus divides by less": (
        {"batches": li.Shuffled(45, 10, last="smaller")},
        {"records": 45},
        "expected_batch_size = 9, but the run divides by 10. For lr = 0.1 use step_size = 0.111",
        0,
    ),
    "more steps": ({"steps": 3}, {}, "must stop after the run's 3 steps. Got one more", 3),
}


@pytest.mark.parametrize("name", DURING)
def test_at_the_step_where_it_is_seen(name: str) -> None:
    changes, script, said, before = DURING[name]
    with registered(a_run(**changes)):
        training = set_up(**script)
        weights = training.optimizer.params[0].detach().clone()
        with pytest.raises(li.errors.InvalidInput, match=said):
            training.epochs(1)
    assert len(training.accountant) == before
    assert before or torch.equal(weights, training.optimizer.params[0])
    if before:
        assert training.accountant.report(DELTA).epsilon > 0  # what was executed is what was described


def test_low_precision() -> None:
    with registered(a_run()):
        training = set_up(model=linear().bfloat16())
        features, targets = next(iter(training.loader))
        with raises("opacus_precision", "module", kind=li.errors.InvalidInput, got="torch.bfloat16"):
            training.one_step(features.bfloat16(), targets.bfloat16())


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (lambda one: torch.optim.lr_scheduler.ExponentialLR(one, 0.9), "lr must be 0.1, .* at step 2"),
        (lambda one: ExponentialNoise(one, gamma=0.9), "noise_multiplier must be that of the run, 1.2, at step 2"),
        (lambda one: ExponentialGradClip(one, gamma=0.9), "max_grad_norm must be the clip of the run, 1, at step 2"),
    ],
)
def test_schedules_that_the_run_does_not_have(schedule: Any, said: str) -> None:
    with registered(a_run()):
        training = set_up()
        scheduler = schedule(training.optimizer)
        with pytest.raises(li.errors.InvalidInput, match=said):
            training.epochs(1, after=scheduler.step)
    assert len(training.accountant) == 1


def test_gradients_of_several_batches_in_one_step() -> None:
    with registered(a_run()):
        training = set_up()
        for features, targets in list(training.loader)[:2]:
            training.criterion(training.model(features), targets).backward()
        with raises("opacus_sample_rate", "sample_rate", kind=li.errors.InvalidInput, needed=0.25, got="0.5"):
            training.optimizer.step()


def test_the_loader_that_make_private_did_not_return() -> None:
    """Its first batch is refused, of whatever size; the training can still begin with the right loader."""
    run = a_run(batches=POISSON, epochs=2)
    with registered(run):
        training = set_up(poisson_sampling=True)
        for size in (10, 20):
            with pytest.raises(li.errors.InvalidInput) as refusal:
                training.epochs(1, loader=DataLoader(table(40), batch_size=size, shuffle=True))
            assert refusal.value.field == "loader"
        with pytest.raises(li.errors.Unavailable):
            training.accountant.report(DELTA)
        assert training.epochs(2).accountant.run == run


def test_steps_of_two_optimisers() -> None:
    with registered(a_run()):
        training, other = set_up().epochs(1), set_up()
        other.optimizer.attach_step_hook(training.accountant.get_optimizer_hook_fn(0.25))
        with raises("opacus_two_optimizers", "optimizer", kind=li.errors.InvalidInput):
            other.epochs(1)


@pytest.mark.parametrize(
    ("kind", "said"),
    [(DistributedDPOptimizer, "in a single process"), (DPOptimizerFastGradientClipping, "adaptive clip")],
)
def test_optimisers_of_several_processes_and_adapted_noise(kind: Any, said: str) -> None:
    optimizer = kind.__new__(kind)
    optimizer._adjusted_noise_multiplier = 1.0
    if kind is DistributedDPOptimizer:
        del optimizer._adjusted_noise_multiplier
    with pytest.raises(li.errors.InvalidInput, match=said):
        check_setup(a_run(), optimizer)


def test_a_schedule_of_clips_that_ghost_clipping_does_not_follow() -> None:
    optimizer = DPOptimizerFastGradientClipping.__new__(DPOptimizerFastGradientClipping)
    run = a_run(loss=li.losses.network(clip=[1.0, 0.5]), noise=li.OnGradientSum(MULTIPLIER, [1.0, 0.5]), steps=2)
    with raises("opacus_ghost_clip_scheduled", "clip", kind=li.errors.InvalidInput):
        check_setup(run, optimizer)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"noise": li.OnMeanGradient(std=0.1)}, "noise must be li.OnGradientSum"),
        ({"batches": li.FixedSize(40, 10)}, "batches must be li.Poisson, .* which Opacus can draw"),
        ({"domain": li.Ball(radius=1.0)}, "domain must not be set"),
        ({"prox": li.parts.L1(weight=0.1)}, "prox must not be set"),
        ({"arithmetic": li.training.Arithmetic(1.0001, 1e-6)}, "arithmetic must not be set"),
        ({"loss": li.losses.softmax(feature_norm=1.0, classes=3, pull=0.5)}, "must not have pull="),
        ({"loss": li.losses.logistic(feature_norm=1.0, classes=3)}, "Opacus clips all classes together, .* > 1.732"),
    ],
)
def test_runs_that_opacus_cannot_execute(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(li.errors.InvalidInput, match=said):
        li.adapters.opacus.accountant_for(a_run(**changes))


def test_several_classes_without_clipping_are_covered() -> None:
    run = a_run(loss=li.losses.logistic(feature_norm=1.0, classes=3), noise=li.OnGradientSum(MULTIPLIER, 2.0))
    assert li.adapters.opacus.accountant_for(run).described == run


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: None, "must be what state_dict"),
        (lambda one: {**one, "mechanism": "rdp"}, "come from the accountant lastiterate. Got one from rdp"),
        (lambda one: {key: value for key, value in one.items() if key != "run"}, "without the entry run"),
        (lambda one: {**one, "run": {**one["run"], "steps": 9}}, "Got another run"),
        (lambda one: {**one, "history": [(MULTIPLIER, 0.25)]}, "with a malformed history"),
        (lambda one: {**one, "history": [(MULTIPLIER, 0.25, 9)]}, "at most the 8 steps"),
        (lambda one: {**one, "history": [(MULTIPLIER, 0.25, 3)]}, "Got one saved 3 steps into an epoch"),
        (lambda one: {**one, "history": [(-1.0, 0.25, 4)]}, "noise_multiplier must be"),
    ],
)
def test_states_of_other_trainings(change: Any, said: str) -> None:
    accountant = li.adapters.opacus.accountant_for(a_run())()
    with pytest.raises(li.errors.InvalidInput, match=said):
        accountant.load_state_dict(change(accountant.state_dict()))


def stepped() -> Any:
    accountant = li.adapters.opacus.accountant_for(a_run())()
    accountant.step(noise_multiplier=MULTIPLIER, sample_rate=0.25)
    return accountant


def test_plans_and_steps_are_kept_apart() -> None:
    kind = li.adapters.opacus.accountant_for(a_run())
    planned = kind()
    planned.history = [(3.0, 0.25, 8)]
    with raises("opacus_history_planned", "history", kind=li.errors.InvalidInput):
        planned.step(noise_multiplier=3.0, sample_rate=0.25)
    with raises("opacus_multiplier", "noise_multiplier", kind=li.errors.InvalidInput, needed=1.2, step=1):
        kind().step(noise_multiplier=3.0, sample_rate=0.25)  # set, and never asked for
    planned.get_epsilon(DELTA)
    calibrated = kind()
    calibrated.step(noise_multiplier=3.0, sample_rate=0.25)
    with raises("opacus_multiplier", "noise_multiplier", kind=li.errors.InvalidInput, needed=3.0, step=2, got="1.2"):
        calibrated.step(noise_multiplier=MULTIPLIER, sample_rate=0.25)
    with raises("opacus_history_executed", "history", kind=li.errors.InvalidInput):
        calibrated.history = [(3.0, 0.25, 8)]


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([(3.0, 0.25, 12)], "epochs must give the 8 steps of the run. Got 12 steps"),
        ([(3.0, 0.2, 10)], "which is 0.25 in the run. Got 0.2"),
        ([(3.0, 0.25, 4), (3.0, 0.25, 4)], "history must be"),
        ([(0.0, 0.25, 8)], "noise_multiplier must be"),
    ],
)
def test_plans_that_are_not_of_the_run(history: Any, said: str) -> None:
    with pytest.raises(li.errors.InvalidInput, match=said):
        li.adapters.opacus.accountant_for(a_run())().history = history


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (lambda: stepped().step(noise_multiplier=MULTIPLIER, sample_rate=0.5), "sample_rate must be 1 /"),
        (lambda: stepped().get_epsilon(DELTA, alphas=[2]), "get_epsilon takes no argument except delta. Got alphas"),
        (lambda: stepped().get_epsilon(2.0), "delta must be"),
        (lambda: li.adapters.opacus.accountant_for("run.toml"), "run must be a Run"),
        (lambda: li.adapters.opacus.accountant_for(a_run(), mechanism=""), "mechanism must be a name"),
        (lambda: li.adapters.opacus.accountant_for(a_run())().report(DELTA), "no step was executed yet"),
        (lambda: batches_of(SimpleNamespace(batch_sampler=None)), "Got the sampler NoneType"),  # type: ignore[arg-type]
    ],
)
def test_other_misuse(action: Callable[[], Any], said: str) -> None:
    with pytest.raises((li.errors.InvalidInput, li.errors.Unavailable), match=said):
        action()
