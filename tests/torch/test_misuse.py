"""What the account does not cover is refused, with one sentence, before it could do harm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import lastiterate as li
from lastiterate.facts import fact

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, TensorDataset, WeightedRandomSampler  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

from lastiterate.torch import PrivateTrainer, clip_and_noise, loader  # noqa: E402

RECORDS = 24
torch.manual_seed(0)
DATA = TensorDataset(torch.randn(RECORDS, 4), torch.randint(3, (RECORDS,)))
cross_entropy = nn.functional.cross_entropy
SGD = torch.optim.SGD
RUN = li.Run(li.losses.network(clip=0.5), li.Shuffled(RECORDS, 8), 0.3, li.OnGradientSum(1.0, 0.5), 12)


class Counting(nn.Module):
    """Remembers how many records it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.seen += len(x)
        return self.layer(x)


class Centred(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(x - x.mean(0))


class Stream(IterableDataset):  # type: ignore[misc]
    def __iter__(self) -> Any:
        return iter(DATA)


def train(model: Any = None, loss: Any = cross_entropy, run: li.Run = RUN, data: Any = DATA, **more: Any) -> None:
    PrivateTrainer(nn.Linear(4, 3) if model is None else model, loss, run, data, **more).fit()


def trained_by(optimizer_of: Any, run: li.Run = RUN, **more: Any) -> None:
    model = nn.Linear(4, 3)
    train(model, run=run, optimizer=optimizer_of(model.parameters()), **more)


def looped(batches: Any, run: li.Run = RUN, rate: float = 0.3, skip: bool = False) -> None:
    model = nn.Linear(4, 3)
    optimizer = SGD(model.parameters(), rate)
    steps = clip_and_noise(optimizer, model, cross_entropy, run, batches)
    for inputs, targets in batches:
        steps.accumulate(inputs[skip:], targets[skip:])
        steps.step()
    steps.finish()


def halved_rate() -> None:
    model = nn.Linear(4, 3)
    optimizer = SGD(model.parameters(), 0.3)
    halving = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    train(model, optimizer=optimizer, scheduler=halving)


def half_of_the_parameters() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    train(model, optimizer=SGD(model[1].parameters(), 0.3))


def groups_with_rates(first: float, second: float) -> tuple[Any, Any]:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    groups = [{"params": model[0].parameters(), "lr": first}, {"params": model[1].parameters(), "lr": second}]
    return model, SGD(groups, 0.3)


def trained_in_groups(*rates: float) -> None:
    model, optimizer = groups_with_rates(*rates)
    train(model, optimizer=optimizer)


def normalised(trained: bool = False) -> Any:
    """A frozen layer with statistics from elsewhere."""
    layer = nn.BatchNorm1d(4).requires_grad_(trained)
    layer.running_mean.copy_(torch.tensor([0.5, -0.5, 0.0, 1.0]))
    layer.running_var.copy_(torch.tensor([1.5, 0.5, 2.0, 1.0]))
    return nn.Sequential(nn.Linear(4, 4), layer.eval(), nn.Linear(4, 3))


def normalised_in_a_loop(train_again: bool = False) -> Any:
    model, batches = normalised(), loader(DATA, RUN)
    steps = clip_and_noise(
        SGD([one for one in model.parameters() if one.requires_grad], 0.3), model, cross_entropy, RUN, batches
    )
    for inputs, targets in batches:
        steps.accumulate(inputs, targets)
        steps.step()
        if train_again:
            model.train()
    return steps.finish()


def one_step_too_many() -> None:
    model = nn.Linear(4, 3)
    batches = loader(DATA, RUN)
    steps = clip_and_noise(SGD(model.parameters(), 0.3), model, cross_entropy, RUN, batches)
    for inputs, targets in batches:
        steps.accumulate(inputs, targets)
        steps.step()
    steps.accumulate(inputs, targets)


def ended_early() -> None:
    model = nn.Linear(4, 3)
    batches = loader(DATA, RUN)
    steps = clip_and_noise(SGD(model.parameters(), 0.3), model, cross_entropy, RUN, batches)
    for (inputs, targets), _ in zip(batches, range(3), strict=False):
        steps.accumulate(inputs, targets)
        steps.step()
    steps.finish()


def epochs_of(workers: int = 0, most: int = 3, skip: int = 0, twice: bool = False, other: bool = False) -> None:
    """A loop over a loader of PyTorch that stops each pass after so many batches, and goes on with the next."""
    model, batches = nn.Linear(4, 3), shuffled(num_workers=workers)
    steps = clip_and_noise(SGD(model.parameters(), 0.3), model, cross_entropy, RUN, batches)
    for _ in range(12):
        for place, (inputs, targets) in enumerate(shuffled() if other else batches):
            if place == most:
                break
            for _ in range(0 if place < skip else 1 + twice):
                steps.accumulate(inputs, targets)
                steps.step()


def shuffled(**more: Any) -> Any:
    return DataLoader(DATA, batch_size=8, shuffle=True, **more)


LINEAR = replace(RUN, loss=li.losses.logistic(feature_norm=1.0, clip=0.5))
UNCLIPPED = li.Run(
    li.losses.general(gradient_sensitivity=1.0), li.Shuffled(RECORDS, 8), 0.3, li.OnMeanGradient(1.0), 12
)
_NOT_NEXT = "each step must use the next batch of the loader. Got another one: a pass was stopped early"


class Named(nn.Module):
    """Takes its inputs by name, as models of Hugging Face do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, mask: Any = None) -> torch.Tensor:
        return self.inner(x)


def by_name(**more: Any) -> None:
    records = [{"x": one, "labels": label, **more} for one, label in DATA]
    train(Named(), data=records)


MISUSES: dict[str, tuple[Callable[[], None], str]] = {
    "batch normalisation": (
        lambda: train(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))),
        "BatchNorm1d, which mixes",
    ),
    "a column that the model does not take": (
        lambda: by_name(text="a sentence", idx=3),
        r"must accept every column of the data set. Got text, idx, but its "
        r"arguments are x, mask.*remove_columns\(\['text', 'idx'\]\)",
    ),
    "a column of text": (lambda: by_name(mask="a sentence"), "Got none in mask of the data set. Tokenise it"),
    "a column of lists": (
        lambda: by_name(x=[0.0, 1.0, 2.0, 3.0]),
        r'Got lists of numbers in x of .*with_format\("torch"\)',
    ),
    "no column of labels": (
        lambda: train(Named(), data=[{"x": one, "label": label} for one, label in DATA]),
        "Rename the column",
    ),
    "a layer of one's own that mixes": (lambda: train(Centred()), "each record separately"),
    "running statistics": (
        lambda: train(nn.Sequential(nn.Unflatten(1, (2, 2)), nn.InstanceNorm1d(2, track_running_stats=True))),
        "statistics of the records",
    ),
    "a buffer that changes": (lambda: train(Counting()), "buffers in training.*Got a changed seen"),
    "momentum that the run does not say": (
        lambda: trained_by(lambda p: SGD(p, 0.3, momentum=0.9)),
        "optimiser must be the run's, plain gradient steps. Got momentum 0.9",
    ),
    "Adam instead of SGD": (
        lambda: trained_by(lambda p: torch.optim.Adam(p, 0.3)),
        "optimiser must be the run's, plain gradient steps. Got Adam",
    ),
    "another optimiser by name": (
        lambda: trained_by(lambda p: torch.optim.Adagrad(p, 0.3), replace(RUN, optimizer="RMSprop")),
        "optimiser must be the run's, RMSprop. Got Adagrad",
    ),
    "an optimiser that nobody gave": (lambda: train(run=replace(RUN, optimizer="RMSprop")), "needs optimizer="),
    "AMSGrad taken for Adam": (
        lambda: trained_by(lambda p: torch.optim.Adam(p, 0.3, amsgrad=True), replace(RUN, optimizer=li.Adam())),
        "optimiser must be the run's, Adam",
    ),
    "weight decay": (lambda: trained_by(lambda p: SGD(p, 0.3, weight_decay=0.1)), "the run's weight_decay, 0. Got 0.1"),
    "another learning rate": (
        lambda: trained_by(lambda p: SGD(p, 0.1)),
        "at step 1 must be the run's step_size, 0.3. Got 0.1",
    ),
    "a scheduler that the run does not say": (halved_rate, "at step 4 must be the run's step_size, 0.3. Got 0.15"),
    "groups without the rate of the run": (
        lambda: trained_in_groups(0.1, 0.2),
        "at step 1 must be the run's step_size, 0.3. Got 0.1, 0.2",
    ),
    "batch normalisation without statistics of its own": (
        lambda: train(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, track_running_stats=False).eval())),
        "BatchNorm1d, which mixes",
    ),
    "batch normalisation that is turned on again": (lambda: normalised_in_a_loop(train_again=True), "call eval"),
    "some parameters left out": (half_of_the_parameters, "exactly the parameters"),
    "ascent": (
        lambda: trained_by(lambda p: SGD(p, 0.3, maximize=True)),
        "optimiser must be the run's, plain gradient steps",
    ),
    "no optimiser": (lambda: train(optimizer="sgd"), "a torch.optim.Optimizer"),
    "a stream": (lambda: train(data=Stream()), "a length and an index"),
    "a tuple of tensors": (lambda: train(data=DATA.tensors), "TensorDataset"),
    "other records": (
        lambda: train(data=TensorDataset(DATA.tensors[0][:9], DATA.tensors[1][:9])),
        "as many records as the run, 24. Got 9",
    ),
    "a linear model's facts": (lambda: train(run=LINEAR), "Use li.train"),
    "no clip": (lambda: train(run=UNCLIPPED), "must be clipped"),
    "a dimension that is not": (
        lambda: train(run=replace(RUN, domain=li.Unbounded(dimension=7))),
        "one dimension per trained parameter, 15. Got 7",
    ),
    "a smoothness in single precision": (
        lambda: train(run=replace(RUN, loss=li.losses.network(clip=0.5, smoothness=1.0))),
        "Got a model in torch.float32; use model.double",
    ),
    "nothing to train": (lambda: train(nn.Linear(4, 3).requires_grad_(False)), "require gradients. Got none"),
    "no module": (lambda: train(lambda x: x), "torch.nn.Module"),
    "no loss": (lambda: train(loss=3), "function of outputs and targets"),
    "a batch of one tensor": (lambda: train(data=TensorDataset(DATA.tensors[0])), "inputs and targets"),
    "records dropped on the way": (
        lambda: train(collate_fn=lambda found: torch.utils.data.default_collate(found[1:])),
        "Got 7 of 8",
    ),
    "a loader that is sequential": (
        lambda: looped(DataLoader(DATA, batch_size=8)),
        "as the run does. Got batches of 8 of 24 records in a fixed order",
    ),
    "another batch size": (
        lambda: looped(DataLoader(DATA, batch_size=6, shuffle=True)),
        "batches of 8 .* as the run does. Got batches of 6",
    ),
    "drawn with replacement": (
        lambda: looped(DataLoader(DATA, batch_size=8, sampler=RandomSampler(DATA, replacement=True))),
        "Got RandomSampler",
    ),
    "weighted": (
        lambda: looped(DataLoader(DATA, batch_size=8, sampler=WeightedRandomSampler([1.0] * RECORDS, RECORDS))),
        "Got WeightedRandomSampler",
    ),
    "padded by DistributedSampler": (
        lambda: looped(DataLoader(DATA, batch_size=8, sampler=DistributedSampler(DATA, 5, 0))),
        "Got DistributedSampler",
    ),
    "shuffled called Poisson": (
        lambda: looped(shuffled(), replace(RUN, batches=li.Poisson(RECORDS, 1 / 3))),
        "must draw Poisson .* as the run does. Got batches of 8",
    ),
    "no loader": (lambda: looped([DATA[:]]), "DataLoader. Got list"),
    "a loader of another run": (
        lambda: looped(loader(DATA, replace(RUN, batches=li.Cyclic(RECORDS, 8)))),
        "Make the loader from this run",
    ),
    "records left out of a batch": (lambda: looped(loader(DATA, RUN), skip=True), "Got 7 of 8"),
    "a pass left in the middle": (lambda: epochs_of(most=2), _NOT_NEXT),
    "a pass left in the middle, with workers": (lambda: epochs_of(workers=1, most=2), _NOT_NEXT),
    "a batch left out": (lambda: epochs_of(skip=1), _NOT_NEXT),
    "a batch used twice": (lambda: epochs_of(twice=True), _NOT_NEXT),
    "batches of another loader": (lambda: epochs_of(other=True), _NOT_NEXT),
    "one step too many": (one_step_too_many, "all 12 steps of the run were taken"),
    "an early end": (ended_early, "all 12 steps of the run. Got 3"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_one_sentence_says_what_is_wrong(name: str) -> None:
    misuse, said = MISUSES[name]
    with pytest.raises(li.InvalidInput, match=said) as caught:
        misuse()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 330


@pytest.mark.parametrize("workers", [0, 1])
def test_the_usual_loader_of_pytorch_is_fine(workers: int) -> None:
    model, batches = nn.Linear(4, 3), shuffled(num_workers=workers)
    next(iter(batches))  # a look at the shapes
    steps = clip_and_noise(SGD(model.parameters(), 0.3), model, cross_entropy, RUN, batches)
    next(iter(batches))
    for _ in range(4):
        for inputs, targets in batches:
            steps.zero_grad()
            steps.accumulate(inputs, targets)
            steps.step()
    trained = steps.finish()
    assert fact("generator_unpredictable", drew="order") in trained.report(1e-5).promises
    assert trained.report(1e-5).epsilon == pytest.approx(li.account(RUN, 1e-5).epsilon, rel=1e-3)


@pytest.mark.parametrize("trained", [False, True])
def test_batch_normalisation_with_public_statistics_is_fine(trained: bool) -> None:
    model = normalised(trained)
    before = {name: one.clone() for name, one in model.named_buffers()}
    found = PrivateTrainer(model, cross_entropy, RUN, DATA).fit()
    assert all(torch.equal(before[name], one) for name, one in model.named_buffers())
    assert not model[1].training
    assert fact("statistics_public") in found.report(1e-5).promises
    if not trained:
        again = normalised_in_a_loop().report(1e-5)
        assert fact("statistics_public") in again.promises


def test_groups_of_parameters_with_their_own_rates_are_composed() -> None:
    """Whatever is done with noisy gradients, their composition holds, also where hidden iterates count for one rate."""
    smooth = replace(RUN, loss=li.losses.network(clip=0.5, smoothness=0.1))
    model, optimizer = groups_with_rates(0.1, 0.3)
    first = model[0].weight.detach().clone()
    trained = PrivateTrainer(model.double(), cross_entropy, smooth, DATA, optimizer=optimizer).fit()
    report = trained.report(1e-5)
    assert trained.run.optimizer.described == "SGD with parameter groups"
    assert report.epsilon == report.composition
    assert report.epsilon == pytest.approx(li.account(RUN, 1e-5).composition, rel=1e-3)
    assert not torch.equal(first, model[0].weight)


def test_groups_move_by_their_own_rates() -> None:
    quiet = replace(RUN, noise=li.OnGradientSum(1e-11, 0.5), steps=1, batches=li.FullBatch(RECORDS))
    moved = []
    for rates in ((0.3, 0.3), (0.1, 0.3)):
        torch.manual_seed(3)
        model, optimizer = groups_with_rates(*rates)
        start = [one.detach().clone() for one in model.double().parameters()]
        PrivateTrainer(model, cross_entropy, quiet, DATA, optimizer=optimizer, seed=0).fit()
        moved.append([one.detach() - two for one, two in zip(model.parameters(), start, strict=True)])
    for place, factor in enumerate((1 / 3, 1 / 3, 1.0, 1.0)):
        assert torch.allclose(moved[1][place], factor * moved[0][place], atol=1e-6)


@pytest.mark.parametrize("seed", [0, None])
def test_an_order_from_a_seed_is_marked(seed: int | None) -> None:
    generator = torch.Generator()
    generator.seed() if seed is None else generator.manual_seed(seed)
    batches = shuffled(generator=generator)
    model = nn.Linear(4, 3)
    steps = clip_and_noise(SGD(model.parameters(), 0.3), model, cross_entropy, RUN, batches)
    assert steps.caveats == (() if seed is None else (fact("order_seeded"),))


def test_what_is_released_on_the_way_is_charged() -> None:
    model = nn.Linear(4, 3)
    batches = loader(DATA, RUN)
    steps = clip_and_noise(SGD(model.parameters(), 0.3), model, cross_entropy, RUN, batches)
    for step, (inputs, targets) in enumerate(batches, 1):
        steps.accumulate(inputs, targets)
        steps.step()
        if step == 6:
            assert set(steps.release()) == {"weight", "bias"}
    steps.releases.keep_inside(9, "a file to go on from")
    report = steps.finish().report(1e-5)
    assert report.releases == (6,)
    assert fact("kept_inside", what=(("a file to go on from", (9,)),)) in report.promises
    steps.releases.leak(3, "the loss of a batch")
    leaked = fact("leaked", what=(("the loss of a batch", (3,)),))
    assert steps.report(1e-5).caveats == (leaked,)
    assert str(leaked).startswith("DO NOT RELEASE: the loss of a batch (after 3 steps)")
