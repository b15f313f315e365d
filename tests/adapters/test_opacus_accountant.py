"""Opacus trains, the accountant counts what is executed, and ε is that of the run."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from opacus.accountants import PRVAccountant
from opacus.schedulers import ExponentialGradClip, ExponentialNoise
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn

import lastiterate as li
from lastiterate.adapters.opacus.setup import squared_straying
from lastiterate.cli import main
from lastiterate.errors import PrivacyLeak
from lastiterate.facts import Fact, fact
from opacus_trainings import CLIP, DELTA, MULTIPLIER, QUIET, RATE, a_run, linear, registered, set_up

pytestmark = QUIET
LOGISTIC = li.losses.logistic(feature_norm=1.0)


@pytest.fixture(autouse=True)
def unseeded() -> None:
    """Other tests may have seeded PyTorch's generator."""
    torch.seed()


def test_an_unchanged_script_gets_epsilon_and_a_certificate(tmp_path: Path) -> None:
    run = a_run(epochs=3)
    with registered(run):
        training = set_up()
        assert training.engine.get_epsilon(DELTA) == 0.0
        training.epochs(2)
        assert (len(training.accountant), training.accountant.run) == (8, run.first(8))
        assert training.engine.get_epsilon(DELTA) == li.account(run.first(8), DELTA).epsilon
        training.epochs(1)
        report = training.accountant.report(DELTA)
    assert training.accountant.run == run
    assert training.accountant.history == [(MULTIPLIER, 0.25, 12)]
    assert report.epsilon == li.account(run, DELTA).epsilon
    assert report.best.theorem.name == "bok2024/cyclic/composition"
    report.save_certificate(tmp_path / "certificate.json")
    assert main(["verify", str(tmp_path / "certificate.json")]) == 0
    verdict = li.verify(json.dumps(report.certificate), run)
    assert verdict.accepted
    assert verdict.assumptions == report.assumptions


def test_what_was_released_before_counts_from_the_beginning() -> None:
    run = a_run(epochs=1, prior_mu=0.3)
    with registered(run):
        training = set_up()
        assert training.engine.get_epsilon(DELTA) == li.notions.GaussianDP(0.3).epsilon(DELTA)
        training.epochs(1)
        assert training.engine.get_epsilon(DELTA) == li.account(run, DELTA).epsilon


def test_a_linear_model_hides_its_iterates() -> None:
    """The record is in one of four batches, and steps after it do not move apart: less than all iterates together."""
    run = a_run(loss=LOGISTIC)
    with registered(run):
        report = set_up(model=linear()).epochs(2).accountant.report(DELTA)
    assert report.run == rounded(run, 1e-3)
    assert report.epsilon == li.account(report.run, DELTA).epsilon < 0.9 * report.epsilon_all_released
    assert report.also_assumed[0] == exact("charged")
    assert li.verify(report.certificate, report.run).accepted


def exact(hidden: str, precision: str = "float32") -> Fact:
    """What is assumed of the arithmetic."""
    return fact("exact_arithmetic", precision=precision, hidden=hidden)


def rounded(run: li.Run, displacement: float) -> li.Run:
    return replace(run, arithmetic=li.training.Arithmetic(displacement=displacement))


@pytest.mark.parametrize(
    ("rate", "double", "kept"),
    [(RATE, True, 2.0**-19), (1e-4, False, None), (1e-4, True, 2.0**-19), (1e-16, True, None)],
)
def test_hidden_weights_count_where_their_rounding_is_small_beside_the_noise(
    rate: float, double: bool, kept: float | None
) -> None:
    run = a_run(loss=LOGISTIC, step_size=rate)
    with registered(run):
        model = linear().double() if double else linear()
        training = set_up(model=model, optimizer=lambda weights: torch.optim.SGD(weights, lr=rate))
        for features, targets in (batch for _ in range(2) for batch in training.loader):
            training.one_step(*((features.double(), targets.double()) if double else (features, targets)))
        report = training.accountant.report(DELTA)
    assert report.run == (run if kept is None else rounded(run, kept))
    assert (report.epsilon == report.epsilon_all_released) == (kept is None)
    assert report.also_assumed[0] == exact("charged" if kept else "too_coarse", "float64" if double else "float32")
    assert li.verify(report.certificate, report.run).accepted


