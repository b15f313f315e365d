"""Every pair of settings, executed: the update is the one that is accounted for, by hand, and its noise is counted once.

A row is a trainer with batches, an optimiser, a precision, an adjacency, clips, parts of a batch, a stop on the way, and
ranks. The rows below hold every pair of two settings that can be combined. Of each step the records and the noise are
recorded where they enter; the rest is computed again in numpy, with the numbers of the run that the training returned.
"""

from __future__ import annotations

import copy
import gc
import io
import itertools
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
opacus = pytest.importorskip("opacus", reason="Opacus is not installed")

import opacus.optimizers.optimizer as opacus_optimizer  # noqa: E402
import opacus.optimizers.optimizer_fast_gradient_clipping as ghost_optimizer  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from lastiterate.runs.per_step import at_step  # noqa: E402
from lastiterate.torch import PrivateTrainer, clip_and_noise, loader, tensors  # noqa: E402
from lastiterate.torch.objective import NetworkObjective  # noqa: E402
from lastiterate.torch.team import Team  # noqa: E402
from lastiterate.training.objectives import Vectors  # noqa: E402
from lastiterate.training.steps import Sampler  # noqa: E402
from opacus_trainings import QUIET, registered  # noqa: E402

pytestmark = QUIET
RECORDS, SIZE, RATE, MULTIPLIER, STEPS, STOP = 12, 4, 0.2, 0.7, 6, 3
DRAWN = np.random.default_rng(0)
FEATURES, TARGETS = DRAWN.normal(size=(RECORDS, 3)), DRAWN.normal(size=RECORDS)
START = np.array([0.3, -0.2, 0.5])
CLIPS = {"one clip": 0.8, "a clip for each step": [0.9, 0.2, 0.7, 0.3, 0.8, 0.25]}
BATCHES: dict[str, Any] = {
    "Poisson": li.Poisson(RECORDS, SIZE / RECORDS),
    "shuffled": li.Shuffled(RECORDS, SIZE),
    "cyclic": li.Cyclic(RECORDS, SIZE),
    "full": li.FullBatch(RECORDS),
    "of fixed size": li.FixedSize(RECORDS, SIZE),
}
OPTIMIZERS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "plain": (li.SGD(), lambda weights, rate: torch.optim.SGD(weights, rate)),
    "momentum": (li.SGD(momentum=0.6), lambda weights, rate: torch.optim.SGD(weights, rate, momentum=0.6)),
    "Adam": (li.Adam(eps=0.1), lambda weights, rate: torch.optim.Adam(weights, rate, eps=0.1)),
}
ADJACENCIES = {"zero out": li.ZERO_OUT, "replace": li.REPLACE_ONE, "add or remove": li.ADD_OR_REMOVE_ONE}
FACTORS: dict[str, tuple[str, ...]] = {
    "trainer": ("li.train", "PrivateTrainer", "clip_and_noise", "Opacus", "Opacus, ghost"),
    "batches": tuple(BATCHES),
    "optimizer": tuple(OPTIMIZERS),
    "precision": ("float64", "float32"),
    "adjacency": tuple(ADJACENCIES),
    "clip": tuple(CLIPS),
    "parts": ("whole", "in parts"),
    "course": ("at once", "resumed"),
    "ranks": ("one rank", "two ranks"),
}
Row = tuple[str, ...]


def possible(row: Row) -> bool:
    """What the library accepts; the refusals have tests of their own."""
    trainer, batches, _, precision, adjacency, clip, parts, _, ranks = row
    by_opacus = trainer.startswith("Opacus")
    return (
        ADJACENCIES[adjacency] in BATCHES[batches].adjacencies
        and not (trainer == "li.train" and (parts == "in parts" or precision == "float32"))
        and not (by_opacus and batches == "of fixed size")
        and not (trainer != "PrivateTrainer" and ranks == "two ranks")
        and not (trainer == "Opacus, ghost" and clip == "a clip for each step")
    )


def covering() -> list[Row]:
    """Rows that hold every possible pair of settings, by choosing the one with most new pairs until none is left."""
    rows = [row for row in itertools.product(*FACTORS.values()) if possible(row)]
    places = list(itertools.combinations(range(len(FACTORS)), 2))
    numbers: dict[tuple[Any, ...], int] = {}
    for row in rows:
        for one, two in places:
            numbers.setdefault((one, two, row[one], row[two]), len(numbers))
    held = np.zeros((len(rows), len(numbers)), bool)
    for place, row in enumerate(rows):
        held[place, [numbers[one, two, row[one], row[two]] for one, two in places]] = True
    missing, chosen = np.ones(len(numbers), bool), []
    while missing.any():
        best = int((held & missing).sum(1).argmax())
        missing &= ~held[best]
        chosen.append(rows[best])
    return chosen


