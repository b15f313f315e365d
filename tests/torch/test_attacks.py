"""Attempts to get more out of a record than the account allows; each of them has to fail."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from raising import raises

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from lastiterate.numerics.randomness import Source  # noqa: E402
from lastiterate.torch import BatchSampler, PrivateTrainer, clip_and_noise, loader  # noqa: E402
from lastiterate.torch.agreement import agreeing  # noqa: E402
from lastiterate.torch.gradients import ByVmap, LayerByLayer  # noqa: E402
from lastiterate.torch.network import Network  # noqa: E402
from lastiterate.torch.objective import NetworkObjective  # noqa: E402
from lastiterate.torch.tensors import Tensors  # noqa: E402

RECORDS = 24
CLIP = 0.5
torch.manual_seed(0)
FEATURES, LABELS = torch.randn(RECORDS, 4), torch.randint(3, (RECORDS,))
DATA = TensorDataset(FEATURES, LABELS)
cross_entropy = nn.functional.cross_entropy


def a_run(batches: Any = None, **more: Any) -> li.Run:
    noise = more.pop("noise", li.OnGradientSum(1.0, CLIP))
    batches = batches or li.Shuffled(RECORDS, 8)
    return li.Run(li.losses.network(clip=noise.implied_clip or CLIP), batches, 0.3, noise, 12, **more)


class Layered(nn.Module):
    """One linear layer, used in some way."""

    def __init__(self, use: Callable[[Any, Any], Any], width: int = 4) -> None:
        super().__init__()
        self.layer, self.use = nn.Linear(width, 3), use

    def forward(self, x: Any) -> Any:
        return self.use(self.layer, x)


def flattened(layer: Any, x: Any) -> Any:
    """Records and places in one axis."""
    return layer(x.flatten(0, 1)).view(len(x), -1, 3).sum(1)


def places_first(layer: Any, x: Any) -> Any:
    return layer(x.transpose(0, 1)).sum(0)


def capped(layer: Any, x: Any) -> Any:
    """As experts with a capacity: what is beyond four records is left out."""
    return layer(torch.where((torch.arange(len(x)) < 4)[:, None], x, 0 * x))


def late(layer: Any, x: Any) -> Any:
    """The first four are left alone."""
    return layer(torch.cat([x[:4], x[4:] - x[4:].mean(0)]) if len(x) > 5 else x)


@pytest.mark.parametrize(("use", "count"), [(flattened, 8), (places_first, 4), (places_first, 8)])
def test_what_is_clipped_is_a_record(use: Any, count: int) -> None:
    """Also where no gradient is longer than the clip when it is looked at."""
    network = Network(Layered(use).double(), cross_entropy)
    inputs, targets = 1e-3 * torch.randn(count, 4, 4).double(), torch.arange(count) % 3
    found = agreeing(network, inputs, targets, 5.0)
    assert type(found) is ByVmap
    other = inputs.clone()
    other[-1] = 100.0
    totals = [torch.zeros(network.size, dtype=torch.float64) for _ in range(2)]
    for total, some in zip(totals, (inputs, other), strict=True):
        found.add(some, targets, network.views(total), 5.0)
    assert float((totals[0] - totals[1]).norm()) <= 2 * 5.0


@pytest.mark.parametrize("use", [capped, late])
def test_records_that_mix_in_large_batches_alone(use: Any) -> None:
    def look() -> None:
        for _ in range(8):  # which records are looked at is by chance
            agreeing(Network(Layered(use), cross_entropy), FEATURES, LABELS, CLIP)

    with raises("model_mixes_records", "model"):
        look()


def test_hooks_that_mix_gradients_in_large_batches_alone() -> None:
    def centred(layer: Any, inputs: Any, outputs: Any) -> Any:
        return tuple(one - one.mean(0) if len(one) > 4 else one for one in inputs)

    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    model[2].register_full_backward_hook(centred)
    with raises("model_mixes_records", "model"):
        agreeing(Network(model, cross_entropy), FEATURES, LABELS, CLIP)


class Pairs(nn.Module):
    """A criterion that remembers the output before."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Any = None

    def forward(self, output: Any, target: Any) -> Any:
        last, self.before = self.before, output.detach().mean(0)
        return cross_entropy(output if last is None else output - last, target, reduction="none")


