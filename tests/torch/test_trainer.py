"""The run that is accounted for is the one that is executed: steps, noise, batches, releases, checkpoints."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.facts import Basis, fact
from raising import raises

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402

from lastiterate.numerics.randomness import Source  # noqa: E402
from lastiterate.torch import PrivateTrainer, clip_and_noise, loader  # noqa: E402
from lastiterate.torch.checkpoint import _FORMAT, data_identity  # noqa: E402
from lastiterate.torch.tensors import Tensors  # noqa: E402
from lastiterate.torch.trainer import BatchSampler  # noqa: E402

cross_entropy = torch.nn.functional.cross_entropy
RECORDS = 24
torch.manual_seed(0)
FEATURES, LABELS = torch.randn(RECORDS, 4, dtype=torch.float64), torch.randint(3, (RECORDS,))
DATA = TensorDataset(FEATURES, LABELS)
QUIET = 1e-11


def a_model(dtype: Any = torch.float64) -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)).to(dtype)


def a_run(noise: float = QUIET, batches: Any = None, steps: int = 12, **more: Any) -> li.Run:
    batches = batches or li.Cyclic(RECORDS, 8)
    more.setdefault("step_size", 0.3)
    size = more.pop("step_size")
    return li.Run(li.losses.network(clip=0.5), batches, size, li.OnGradientSum(noise, 0.5), steps, **more)


def by_hand(optimizer_of: Any, steps: int = 12, rates: Any = None, decay: float = 0.0) -> Any:
    """Noiseless: clipped gradients record by record, cyclic batches of 8, an optimiser of torch.optim."""
    model = a_model()
    optimizer = optimizer_of(model.parameters())
    for step in range(steps):
        if rates is not None:
            optimizer.param_groups[0]["lr"] = rates[step]
        total = [torch.zeros_like(one) for one in model.parameters()]
        for place in range(step % 3 * 8, step % 3 * 8 + 8):
            loss = cross_entropy(model(FEATURES[place : place + 1]), LABELS[place : place + 1])
            found = torch.autograd.grad(loss, list(model.parameters()))
            norm = math.sqrt(sum(float(one.square().sum()) for one in found))
            for sum_, one in zip(total, found, strict=True):
                sum_ += one * min(1.0, 0.5 / norm) / 8
        for one, gradient in zip(model.parameters(), total, strict=True):
            one.grad = gradient
        optimizer.step()
    return torch.nn.utils.parameters_to_vector(model.parameters())


SGD, ADAM, ADAMW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
WAYS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "plain": (None, lambda p: SGD(p, 0.3), {}),
    "decay": (None, lambda p: SGD(p, 0.3, weight_decay=0.1), {"weight_decay": 0.1}),
    "momentum": (li.SGD(momentum=0.9), lambda p: SGD(p, 0.3, momentum=0.9), {}),
    "nesterov": (li.SGD(momentum=0.8, nesterov=True), lambda p: SGD(p, 0.3, momentum=0.8, nesterov=True), {}),
    "adam": (li.Adam(), lambda p: ADAM(p, 0.3), {}),
    "adamw": (li.Adam(decoupled=True), lambda p: ADAMW(p, 0.3, weight_decay=0.1), {"weight_decay": 0.1}),
    "rmsprop": ("RMSprop", lambda p: torch.optim.RMSprop(p, 0.3), {}),
}


def last_of(model: Any) -> Any:
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("own_loop", [False, True])
def test_steps_are_those_of_torch_optim(name: str, own_loop: bool) -> None:
    said, optimizer_of, more = WAYS[name]
    run, model = a_run(optimizer=said, **more), a_model()
    if own_loop:
        optimizer = optimizer_of(model.parameters())
        batches = loader(DATA, run)
        steps = clip_and_noise(optimizer, model, cross_entropy, run, batches, seed=0)
        for inputs, targets in batches:
            steps.accumulate(inputs[:3], targets[:3])
            steps.accumulate(inputs[3:], targets[3:])
            steps.step()
        steps.finish()
    else:
        given = optimizer_of(model.parameters()) if name == "rmsprop" else None
        PrivateTrainer(model, cross_entropy, run, DATA, optimizer=given, seed=0, at_once=5).fit()
    assert torch.allclose(last_of(model), by_hand(optimizer_of), atol=1e-6)


def test_schedules_and_schedulers() -> None:
    run, model = a_run(step_size=li.cosine(0.3)), a_model()
    PrivateTrainer(model, cross_entropy, run, DATA, seed=0).fit()
    rates = [float(one) for one in run.step_size]
    assert torch.allclose(last_of(model), by_hand(lambda p: SGD(p, 0.3), rates=rates), atol=1e-6)


@pytest.mark.parametrize("optimizer", [None, li.SGD(momentum=0.9), li.Adam()], ids=["plain", "momentum", "adam"])
def test_steps_may_become_as_small_as_a_cosine_makes_them(optimizer: Any) -> None:
    """Where nothing but composition holds, each value is rounded beside its own noise."""
    run = a_run(1.0, step_size=li.cosine(0.5), steps=120, optimizer=optimizer)
    assert run.process.noise.max() / run.process.noise.min() > 1000
    trained = PrivateTrainer(a_model(), cross_entropy, run, DATA).fit()
    assert trained.report(1e-5).epsilon == pytest.approx(li.account(run, 1e-5).epsilon, rel=1e-3)


@pytest.mark.parametrize("kind", [SGD, ADAM])
def test_a_scheduler_sets_the_rate_that_the_run_says_also_after_a_stop(kind: Any, tmp_path: Path) -> None:
    run = a_run(step_size=li.cosine(0.3), optimizer=None if kind is SGD else li.Adam())
    rates = [float(one) for one in run.step_size]

    def trainer(model: Any, data: Any) -> PrivateTrainer:
        by = kind(model.parameters(), 0.3)
        scheduler = torch.optim.lr_scheduler.LambdaLR(by, lambda step: rates[min(step, 11)] / 0.3)
        return PrivateTrainer(model, cross_entropy, run, data, optimizer=by, scheduler=scheduler, seed=0)

    model, file = a_model(), tmp_path / "state"
    with pytest.raises(Killed):
        trainer(a_model(), KillsAfter(6 * 8)).fit(file, 0.0)
    trainer(model, KillsAfter(6 * 8)).fit(file, 0.0)
    assert torch.allclose(last_of(model), by_hand(lambda p: kind(p, 0.3), rates=rates), atol=1e-6)


@pytest.mark.parametrize("released", [li.EMA(decay=0.7), li.AVERAGE(), li.AVERAGE(last=4)], ids=lambda one: one.kind)
@pytest.mark.parametrize("optimizer", [None, li.SGD(momentum=0.9), li.Adam()], ids=["plain", "momentum", "adam"])
def test_averages_are_those_of_numpy(released: Any, optimizer: Any) -> None:
    model = torch.nn.Linear(4, 3, bias=False).double()
    start = last_of(model).numpy()
    run = a_run(optimizer=optimizer, released=released)
    PrivateTrainer(model, cross_entropy, run, DATA, seed=0).fit()

    def gradients(weights: Any, features: Any, labels: Any) -> Any:
        scores = features @ weights.reshape(3, 4).T
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        shares[np.arange(len(labels)), labels] -= 1
        return (shares[:, :, None] * features[:, None, :]).reshape(len(labels), -1)

    expected = li.train(run, (FEATURES.numpy(), LABELS.numpy()), loss=gradients, start=start, seed=0).weights
    assert last_of(model).numpy() == pytest.approx(expected, abs=1e-6)


CONVENTIONS = (
    li.OnIterate(0.02),
    li.OnMeanGradient(0.2),
    li.OnGradientSum(1.6, 1.0),
    li.Langevin(0.02 / math.sqrt(0.2)),
)


@pytest.mark.parametrize("noise", CONVENTIONS, ids=lambda one: one.kind)
@pytest.mark.parametrize("optimizer", [None, "SGD by PyTorch"])
def test_noise_is_as_large_as_the_run_says(noise: Any, optimizer: Any) -> None:
    """A loss without a gradient: what is left is noise, 20,000 coordinates of standard deviation √steps·0.02."""
    model = torch.nn.Linear(20_000, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    data = TensorDataset(torch.zeros(8, 20_000), torch.zeros(8))
    run = li.Run(li.losses.network(clip=1.0), li.Cyclic(8, 8), 0.1, noise, 4)
    by = None
    if optimizer is not None:
        run = replace(run, optimizer="SGD")
        by = torch.optim.SGD(model.parameters(), 0.1)
    trained = PrivateTrainer(model, lambda out, _: out.squeeze(1), run, data, optimizer=by).fit()
    drawn = last_of(model).double()
    assert trained.private
    assert float(drawn.std()) == pytest.approx(2 * 0.02, rel=0.035)
    assert float(drawn.mean()) == pytest.approx(0.0, abs=7 * 0.04 / math.sqrt(20_000))


def test_noisy_values_are_on_a_public_grid_and_none_is_lost() -> None:
    value = torch.randn(5000, dtype=torch.float64)
    source = Source()
    noisy = Tensors().noisy(value.clone(), 0.3, source, 20)
    grid = 2.0 ** (math.frexp(0.3)[1] - 1 - 20)
    assert bool((torch.round(noisy / grid) * grid == noisy).all())
    assert float((noisy - value).std()) == pytest.approx(0.3, rel=0.07)
    with raises("noise_lost", kind=li.errors.InvalidInput, noise=1e-9):
        Tensors().noisy(1e9 * value, 1e-9, source, 30)
    assert Tensors().noisy(value.to("meta"), 0.3, source, 20).is_meta


KINDS = (
    li.FullBatch(RECORDS),
    li.Cyclic(RECORDS, 7, last="smaller"),
    li.Shuffled(RECORDS, 7, last="drop"),
    li.Shuffled(RECORDS, 8, each_epoch=False),
    li.FixedSize(RECORDS, 5),
    li.Poisson(RECORDS, 0.05),
    li.parts.PoissonMean(RECORDS, 0.3),
    li.BallsAndBins(RECORDS, 4),
)


class Places(Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, place: int) -> int:
        return place


@pytest.mark.parametrize("batches", KINDS, ids=lambda one: one.described[:40])
def test_batches_are_drawn_as_the_run_says(batches: Any) -> None:
    run = li.Run(li.losses.network(clip=0.5), batches, 0.3, li.OnMeanGradient(0.1), 8)
    drawn = [[] if batch is None else batch.tolist() for batch in loader(Places(), run)]
    assert len(drawn) == 8
    assert all(len(set(batch)) == len(batch) <= batches.largest for batch in drawn)
    epoch = [place for batch in drawn[: batches.per_epoch] for place in batch]
    if batches.passes and batches.per_epoch <= 8:
        assert len(set(epoch)) == len(epoch) == RECORDS - (RECORDS % 7 if "left out" in batches.described else 0)
    if batches.constant_size:
        assert {len(batch) for batch in drawn} <= {batches.largest, batches.last_size}
    with raises("loader_option_of_run", "shuffle"):
        loader(Places(), run, shuffle=True)


def test_workers_bring_the_same_batches() -> None:
    run = a_run(batches=li.Shuffled(RECORDS, 8))
    sampler = BatchSampler(run)
    brought = DataLoader(Places(), batch_sampler=sampler, num_workers=2)
    batches = [batch.tolist() for batch in brought]
    assert [len(batch) for batch in batches] == [8] * 12 == [count for count, _ in sampler.drawn]
    epochs = [[place for batch in batches[first : first + 3] for place in batch] for first in (0, 3, 6, 9)]
    assert all(sorted(epoch) == list(range(RECORDS)) for epoch in epochs)


def test_the_report_is_that_of_the_run_with_what_was_released() -> None:
    run = a_run(1.0, li.Poisson(RECORDS, 0.25), adjacency=li.ADD_OR_REMOVE_ONE)
    trained = PrivateTrainer(a_model(), cross_entropy, run, DATA, releases=[4]).fit()
    report = trained.report(1e-5)
    assert report.releases == (4,)
    assert report.epsilon == li.account(trained.run, 1e-5, releases=[4]).epsilon
    assert report.epsilon == pytest.approx(li.account(run, 1e-5, releases=[4]).epsilon, rel=1e-3)
    assert set(trained.released[4]) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert fact("record_gradients_separate").on(Basis.CHECKED) in report.assumptions
    assert {one.code for one in report.assumptions if one.basis is Basis.ENFORCED} >= {"noise", "clipped"}
    assert li.verify(report.certificate).accepted
    seeded = PrivateTrainer(a_model(), cross_entropy, run, DATA, seed=3).fit().report(1e-5)
    assert seeded.caveats == (fact("noise_seeded", generator="lastiterate"),)
    assert str(seeded).startswith("DO NOT RELEASE")
    assert not [one for one in seeded.assumptions if one.basis is Basis.ENFORCED]


def test_smooth_losses_have_hidden_states() -> None:
    """With a smoothness that the owner stands for, theorems about the last iterate count."""
    run = li.Run(
        li.losses.network(clip=0.5, smoothness=0.5), li.Cyclic(RECORDS, 4), 0.05, li.OnGradientSum(1.0, 0.5), 60,
    )  # fmt: skip
    report = PrivateTrainer(a_model(), cross_entropy, run, DATA).fit().report(1e-5)
    assert report.epsilon < 0.8 * report.epsilon_all_released
    assert report.epsilon == pytest.approx(li.account(run, 1e-5).epsilon, rel=1e-3)


def test_a_target_is_met() -> None:
    run = a_run(1.0, li.Poisson(RECORDS, 0.25), adjacency=li.ADD_OR_REMOVE_ONE)
    trainer = PrivateTrainer(a_model(), cross_entropy, run, DATA, epsilon=2.0, delta=1e-5)
    assert 1.99 < trainer.fit().report(1e-5).epsilon <= 2.0
    shorter = PrivateTrainer(a_model(), cross_entropy, run, DATA, epsilon=3.0, delta=1e-5, free="steps")
    assert shorter.run.steps < run.steps
    assert shorter.fit().report(1e-5).epsilon <= 3.0
    with raises("epsilon_without_delta", "epsilon"):
        PrivateTrainer(a_model(), cross_entropy, run, DATA, epsilon=3.0)


def test_what_was_calibrated_meets_its_target_in_a_loop_of_ones_own() -> None:
    run = li.calibrate(a_run(1.0, li.Shuffled(RECORDS, 8), adjacency=li.ZERO_OUT), epsilon=2.0, delta=1e-5)
    model, batches = a_model(), loader(DATA, run)
    steps = clip_and_noise(SGD(model.parameters(), 0.3), model, cross_entropy, run, batches)
    for inputs, targets in batches:
        steps.accumulate(inputs, targets)
        steps.step()
    assert 1.995 < steps.finish().report(1e-5).epsilon <= 2.0


class Killed(Exception):
    pass


class KillsAfter(Dataset):  # type: ignore[misc]
    """Records, until so many have been asked for."""

    def __init__(self, left: float) -> None:
        self.left = left

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, place: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise Killed
        return FEATURES[place], LABELS[place]

    def checkpoint_identity(self) -> str:
        """Not to be read for that."""
        return "the records of this module"


@pytest.mark.parametrize("optimizer", [None, li.SGD(momentum=0.9), li.Adam()], ids=["plain", "momentum", "adam"])
def test_a_training_that_was_killed_goes_on(optimizer: Any, tmp_path: Path) -> None:
    run, file = a_run(0.3, li.Shuffled(RECORDS, 8), optimizer=optimizer, released=li.EMA(0.5)), tmp_path / "state"
    whole, parts = a_model(), a_model()
    PrivateTrainer(whole, cross_entropy, run, DATA, seed=0, releases=[2]).fit()
    with pytest.raises(Killed):
        PrivateTrainer(parts, cross_entropy, run, KillsAfter(5 * 8 + 3), seed=0, releases=[2]).fit(file, 0.0)
    assert file.stat().st_mode & 0o777 == 0o600
    other = PrivateTrainer(a_model(), cross_entropy, run.with_noise(1.1), KillsAfter(math.inf), seed=0, releases=[2])
    with raises("checkpoint_of_another_run", kind=li.errors.InvalidInput):
        other.fit(file, 0.0)
    rest = KillsAfter(7 * 8)
    again = a_model()
    trained = PrivateTrainer(again, cross_entropy, run, rest, seed=0, releases=[2]).fit(file, 0.0)
    assert rest.left == 0
    assert not file.exists()
    assert len(trained.released) == 1
    assert torch.allclose(last_of(whole), last_of(again), atol=1e-12)


class Changed(Dataset):  # type: ignore[misc]
    """Records in which some may have become others; with `noise`, others whenever they are read."""

    def __init__(self, added: float = 0.0, noise: float = 0.0, left: float = math.inf) -> None:
        self.features, self.noise, self.left = FEATURES + added, noise, left

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, place: int) -> Any:
        if self.left == 0:
            raise Killed
        self.left -= 1
        return self.features[place] + self.noise * torch.rand(()), LABELS[place]


def resumed(data: Any, file: Path) -> None:
    PrivateTrainer(a_model(), cross_entropy, a_run(0.3), data).fit(file, 0.0)


def test_other_records_of_the_same_number_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "state"
    with pytest.raises(Killed):
        resumed(Changed(left=4 * RECORDS), file)
    key = torch.load(io.BytesIO(file.read_bytes()[len(_FORMAT) + 32 :]), weights_only=True)
    assert key["data"] == data_identity(Changed(), key["key"]) != data_identity(Changed(), "ab" * 32)
    with raises("checkpoint_of_another_run", kind=li.errors.InvalidInput):
        resumed(Changed(added=1e-3), file)
    resumed(Changed(), file)
    assert not file.exists()


def test_records_that_chance_changes_are_not_compared_and_tensors_are_as_a_whole() -> None:
    key, other = "01" * 32, FEATURES.clone()
    assert data_identity(Changed(noise=0.1), key) == data_identity(Changed(noise=0.1), key)
    other[RECORDS - 1, 0] += 1e-9
    same = data_identity(TensorDataset(FEATURES.clone(), LABELS.clone()), key)
    assert data_identity(DATA, key) == same != data_identity(TensorDataset(other, LABELS), key)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    run, file = a_run(0.3), tmp_path / "state"
    with pytest.raises(Killed):
        PrivateTrainer(a_model(), cross_entropy, run, KillsAfter(20)).fit(file, 0.0)
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    for wrong in (bytes(content), content[:50], b""):
        file.write_bytes(wrong)
        with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
            PrivateTrainer(a_model(), cross_entropy, run, KillsAfter(math.inf)).fit(file, 0.0)


def test_low_precision_is_clipped_and_added_up_in_double() -> None:
    model = a_model(torch.float32)
    data = TensorDataset(FEATURES.float(), LABELS)
    PrivateTrainer(model, cross_entropy, a_run(), data, autocast=torch.bfloat16, seed=0).fit()
    assert torch.allclose(last_of(model).double(), by_hand(lambda p: SGD(p, 0.3)), atol=0.02)
    half = a_model(torch.bfloat16)
    PrivateTrainer(half, cross_entropy, a_run(), data, seed=0).fit()
    assert last_of(half).dtype == torch.bfloat16


def test_frozen_parameters_stay_and_adapters_are_trained() -> None:
    model = a_model()
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    trained = PrivateTrainer(model, cross_entropy, a_run(0.5), DATA, releases=[1]).fit()
    assert torch.equal(model[0].weight, before)
    assert set(trained.released[1]) == {"2.weight", "2.bias"}


def test_domains_and_proximal_maps() -> None:
    for optimizer in (None, li.Adam()):
        run = a_run(0.5, domain=li.Ball(radius=0.2), prox=li.parts.L1(weight=0.01), optimizer=optimizer)
        model = a_model()
        PrivateTrainer(model, cross_entropy, run, DATA).fit()
        assert float(last_of(model).norm()) <= 0.2 * (1 + 1e-9)