def test_what_the_rounding_of_a_step_does_is_below_its_bound() -> None:
    """Every step once more, in double precision, from the weights and the noisy gradient that PyTorch had."""
    decay, run = 0.3, a_run(loss=LOGISTIC, weight_decay=0.3, start_norm=9.0, epochs=5)
    training = set_up(
        model=linear(),
        optimizer=lambda weights: torch.optim.SGD(weights, lr=RATE, weight_decay=decay),
        accountant="rdp",
    )
    bounds: list[tuple[torch.Tensor, float]] = []

    def hook(optimizer: Any) -> None:
        (weights,) = optimizer.params
        exact = weights.detach().double() - RATE * (weights.grad.double() + decay * weights.detach().double())
        noise = float(run.process.noise[0])
        bounds.append((exact, squared_straying(run, optimizer, 3, MULTIPLIER) ** 0.5 * noise))

    training.optimizer.attach_step_hook(hook)
    for features, targets in [batch for _ in range(5) for batch in training.loader]:
        training.one_step(features, targets)
        exact, bound = bounds[-1]
        off = float((training.optimizer.params[0].detach().double() - exact).norm())
        assert off <= bound < 20 * 2.0**-24
    assert len(bounds) == 20


def test_with_momentum_the_rounding_of_hidden_weights_is_assumed_to_be_small() -> None:
    run = a_run(loss=LOGISTIC, optimizer=li.SGD(momentum=0.5), epochs=4)
    with registered(run):
        training = set_up(model=linear(), optimizer=lambda weights: torch.optim.SGD(weights, lr=RATE, momentum=0.5))
        report = training.epochs(4).accountant.report(DELTA)
    assert report.run == run
    assert report.epsilon == li.account(run, DELTA).epsilon < report.epsilon_all_released
    assert report.also_assumed[0] == exact("assumed")


def test_what_is_assumed_of_opacus_is_in_the_report_and_the_certificate() -> None:
    with registered(a_run()):
        report = set_up().epochs(1).accountant.report(DELTA)
    drawn = fact("generator_unpredictable", drew="all")
    assert report.also_assumed == (exact("unused"), fact("criterion_reduction"), fact("loader_to_model"), drawn)
    assert set(report.also_assumed) <= set(report.promises)
    assert all(str(one) in report.details().replace("\n    ", " ") for one in report.also_assumed)
    said = " ".join(map(str, report.also_assumed))
    for words in ("does not include the float32 rounding", "not cryptographic", "loss_reduction", "is exchanged"):
        assert words in said
    assert "hidden" not in said
    for more in ("One line.\nAnother.", {"code": "all_is_well"}, {**drawn.to_dict(), "drew": "nothing"}):
        assert not li.verify({**report.certificate, "assumptions": [*report.certificate["assumptions"], more]}).accepted


def test_secure_noise_in_double_precision_needs_fewer_assumptions() -> None:
    with registered(a_run()):
        training = set_up(model=linear().double())
        training.optimizer.secure_mode = True
        for features, targets in training.loader:
            training.one_step(features.double(), targets.double())
    assumed = training.accountant.report(DELTA).also_assumed
    assert assumed == (exact("unused", "float64"), fact("criterion_reduction"), fact("loader_to_model"))


def test_weights_that_are_released_on_the_way_are_accounted_for() -> None:
    run = a_run(loss=LOGISTIC)
    with registered(run):
        report = set_up(model=linear()).epochs(2).accountant.report(DELTA, releases=[4])
    assert report.epsilon == li.account(report.run, DELTA, releases=[4]).epsilon > li.account(report.run, DELTA).epsilon


@pytest.mark.parametrize("seeded", ["torch", "noise", "order"])
def test_a_seed_is_a_caveat_and_its_certificate_is_rejected(seeded: str) -> None:
    options: dict[str, Any] = {}
    if seeded == "noise":
        options = {"noise_generator": torch.Generator()}  # the same noise for everybody who makes one
    if seeded == "order":
        options = {"loader": {"shuffle": True, "generator": torch.Generator().manual_seed(7)}}
    with registered(a_run()):
        training = set_up(**options)
        if seeded == "torch":
            torch.manual_seed(0)
        training.epochs(1)
    report = training.accountant.report(DELTA)
    noise, order = fact("noise_seeded", generator="torch"), fact("order_seeded")
    assert report.caveats == {"torch": (noise, order), "noise": (noise,), "order": (order,)}[seeded]
    assert all(str(caveat).startswith("DO NOT RELEASE") for caveat in report.caveats)
    assert not li.verify(report.certificate).accepted
    with pytest.warns(PrivacyLeak):
        training.engine.get_epsilon(DELTA)


def test_physical_batches_are_no_steps() -> None:
    run = a_run(epochs=1)
    with registered(run):
        training = set_up()
        with BatchMemoryManager(
            data_loader=training.loader, max_physical_batch_size=3, optimizer=training.optimizer
        ) as loader:
            training.epochs(1, loader=loader)
    assert len(training.accountant) == run.steps == 4