def test_no_part_of_a_batch_sees_what_another_has_left_behind() -> None:
    objective = NetworkObjective(Network(nn.Linear(4, 3), Pairs()), a_run(), at_once=4)
    objective.gradients = LayerByLayer(objective.network)  # as if nothing had been noticed
    objective._last_checked, objective.taken = 3, 3
    sums = []
    for first in (slice(0, 4), slice(8, 12)):
        objective.add(torch.cat([FEATURES[first], FEATURES[16:20]]), torch.cat([LABELS[first], LABELS[16:20]]), CLIP)
        whole, objective._total = objective._total, None
        objective.add(FEATURES[first], LABELS[first], CLIP)
        sums.append(whole - objective._total)
        objective._total = None
    assert torch.allclose(*sums, atol=1e-12)


def test_padding_is_not_seen() -> None:
    """The mean over places that are not ignored, however many others the longest record of the batch has."""
    network = Network(nn.Sequential(nn.Embedding(9, 5), nn.Linear(5, 9), Transposed()), cross_entropy)
    words = torch.randint(9, (2, 4))
    padded = torch.cat([words, torch.zeros(2, 40, dtype=torch.long)], 1)
    targets = torch.cat([words, torch.full((2, 40), -100)], 1)
    assert torch.allclose(network.losses(words, words), network.losses(padded, targets))