class Killed(Exception):
    """In the middle of a step."""


@dataclass
class Book:
    """What entered each step: the records, the noise and its standard deviation."""

    records: list[list[int]] = field(default_factory=list)
    noises: list[Any] = field(default_factory=list)
    stds: list[float] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    dies_at: int | None = None

    def batch(self, rows: Any) -> None:
        """The records of these rows wait for the next noise."""
        found = np.asarray(rows, np.float64).reshape(-1, 3)
        near = np.abs(found[:, None, :] - FEATURES[None]).max(2)
        self.waiting += [int(place) for place in near.argmin(1)]

    def step(self, noise: Any, std: float) -> None:
        if self.dies_at == len(self.records):
            self.dies_at, self.waiting = None, []
            raise Killed
        self.records.append(sorted(self.waiting))
        self.waiting = []
        self.noises.append(np.asarray(noise, np.float64).reshape(-1).copy())
        self.stds.append(float(std))


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch) -> Book:
    kept, taken = Book(), NetworkObjective.add
    torch.manual_seed(5)  # which batches Opacus draws: with PyTorch's generator no report would be private anyway

    def noisy(self: Any, value: Any, std: float, *rest: Any) -> Any:
        before = value.copy()
        after = plain_noisy(self, value, std, *rest)
        kept.step(after - before, std)
        return after

    def make_noisy(vector: Any, std: float, *rest: Any) -> None:
        before = vector.clone()
        plain_make(vector, std, *rest)
        kept.step(vector - before, std)

    def add(self: Any, inputs: Any, *rest: Any) -> None:
        kept.batch(inputs)
        taken(self, inputs, *rest)

    def batch(self: Sampler, step: int) -> Any:
        chosen = drawn(self, step)
        kept.batch(FEATURES[chosen])
        return chosen

    def generated(std: float, reference: Any, **more: Any) -> Any:
        noise = plain_noise(std=std, reference=reference, **more)
        kept.step(noise, std)
        return noise

    drawn, plain_noise = Sampler.batch, opacus_optimizer._generate_noise
    plain_noisy, plain_make = Vectors.noisy, tensors.make_noisy
    monkeypatch.setattr(Vectors, "noisy", noisy)
    monkeypatch.setattr(tensors, "make_noisy", make_noisy)
    monkeypatch.setattr(NetworkObjective, "add", add)
    monkeypatch.setattr(Sampler, "batch", batch)
    for module in (opacus_optimizer, ghost_optimizer):
        monkeypatch.setattr(module, "_generate_noise", generated)
    return kept


def gradients(weights: Any, features: Any, targets: Any) -> Any:
    """Of half the square of ⟨weights, features⟩ − target, for each record."""
    return (features @ weights - targets)[:, None] * features


def half_square(output: Any, targets: Any) -> Any:
    return (output[:, 0] - targets).square() / 2


class HalfSquare(torch.nn.Module):  # type: ignore[misc]
    """With the attribute that ghost clipping asks for."""

    reduction = "mean"

    def forward(self, output: Any, targets: Any) -> Any:
        found = half_square(output, targets)
        return found.mean() if self.reduction == "mean" else found


def a_run(row: Row) -> li.Run:
    _, batches, optimizer, _, adjacency, clip, *_ = row
    return li.Run(
        loss=li.losses.network(clip=CLIPS[clip]),
        batches=BATCHES[batches],
        step_size=RATE,
        noise=li.OnGradientSum(MULTIPLIER, CLIPS[clip]),
        steps=STEPS,
        adjacency=ADJACENCIES[adjacency],
        optimizer=OPTIMIZERS[optimizer][0],
    )


def a_model(row: Row) -> tuple[Any, Any]:
    """With the weights at the start, and the data in its precision."""
    dtype = getattr(torch, row[3])
    model = torch.nn.Linear(3, 1, bias=False).to(dtype)
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(START)[None])
    return model, TensorDataset(torch.from_numpy(FEATURES).to(dtype), torch.from_numpy(TARGETS).to(dtype))


def weights_of(model: Any) -> Any:
    return torch.cat([one.detach().reshape(-1) for one in model.parameters()]).double().numpy()


def by_train(row: Row, book: Book, file: Path) -> tuple[Any, li.Run]:
    given = {"loss": gradients, "start": START, "checkpoint": file, "checkpoint_every": 0.0}
    if book.dies_at is not None:
        with pytest.raises(Killed):
            li.train(a_run(row), (FEATURES, TARGETS), **given)
    trained = li.train(a_run(row), (FEATURES, TARGETS), **given)
    return trained.weights, trained.run


