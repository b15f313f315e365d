"""What the account does not cover is refused, with one sentence, before it could do harm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import lastiterate as li
from lastiterate.errors import worded
from lastiterate.facts import fact
from raising import raises

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


Misuse = tuple[Callable[[], None], str, str | None, dict[str, Any]]
_PLAIN = "plain gradient steps"
MISUSES: dict[str, Misuse] = {
    "batch normalisation": (
        lambda: train(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))),
        "layer_mixes_records",
        "model",
        {"got": "BatchNorm1d"},
    ),
    "a column that the model does not take": (
        lambda: by_name(text="a sentence", idx=3),
        "columns_unknown",
        "dataset",
        {"columns": ["text", "idx"], "arguments": ["x", "mask"]},
    ),
    "a column of text": (
        lambda: by_name(mask="a sentence"),
        "columns_without_tensors",
        "dataset",
        {"columns": ["mask"]},
    ),
    "a column of lists": (
        lambda: by_name(x=[0.0, 1.0, 2.0, 3.0]),
        "columns_of_lists",
        "dataset",
        {"columns": ["x"]},
    ),
    "no column of labels": (
        lambda: train(Named(), data=[{"x": one, "label": label} for one, label in DATA]),
        "batch_without_labels",
        None,
        {"columns": ["x", "label"]},
    ),
    "a layer of one's own that mixes": (lambda: train(Centred()), "model_mixes_records", "model", {}),
    "running statistics": (
        lambda: train(nn.Sequential(nn.Unflatten(1, (2, 2)), nn.InstanceNorm1d(2, track_running_stats=True))),
        "layer_keeps_statistics",
        "model",
        {"got": "InstanceNorm1d"},
    ),
    "a buffer that changes": (lambda: train(Counting()), "buffer_changed", "model", {"got": "seen"}),
    "momentum that the run does not say": (
        lambda: trained_by(lambda p: SGD(p, 0.3, momentum=0.9)),
        "optimizer_differs",
        "optimizer",
        {"optimizer": _PLAIN, "got": "momentum 0.9"},
    ),
    "Adam instead of SGD": (
        lambda: trained_by(lambda p: torch.optim.Adam(p, 0.3)),
        "optimizer_differs",
        "optimizer",
        {"optimizer": _PLAIN, "got": li.Adam().described},
    ),
    "another optimiser by name": (
        lambda: trained_by(lambda p: torch.optim.Adagrad(p, 0.3), replace(RUN, optimizer="RMSprop")),
        "optimizer_differs",
        "optimizer",
        {"optimizer": "RMSprop", "got": "Adagrad"},
    ),
    "an optimiser that nobody gave": (
        lambda: train(run=replace(RUN, optimizer="RMSprop")),
        "optimizer_not_given",
        "optimizer",
        {"name": "RMSprop"},
    ),
    "AMSGrad taken for Adam": (
        lambda: trained_by(lambda p: torch.optim.Adam(p, 0.3, amsgrad=True), replace(RUN, optimizer=li.Adam())),
        "optimizer_differs",
        "optimizer",
        {"optimizer": li.Adam().described, "got": "Adam with amsgrad"},
    ),
    "weight decay": (
        lambda: trained_by(lambda p: SGD(p, 0.3, weight_decay=0.1)),
        "weight_decay_differs",
        "weight_decay",
        {"weight_decay": 0.0, "decays": [0.1]},
    ),
    "another learning rate": (
        lambda: trained_by(lambda p: SGD(p, 0.1)),
        "learning_rate_differs",
        "step_size",
        {"step": 1, "step_size": 0.3, "rates": [0.1]},
    ),
    "a scheduler that the run does not say": (
        halved_rate,
        "learning_rate_differs",
        "step_size",
        {"step": 4, "step_size": 0.3, "rates": [0.15]},
    ),
    "groups without the rate of the run": (
        lambda: trained_in_groups(0.1, 0.2),
        "learning_rate_differs",
        "step_size",
        {"step": 1, "step_size": 0.3, "rates": [0.1, 0.2]},
    ),
    "batch normalisation without statistics of its own": (
        lambda: train(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, track_running_stats=False).eval())),
        "layer_mixes_records",
        "model",
        {"got": "BatchNorm1d"},
    ),
    "batch normalisation that is turned on again": (
        lambda: normalised_in_a_loop(train_again=True),
        "layer_mixes_records",
        "model",
        {"got": "BatchNorm1d"},
    ),
    "some parameters left out": (half_of_the_parameters, "optimizer_of_other_parameters", "optimizer", {}),
    "ascent": (
        lambda: trained_by(lambda p: SGD(p, 0.3, maximize=True)),
        "optimizer_differs",
        "optimizer",
        {"optimizer": _PLAIN, "got": "SGD with maximize"},
    ),
    "no optimiser": (
        lambda: train(optimizer="sgd"),
        "must_be",
        "optimizer",
        {"allowed": "a torch.optim.Optimizer", "got": "str"},
    ),
    "a stream": (lambda: train(data=Stream()), "dataset_without_index", "dataset", {"got": "Stream"}),
    "a tuple of tensors": (lambda: train(data=DATA.tensors), "dataset_is_tuple", "dataset", {}),
    "other records": (
        lambda: train(data=TensorDataset(DATA.tensors[0][:9], DATA.tensors[1][:9])),
        "dataset_length_differs",
        "dataset",
        {"records": 24, "length": 9},
    ),
    "a linear model's facts": (lambda: train(run=LINEAR), "loss_of_linear_model", "loss", {"loss": "logistic"}),
    "no clip": (lambda: train(run=UNCLIPPED), "network_not_clipped", "clip", {}),
    "a dimension that is not": (
        lambda: train(run=replace(RUN, domain=li.Unbounded(dimension=7))),
        "domain_dimension_differs",
        "domain",
        {"parameters": 15, "dimension": 7},
    ),
    "a smoothness in single precision": (
        lambda: train(run=replace(RUN, loss=li.losses.network(clip=0.5, smoothness=1.0))),
        "precision_too_low",
        "smoothness",
        {"got": "torch.float32"},
    ),
    "nothing to train": (
        lambda: train(nn.Linear(4, 3).requires_grad_(False)),
        "no_trained_parameters",
        "model",
        {},
    ),
    "no module": (lambda: train(lambda x: x), "must_be", "model", {"allowed": "a torch.nn.Module"}),
    "no loss": (lambda: train(loss=3), "must_be", "loss", {"allowed": "a function of outputs and targets"}),
    "a batch of one tensor": (
        lambda: train(data=TensorDataset(DATA.tensors[0])),
        "batch_not_a_pair",
        None,
        {"got": "list"},
    ),
    "records dropped on the way": (
        lambda: train(collate_fn=lambda found: torch.utils.data.default_collate(found[1:])),
        "records_missing",
        "dataset",
        {"count": 7, "drawn": 8},
    ),
    "a loader that is sequential": (
        lambda: looped(DataLoader(DATA, batch_size=8)),
        "loader_batches_differ",
        "loader",
        {"batches": RUN.batches.described, "drawn": li.Cyclic(RECORDS, 8).described},
    ),
    "another batch size": (
        lambda: looped(DataLoader(DATA, batch_size=6, shuffle=True)),
        "loader_batches_differ",
        "loader",
        {"batches": RUN.batches.described, "drawn": li.Shuffled(RECORDS, 6).described},
    ),
    "drawn with replacement": (
        lambda: looped(DataLoader(DATA, batch_size=8, sampler=RandomSampler(DATA, replacement=True))),
        "loader_unknown",
        "loader",
        {"got": "RandomSampler"},
    ),
    "weighted": (
        lambda: looped(DataLoader(DATA, batch_size=8, sampler=WeightedRandomSampler([1.0] * RECORDS, RECORDS))),
        "loader_unknown",
        "loader",
        {"got": "WeightedRandomSampler"},
    ),
    "padded by DistributedSampler": (
        lambda: looped(DataLoader(DATA, batch_size=8, sampler=DistributedSampler(DATA, 5, 0))),
        "loader_unknown",
        "loader",
        {"got": "DistributedSampler"},
    ),
    "shuffled called Poisson": (
        lambda: looped(shuffled(), replace(RUN, batches=li.Poisson(RECORDS, 1 / 3))),
        "loader_batches_differ",
        "loader",
        {"batches": li.Poisson(RECORDS, 1 / 3).described, "drawn": RUN.batches.described},
    ),
    "no loader": (
        lambda: looped([DATA[:]]),
        "must_be",
        "loader",
        {"allowed": "a torch.utils.data.DataLoader", "got": "list"},
    ),
    "a loader of another run": (
        lambda: looped(loader(DATA, replace(RUN, batches=li.Cyclic(RECORDS, 8)))),
        "loader_of_another_run",
        "loader",
        {"batches": RUN.batches.described, "drawn": li.Cyclic(RECORDS, 8).described, "steps": 12, "drawn_steps": 12},
    ),
    "records left out of a batch": (
        lambda: looped(loader(DATA, RUN), skip=True),
        "records_missing",
        "dataset",
        {"count": 7, "drawn": 8},
    ),
    "a pass left in the middle": (lambda: epochs_of(most=2), "batch_not_next", "loader", {}),
    "a pass left in the middle, with workers": (lambda: epochs_of(workers=1, most=2), "batch_not_next", "loader", {}),
    "a batch left out": (lambda: epochs_of(skip=1), "batch_not_next", "loader", {}),
    "a batch used twice": (lambda: epochs_of(twice=True), "batch_not_next", "loader", {}),
    "batches of another loader": (lambda: epochs_of(other=True), "batch_not_next", "loader", {}),
    "one step too many": (one_step_too_many, "all_steps_taken", None, {"steps": 12}),
    "an early end": (ended_early, "steps_not_taken", None, {"steps": 12, "taken": 3}),
}


@pytest.mark.parametrize("name", MISUSES)
def test_one_sentence_says_what_is_wrong(name: str) -> None:
    misuse, code, field, values = MISUSES[name]
    with raises(code, field, kind=li.errors.InvalidInput, **values) as caught:
        misuse()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 330


@pytest.mark.parametrize(
    ("columns", "named", "removed"),
    [(["a", "b", "c"], "a, b, c", "['a', 'b', 'c']"), (["a", "b", "c", "d"], "a, b, c and 1 more", "['a', 'b', 'c']")],
)
def test_a_few_columns_are_named(columns: list[str], named: str, removed: str) -> None:
    said = worded("columns_unknown", field="dataset", columns=columns, arguments=["x", "mask"])
    assert f"Got {named}, but its arguments are x, mask. Remove columns: dataset.remove_columns({removed})." in said


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
    assert report.epsilon == report.epsilon_all_released
    assert report.epsilon == pytest.approx(li.account(RUN, 1e-5).epsilon_all_released, rel=1e-3)
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