def test_gradients_of_two_batches_are_one_step_of_a_larger_one() -> None:
    with registered(a_run(batch_size=20)):
        training = set_up()
        for place, (features, targets) in enumerate(training.loader):
            training.criterion(training.model(features), targets).backward()
            if place % 2:
                training.optimizer.step()
                training.optimizer.zero_grad()
    assert training.accountant.history == [(MULTIPLIER, 0.5, 2)]


def test_ghost_clipping_is_the_same_run() -> None:
    run = a_run(epochs=1)
    with registered(run):
        training = set_up(grad_sample_mode="ghost", criterion=nn.BCEWithLogitsLoss()).epochs(1)
    assert training.accountant.run == run


@pytest.mark.parametrize(("last", "drop"), [("smaller", False), ("drop", True)])
def test_the_last_batch_of_an_epoch_is_as_the_run_says(last: str, drop: bool) -> None:
    with registered(
        a_run(
            records=45, batches=li.Shuffled(45, 10, last=last), step_size=RATE * 10 / (9 if last == "smaller" else 11)
        )
    ):
        training = set_up(records=45, loader={"shuffle": True, "drop_last": drop}).epochs(2)
    assert len(training.accountant) == (10 if last == "smaller" else 8)


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (
            lambda weights: torch.optim.SGD(weights, lr=RATE, momentum=0.9, nesterov=True),
            {"optimizer": li.SGD(momentum=0.9, nesterov=True)},
        ),
        (lambda weights: torch.optim.SGD(weights, lr=RATE, weight_decay=0.3), {"weight_decay": 0.3, "start_norm": 9.0}),
        (lambda weights: torch.optim.Adam(weights, lr=RATE), {"optimizer": li.Adam()}),
        (lambda weights: torch.optim.AdamW(weights, lr=RATE, weight_decay=0.0), {"optimizer": "adamw"}),
        (lambda weights: torch.optim.RMSprop(weights, lr=3.0), {"optimizer": "rmsprop"}),
        (
            lambda weights: torch.optim.SGD(weights, lr=RATE, momentum=0.9, dampening=0.5),
            {"optimizer": "SGD with dampening"},
        ),
        (
            lambda weights: torch.optim.SGD([{"params": list(weights)}, {"params": [], "lr": 9.0}], lr=RATE),
            {"optimizer": "SGD with parameter groups"},
        ),
    ],
)
def test_other_optimisers_are_those_of_the_run(make: Any, changes: dict[str, Any]) -> None:
    run = a_run(epochs=1, **changes)
    with registered(run):
        assert set_up(model=linear(), optimizer=make).epochs(1).accountant.run == run


def test_a_scheduler_is_a_schedule_of_the_run() -> None:
    run = a_run(step_size=li.cosine(RATE))
    with registered(run):
        training = set_up()
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(training.optimizer, T_max=run.steps)
        training.epochs(2, after=scheduler.step)
    assert training.accountant.run == run


def test_multipliers_and_clips_may_change_as_the_run_says() -> None:
    multipliers, clips = [MULTIPLIER * 0.9**step for step in range(8)], [CLIP * 0.9**step for step in range(8)]
    run = a_run(loss=li.losses.network(clip=clips), noise=li.OnGradientSum(multipliers, clips))
    with registered(run):
        training = set_up()
        noise, clip = (kind(training.optimizer, gamma=0.9) for kind in (ExponentialNoise, ExponentialGradClip))
        training.epochs(2, after=lambda: (noise.step(), clip.step()))
    assert training.accountant.run == run
    assert len(training.accountant.history) == 8


def test_steps_by_hand_are_counted_and_said() -> None:
    run = a_run()
    accountant = li.adapters.opacus.accountant_for(run)()
    for _ in range(run.steps):
        accountant.step(noise_multiplier=MULTIPLIER, sample_rate=0.25)
    report = accountant.report(DELTA)
    assert report.epsilon == li.account(run, DELTA).epsilon
    assert {fact("steps_unseen", count=8), fact("loader_unseen")} <= set(report.promises)
    assert report.promises == report.assumptions


def test_poisson_composition_is_that_of_opacus() -> None:
    """Its PRV accountant returns an upper bound, with eps_error = 0.01 of room."""
    run = a_run(batches=li.Poisson(40, 0.25), epochs=5, adjacency=li.ADD_OR_REMOVE_ONE)
    peer = PRVAccountant()
    peer.history = [(MULTIPLIER, 0.25, 20)]
    with registered(run):
        training = set_up(poisson_sampling=True).epochs(5)
    ours = training.engine.get_epsilon(DELTA)
    assert ours <= peer.get_epsilon(DELTA) <= ours + 0.021
    assert li.verify(training.accountant.report(DELTA).certificate, run).accepted