class Meeting:
    """Where two threads exchange what they have."""

    def __init__(self) -> None:
        self.barrier, self.slots = threading.Barrier(2), [None, None]

    def exchange(self, rank: int, value: Any) -> list[Any]:
        self.slots[rank] = value
        self.barrier.wait()
        found = list(self.slots)
        self.barrier.wait()
        return found


class OfTwo(Team):
    """One of two ranks that are threads of this process; that processes do the same is tested in test_distributed.py."""

    size = 2

    def __init__(self, rank: int, meeting: Meeting) -> None:
        self.rank, self.meeting = rank, meeting

    def total(self, counted: Callable[[], int]) -> int:
        return sum(self.meeting.exchange(self.rank, counted()))

    def sum(self, vector: Any) -> Any:
        one, two = self.meeting.exchange(self.rank, vector.clone())
        return vector.copy_(one + two)

    def broadcast(self, vector: Any) -> Any:
        return vector.copy_(self.meeting.exchange(self.rank, vector.clone())[0])

    def draw(self, draw: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
        order, chosen = draw() if self.leads else (None, None)
        return order, self.meeting.exchange(self.rank, chosen)[0]

    def agree(self, state: Any) -> Any:
        found = self.meeting.exchange(self.rank, state)[0]
        return state if self.leads else copy.deepcopy(found)

    def finish(self, last: Callable[[], None]) -> None:
        self.total(lambda: 0)
        if self.leads:
            last()


def by_trainer(row: Row, book: Book, file: Path) -> tuple[Any, li.Run]:
    at_once = 3 if row[6] == "in parts" else None

    def fitted(team: Team) -> Any:
        model, data = a_model(row)
        return PrivateTrainer(model, half_square, a_run(row), data, at_once=at_once, team=team).fit(file, 0.0)

    def of_all_ranks() -> Any:
        if row[8] == "one rank":
            return fitted(Team())
        meeting = Meeting()

        def of_rank(rank: int) -> Any:
            try:
                return fitted(OfTwo(rank, meeting))
            except BaseException:
                meeting.barrier.abort()
                raise

        with ThreadPoolExecutor(2) as pool:
            works = [pool.submit(of_rank, rank) for rank in range(2)]
        leader, other = (work.result() for work in works)
        np.testing.assert_array_equal(weights_of(leader.model), weights_of(other.model))
        return leader

    if book.dies_at is not None:
        with pytest.raises(Killed):
            of_all_ranks()
    trained = of_all_ranks()
    return weights_of(trained.model), trained.run


def by_own_loop(row: Row, book: Book, file: Path) -> tuple[Any, li.Run]:
    ends = (STEPS,) if book.dies_at is None else (STOP, STEPS)
    book.dies_at = None
    for end in ends:
        gc.collect()  # whoever was killed has let go of the file
        model, data = a_model(row)
        run, optimizer = a_run(row), OPTIMIZERS[row[2]][1](model.parameters(), RATE)
        batches = loader(data, run)
        given = {"checkpoint": file, "checkpoint_every": 0.0} if len(ends) > 1 else {}
        steps = clip_and_noise(optimizer, model, half_square, run, batches, **given)
        for batch in batches:
            places = (slice(2), slice(2, None)) if row[6] == "in parts" else (slice(None),)
            for place in places if batch is not None else ():
                steps.accumulate(*(one[place] for one in batch))
            steps.step()
            if steps.taken == end:
                break
        if end < STEPS:
            del batches, steps
    trained = steps.finish()
    return weights_of(trained.model), trained.run


def by_opacus(row: Row, book: Book, _: Path) -> tuple[Any, li.Run]:
    ends = (STEPS,) if book.dies_at is None else (STOP, STEPS)
    book.dies_at, saved, run = None, io.BytesIO(), a_run(row)
    size = RECORDS if row[1] == "full" else SIZE
    ghost = {"grad_sample_mode": "ghost", "criterion": HalfSquare()} if row[0] == "Opacus, ghost" else {}
    with registered(run):
        for end in ends:
            engine, (model, data) = opacus.PrivacyEngine(accountant="lastiterate"), a_model(row)
            made = engine.make_private(
                module=model,
                optimizer=OPTIMIZERS[row[2]][1](model.parameters(), RATE),
                data_loader=DataLoader(data, batch_size=size, shuffle=row[1] not in ("cyclic", "full")),
                noise_multiplier=MULTIPLIER,
                max_grad_norm=at_step(run.clip, 0),
                poisson_sampling=row[1] == "Poisson",
                **ghost,
            )
            module, optimizer, batches = made[0], made[1], made[-1]
            criterion = made[2] if ghost else HalfSquare()
            if saved.tell():
                saved.seek(0)
                engine.load_checkpoint(path=saved, module=module, optimizer=optimizer)
            manager = BatchMemoryManager(data_loader=batches, max_physical_batch_size=3, optimizer=optimizer)
            used = manager.__enter__() if row[6] == "in parts" else batches
            while len(engine.accountant) < end:
                for inputs, targets in used:
                    optimizer.max_grad_norm = at_step(run.clip, len(engine.accountant))
                    optimizer.zero_grad()
                    book.batch(inputs)
                    criterion(module(inputs), targets).backward()
                    optimizer.step()
                    if len(engine.accountant) == end:
                        break
            if end < STEPS:
                engine.save_checkpoint(path=saved, module=module, optimizer=optimizer)
    return weights_of(model), engine.accountant.run


TRAINERS: dict[str, Callable[[Row, Book, Path], tuple[Any, li.Run]]] = {
    "li.train": by_train,
    "PrivateTrainer": by_trainer,
    "clip_and_noise": by_own_loop,
    "Opacus": by_opacus,
    "Opacus, ghost": by_opacus,
}


def noise_on_the_mean(row: Row, run: li.Run, step: int) -> float:
    """What the recorded noise is multiplied by to become noise on the mean gradient."""
    if row[0].startswith("Opacus"):
        return 1 / run.batches.divisor
    on_gradient = row[2] == "Adam" and row[0] != "li.train"
    return 1.0 if on_gradient else -1 / float(at_step(run.step_size, step))


def by_hand(row: Row, run: li.Run, book: Book) -> Any:
    """The last iterate: clipped gradients of the recorded records, the recorded noise, and the update of the run."""
    weights, first, second = START.copy(), np.zeros(3), np.zeros(3)
    for step, (records, noise) in enumerate(zip(book.records, book.noises, strict=True)):
        size = float(at_step(run.step_size, step))
        found = gradients(weights, FEATURES[records], TARGETS[records])
        norms = np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300)
        mean = (found * np.minimum(1.0, at_step(run.clip, step) / norms)).sum(0) / run.batches.divisor
        noisy = mean + noise * noise_on_the_mean(row, run, step)
        if isinstance(run.optimizer, li.SGD):
            first = run.optimizer.momentum * first - size * noisy
            weights = weights + first
        else:
            by = run.optimizer
            first, second = (
                by.betas[0] * first + (1 - by.betas[0]) * noisy,
                by.betas[1] * second + (1 - by.betas[1]) * noisy**2,
            )
            square = second / (1 - by.betas[1] ** (step + 1))
            weights = weights - size * first / (1 - by.betas[0] ** (step + 1)) / (np.sqrt(square) + by.eps)
    return weights