class Transposed(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.transpose(1, 2)


def test_collate_functions_that_mix_records_are_refused() -> None:
    words = [(torch.randint(1, 9, (3 + place % 7,)), LABELS[place]) for place in range(RECORDS)]

    def padded(records: list[Any]) -> Any:
        rows, labels = zip(*records, strict=True)
        return nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.stack(labels)

    def centred(records: list[Any]) -> Any:
        rows, labels = torch.utils.data.default_collate(records)
        return rows - rows.mean(0), labels

    def mean(layer: Any, x: Any) -> Any:
        return layer(nn.functional.one_hot(x, 9).float().mean(1))

    def known(layer: Any, x: Any) -> Any:
        return layer(nn.functional.one_hot(x, 9)[:, :, 1:].float().sum(1))

    def look() -> None:
        for _ in range(8):  # at some records, by chance
            PrivateTrainer(Layered(mean, 9), cross_entropy, a_run(), words, collate_fn=padded)

    with raises("collate_mixes_records", "collate_fn"):
        look()
    PrivateTrainer(Layered(known, 8), cross_entropy, a_run(), words, collate_fn=padded).fit()
    model = nn.Linear(4, 3)
    with raises("collate_mixes_records", "collate_fn"):
        clip_and_noise(
            torch.optim.SGD(model.parameters(), 0.3),
            model,
            cross_entropy,
            a_run(),
            loader(DATA, a_run(), collate_fn=centred),
        )


@pytest.mark.parametrize("width", [3, 30])
def test_norms_of_the_smallest_numbers(width: int) -> None:
    """Their squares are 0, but times numbers that are large enough they are longer than the clip."""
    layer = nn.Linear(width, 20, bias=False, dtype=torch.float64)
    network = Network(layer, lambda o, t: o.flatten(1).sum(1) * t)
    shape = (1, width) if width == 3 else (1, 2, width)
    total = torch.zeros(network.size, dtype=torch.float64)
    inputs, targets = torch.full(shape, 1e150, dtype=torch.float64), torch.full((1,), 1e-163, dtype=torch.float64)
    LayerByLayer(network).add(inputs, targets, network.views(total), 1e-14)
    assert float(total.norm()) <= 1e-14


def test_each_row_of_a_table_is_added_up_by_itself() -> None:
    network = Network(nn.Sequential(nn.Embedding(5, 2), nn.Flatten(), nn.Linear(200, 3)).double(), cross_entropy)
    words = torch.randint(5, (6, 100))
    total, expected = (torch.zeros(network.size, dtype=torch.float64) for _ in range(2))
    LayerByLayer(network).add(words, LABELS[:6], network.views(total), CLIP)
    ByVmap(network).add(words, LABELS[:6], network.views(expected), CLIP)
    assert torch.allclose(total, expected, atol=1e-12)


KINDS = [
    li.FullBatch(RECORDS),
    li.Cyclic(RECORDS, 7, last="smaller"),
    li.Poisson(RECORDS, 0.3),
    li.BallsAndBins(RECORDS, 4),
]
NOISES = [
    li.OnGradientSum(1.3, [CLIP * 0.97**step for step in range(12)]),
    li.OnMeanGradient(0.1),
    li.Langevin(0.05),
]
OPTIMIZERS = {
    None: 1.0,
    li.SGD(momentum=0.9, dampening=0.3): 0.7,
    li.SGD(momentum=0.8, nesterov=True): 1.0,
    li.Adam(): math.inf,
}


@pytest.mark.parametrize("adjacency", [li.REPLACE_ONE, li.ZERO_OUT])
@pytest.mark.parametrize("batches", KINDS, ids=lambda one: one.kind)
def test_noise_beside_what_a_record_moves_is_that_of_the_account(
    batches: Any, adjacency: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is executed: the standard deviation of the noise, and what clip, rate and divisor leave of a record."""
    stds: list[float] = []
    units: list[float] = []
    add_noise, gradient_sum = Tensors.noisy, NetworkObjective.gradient_sum

    def noisy(self: Any, value: Any, std: float, *others: Any) -> Any:
        stds.append(std)
        return add_noise(self, value, std, *others)

    def summed(self: Any, weights: Any, chosen: Any, clip: float) -> Any:
        units.append(clip / self.run.divisor_of(max(len(chosen), 1)))
        return gradient_sum(self, weights, chosen, clip)

    monkeypatch.setattr(Tensors, "noisy", noisy)
    monkeypatch.setattr(NetworkObjective, "gradient_sum", summed)
    for noise in NOISES:
        for optimizer, part in OPTIMIZERS.items():
            run = a_run(batches, noise=noise, adjacency=adjacency, optimizer=optimizer)
            stds.clear()
            units.clear()
            process = PrivateTrainer(nn.Linear(4, 3), cross_entropy, run, DATA).fit().run.process
            moves = (
                np.array(units) * (1.0 if part == math.inf else 0.3 * part) * (2 if adjacency is li.REPLACE_ONE else 1)
            )
            least = np.broadcast_to(process.noise / process.sensitivity, 12)
            assert (np.array(stds) >= moves * least * (1 - 1e-9)).all()


class Loop:
    """A loop of one's own."""

    def __init__(self, run: li.Run, batches: Any = None, optimizer_of: Any = None) -> None:
        self.model = nn.Linear(4, 3)
        self.loader = loader(DATA, run) if batches is None else batches
        self.optimizer = (optimizer_of or (lambda p: torch.optim.SGD(p, 0.3)))(self.model.parameters())
        self.steps = clip_and_noise(self.optimizer, self.model, cross_entropy, run, self.loader)

    def walk(self, count: int = 12) -> Any:
        for batch, _ in zip(self.loader, range(count), strict=False):
            self.take(batch)
        return self.steps

    def take(self, batch: Any) -> None:
        if batch is not None:
            self.steps.accumulate(*batch)
        self.steps.step()


def begin_again() -> None:
    loop = Loop(a_run())
    loop.walk(2)
    loop.walk(2)


def leave_batches_out(workers: int = 0) -> None:
    run = a_run()
    loop = Loop(run, loader(DATA, run, num_workers=workers))
    for place, batch in enumerate(loop.loader):
        if place % 2:
            loop.take(batch)


def go_on_after_a_step_that_failed() -> None:
    loop = Loop(a_run())
    batches = iter(loop.loader)
    inputs, targets = next(batches)
    loop.steps.accumulate(inputs[1:], targets[1:])
    with raises("records_missing", "dataset", count=7, drawn=8):
        loop.steps.step()
    loop.take(next(batches))


def count_records_twice_after_an_error() -> None:
    run = a_run()
    loop = Loop(run)
    loop.steps.objective.at_once = 2
    inputs, targets = next(iter(loop.loader))
    wrong = inputs[:4].clone()
    wrong[3] = torch.nan
    with raises("records_not_finite", "dataset"):
        loop.steps.accumulate(wrong, targets[:4])
    loop.steps.accumulate(inputs[:4], targets[:4])
    loop.steps.step()


def change_the_parameters() -> None:
    loop = Loop(a_run())
    inputs, targets = next(iter(loop.loader))
    cross_entropy(loop.model(inputs), targets).backward()
    loop.optimizer.step()
    loop.steps.accumulate(inputs, targets)


def begin_in_the_middle() -> None:
    run = a_run()
    Loop(run, DataLoader(DATA, batch_sampler=BatchSampler(run, begin=3)))


def an_optimizer_that_remembers() -> None:
    def used(parameters: Any) -> Any:
        parameters = list(parameters)
        optimizer = torch.optim.Adam(parameters, 0.3)
        for one in parameters:
            one.grad = torch.ones_like(one)
        optimizer.step()
        return optimizer

    Loop(a_run(optimizer=li.Adam()), optimizer_of=used)


def train_twice() -> None:
    trainer = PrivateTrainer(nn.Linear(4, 3), cross_entropy, a_run(), DATA)
    trainer.fit()
    trainer.fit()


@pytest.mark.parametrize(
    ("attack", "code", "values"),
    [
        (begin_again, "loader_iterated_again", {}),
        (leave_batches_out, "batch_unused", {}),
        (lambda: leave_batches_out(1), "batch_unused", {}),
        (go_on_after_a_step_that_failed, "step_failed", {}),
        (count_records_twice_after_an_error, "records_missing", {"count": 4, "drawn": 8}),
        (change_the_parameters, "parameters_changed", {}),
        (begin_in_the_middle, "loader_begins_late", {"begin": 3}),
        (an_optimizer_that_remembers, "optimizer_not_new", {}),
        (train_twice, "fit_again", {}),
    ],
)
def test_loops_that_are_not_the_run(attack: Callable[[], None], code: str, values: dict[str, int]) -> None:
    with raises(code, kind=li.errors.InvalidInput, **values):
        attack()


def test_a_seed_of_the_batches_is_told() -> None:
    run = a_run(li.Poisson(RECORDS, 0.3))
    loop = Loop(run, loader(DATA, run, source=Source(1)))
    assert "DO NOT RELEASE" in str(loop.walk().finish().report(1e-5))


def test_old_gradients_of_frozen_parameters_are_not_used() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    cross_entropy(model(FEATURES), LABELS).backward()
    model[0].requires_grad_(False)
    before = model[0].weight.detach().clone()
    optimizer = torch.optim.RMSprop(model.parameters(), 0.3)
    PrivateTrainer(model, cross_entropy, a_run(optimizer="RMSprop"), DATA, optimizer=optimizer).fit()
    assert torch.equal(model[0].weight, before)


def smooth(**more: Any) -> li.Run:
    loss = li.losses.network(clip=CLIP, smoothness=0.5)
    return li.Run(loss, li.Cyclic(RECORDS, 8), 0.05, li.OnGradientSum(1.0, CLIP), 60, **more)


@pytest.mark.parametrize("released", [li.AVERAGE(last=4), li.EMA(0.9)])
def test_an_average_that_ends_early_is_charged_as_every_iterate(released: Any) -> None:
    run, model = smooth(released=released), nn.Linear(4, 3).double()
    batches = loader(DATA, run)
    steps = clip_and_noise(torch.optim.SGD(model.parameters(), 0.05), model, cross_entropy, run, batches)
    for batch, _ in zip(batches, range(30), strict=False):
        steps.accumulate(*batch)
        steps.step()
    report = steps.finish(stopped=True).report(1e-5)
    assert report.epsilon == pytest.approx(report.epsilon_all_released)
    assert li.account(run.first(30), 1e-5).epsilon < 0.9 * report.epsilon


def test_the_last_iterate_beside_an_average_is_charged() -> None:
    run = smooth(released=li.EMA(0.9))
    trained = PrivateTrainer(nn.Linear(4, 3).double(), cross_entropy, run, DATA).fit()
    alone = trained.report(1e-5).epsilon
    trained.releases.charge(60, "the last iterate")
    assert trained.report(1e-5).epsilon == pytest.approx(trained.report(1e-5).epsilon_all_released)
    assert trained.report(1e-5).epsilon > 1.1 * alone


class Failing(TensorDataset):  # type: ignore[misc]
    left = 50

    def __getitem__(self, place: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().__getitem__(place)


@pytest.mark.parametrize("optimizer", [None, li.Adam()])
def test_a_training_that_fails_leaves_nothing_behind(optimizer: Any) -> None:
    """Whoever begins again would begin with what steps that nobody counts have learnt."""
    model = nn.Linear(4, 3)
    before = model.weight.detach().clone()
    trainer = PrivateTrainer(model, cross_entropy, a_run(optimizer=optimizer), Failing(*DATA.tensors))
    with pytest.raises(KeyboardInterrupt):
        trainer.fit()
    assert torch.equal(model.weight, before)
    assert trainer.optimizer is None or not trainer.optimizer.state
    trainer.dataset = DATA
    trainer.fit()


def forged(content: bytes, **changes: Any) -> bytes:
    """With a checksum that is right."""
    begin = content.index(b"\n") + 1
    told = torch.load(io.BytesIO(content[begin + 32 :]), weights_only=True)
    file = io.BytesIO()
    torch.save({**told, **changes}, file)
    return content[:begin] + hashlib.sha256(file.getvalue()).digest() + file.getvalue()


def test_files_that_no_training_has_written(tmp_path: Path) -> None:
    file = tmp_path / "state"
    torch.manual_seed(3)
    trainer = PrivateTrainer(nn.Linear(4, 3), cross_entropy, a_run(), Failing(*DATA.tensors))
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(file, 0.0)
    content = file.read_bytes()
    twice = torch.zeros(RECORDS, dtype=torch.int64)
    for changes in (
        {"step": 13},
        {"step": -1},
        {"step": "6"},
        {"order": twice},
        {"order": None},
        {"order": "none"},
        {"weights": torch.zeros(3)},
        {"weights": None},
        {"released": (torch.zeros(15, dtype=torch.float64),)},
    ):
        file.write_bytes(forged(content, **changes))
        with raises("checkpoint_damaged", kind=li.errors.InvalidInput):
            trainer.fit(file, 0.0)
    file.write_bytes(content)
    trainer.dataset = DATA
    trainer.fit(file, 0.0)


def test_orders_are_kept_as_long_as_workers_are_ahead() -> None:
    """An order that is drawn anew in the middle of an epoch would use records twice in it."""
    run = li.Run(li.losses.network(clip=CLIP), li.Shuffled(8, 4), 0.3, li.OnGradientSum(1.0, CLIP), 60)
    sampler = BatchSampler(run, ahead=16)
    drawn: Iterator[list[int]] = iter(sampler)
    batches = [next(drawn) for _ in range(21 + 16)]
    assert sampler.order_at(21)[4:].tolist() == batches[21]