def test_a_checkpoint_goes_on() -> None:
    run, file = a_run(), io.BytesIO()
    with registered(run):
        first = set_up().epochs(1)
        first.engine.save_checkpoint(path=file, module=first.model, optimizer=first.optimizer)
        file.seek(0)
        second = set_up()
        second.engine.load_checkpoint(path=file, module=second.model, optimizer=second.optimizer)
        assert len(second.accountant) == 4
        second.epochs(1)
    assert second.accountant.run == run
    assert second.accountant.report(DELTA).also_assumed == (
        *first.accountant.report(DELTA).also_assumed,
        fact("resumed_as_saved"),
    )
    state = json.loads(json.dumps(second.accountant.state_dict()))
    third = type(second.accountant)()
    third.load_state_dict(state)
    assert third.state_dict() == second.accountant.state_dict() == third.state_dict({})


def test_calibration_goes_through_the_run() -> None:
    """Opacus stops within epsilon_tolerance of the target; room is left for the rounding of weights in single precision."""
    run = a_run(loss=LOGISTIC)
    target = {"target_epsilon": 2.0, "target_delta": DELTA, "epochs": 2}
    with registered(run):
        training = set_up(model=linear(), epsilon=target).epochs(2)
    multiplier = training.optimizer.noise_multiplier
    least = li.calibrate(run, epsilon=2.0, delta=DELTA).noise.multiplier  # type: ignore[attr-defined]
    assert least * 0.999 <= multiplier <= 1.03 * least
    assert training.accountant.run.noise == li.OnGradientSum(multiplier, CLIP)
    assert 1.98 <= training.engine.get_epsilon(DELTA) <= 2.0
    assert li.verify(training.accountant.report(DELTA).certificate).accepted


def test_opacus_plans_a_step_too_few_and_the_run_does_not() -> None:
    """⌊epochs/(1/batches)⌋ is epochs·batches − 1 for 2,903 of the first 50,000 numbers of batches, in one epoch."""
    counts = np.arange(1, 50_001)
    missing = counts[np.floor(1 / (1 / counts)) != counts]
    assert (len(missing), missing[0]) == (2903, 93)
    assert (np.floor(1 / (1 / missing)) == missing - 1).all()
    run = a_run(records=93, batch_size=1, epochs=1)
    planned, straight = (li.adapters.opacus.accountant_for(run)() for _ in range(2))
    planned.history = [(MULTIPLIER, 1 / 93, int(1 / (1 / 93)))]
    assert planned.history[0][2] == 92
    assert planned.get_epsilon(DELTA) == li.account(run, DELTA).epsilon
    assert len(planned) == len(straight) == 0


def test_one_step_of_opacus_is_one_step_of_the_run() -> None:
    """45 records in batches of 10: Opacus divides by 9 = ⌊45/5⌋, also the last 5; the run scales its step size."""
    training = set_up(
        records=45,
        model=linear(),
        optimizer=lambda weights: torch.optim.SGD(weights, lr=RATE, weight_decay=0.3),
        loader={"shuffle": False},
        noise_generator=torch.Generator().manual_seed(3),
        accountant="rdp",
    )
    run = li.adapters.opacus.run_of(training.engine, training.optimizer, training.loader, epochs=1, loss=LOGISTIC)
    assert run.batches == li.Cyclic(45, 10, last="smaller")
    generator = torch.Generator().manual_seed(3)
    for step, (features, targets) in enumerate(training.loader):
        before = training.optimizer.params[0].detach().double().numpy().ravel()
        x, y = features.double().numpy(), targets.double().numpy().ravel()
        gradients = (1 / (1 + np.exp(-x @ before)) - y)[:, None] * x  # norms are below the clip
        normal = torch.normal(0.0, 1.0, (1, len(before)), generator=generator).double().numpy().ravel()
        after = run.noise.update(before, step, float(run.step_size), gradients.sum(axis=0), run.batches.divisor, normal)  # type: ignore[arg-type]
        training.one_step(features, targets)
        expected = after - float(run.step_size) * run.weight_decay * before  # type: ignore[arg-type]
        np.testing.assert_allclose(training.optimizer.params[0].detach().numpy().ravel(), expected, atol=1e-6)


def test_without_opacus_the_extra_is_named() -> None:
    code = "import sys; sys.modules['opacus'] = None; import lastiterate as li; li.adapters.opacus"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert "ImportError: li.adapters.opacus needs Opacus. Install it with: pip install 'lastiterate[opacus]'." in said


def test_the_adapters_are_rooms() -> None:
    assert dir(li.adapters) == ["dp_accounting", "opacus"]
    assert dir(li.adapters.opacus) == ["Accountant", "accountant_for", "run_of"]
    with pytest.raises(AttributeError, match="has no attribute 'tensorflow'"):
        _ = li.adapters.tensorflow