def check_batches(run: li.Run, drawn: list[list[int]]) -> None:
    """Records are used as the run says: how many in each step, and in passes each once an epoch."""
    per_epoch = run.batches.per_epoch
    for step, records in enumerate(drawn):
        assert len(set(records)) == len(records)
        assert run.batches.size_at(step) in (None, len(records))
        if isinstance(run.batches, li.Cyclic):
            first = step % per_epoch * SIZE
            assert records == list(range(first, first + SIZE))
    if run.batches.passes:
        for first in range(0, STEPS, per_epoch):
            assert sorted(itertools.chain(*drawn[first : first + per_epoch])) == list(range(RECORDS))


@pytest.mark.parametrize("row", covering(), ids="-".join)
def test_what_is_executed_is_what_is_accounted_for(row: Row, book: Book, tmp_path: Path) -> None:
    book.dies_at = STOP if row[7] == "resumed" else None
    weights, run = TRAINERS[row[0]](row, book, tmp_path / "state")
    described = a_run(row)
    assert (run.steps, len(book.noises)) == (STEPS, STEPS)
    for name in ("loss", "batches", "step_size", "noise", "adjacency", "optimizer"):
        assert getattr(run, name) == getattr(described, name)
    check_batches(run, book.records)
    for step, std in enumerate(book.stds):
        on_the_mean = std * abs(noise_on_the_mean(row, run, step))
        assert math.isclose(on_the_mean * RATE, float(run.process.noise[step]), rel_tol=1e-9)
    tolerance = 1e-5 if row[3] == "float32" or row[0].startswith("Opacus") else 1e-9
    np.testing.assert_allclose(weights, by_hand(row, run, book), rtol=tolerance, atol=tolerance)


def test_every_pair_that_can_be_combined_is_in_some_row() -> None:
    rows, places = covering(), itertools.combinations(range(len(FACTORS)), 2)
    every = [row for row in itertools.product(*FACTORS.values()) if possible(row)]
    for one, two in places:
        assert {(row[one], row[two]) for row in rows} == {(row[one], row[two]) for row in every}
    assert len(rows) < 40
