"""Vectors that are used again give the numbers of the formula as it is written, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.numerics.exact_noise import make_noisy_multiples, nearest_multiples, normal, public_grid
from lastiterate.numerics.randomness import Source

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.utils.data import Dataset, TensorDataset  # noqa: E402

from lastiterate.torch import PrivateTrainer, clip_and_noise, loader, private_steps, trainer  # noqa: E402
from lastiterate.torch.network import Network  # noqa: E402
from lastiterate.torch.tensors import SpareVector  # noqa: E402
from lastiterate.training.steps import TrainingStep  # noqa: E402

RECORDS, STEPS, SEED = 24, 9, 5
GENERATOR = torch.Generator().manual_seed(3)
FEATURES = torch.randn(RECORDS, 4, generator=GENERATOR)
DATA = TensorDataset(FEATURES, torch.randint(3, (RECORDS,), generator=GENERATOR))
cross_entropy = torch.nn.functional.cross_entropy
RUNS: dict[str, dict[str, Any]] = {
    "plain": {},
    "decay": {"weight_decay": 0.2},
    "momentum": {"optimizer": li.SGD(momentum=0.9)},
    "dampened": {"optimizer": li.SGD(momentum=0.7, dampening=0.4)},
    "schedule": {"optimizer": li.SGD(momentum=0.9), "step_size": [0.3 / (1 + step) for step in range(STEPS)]},
    "decay and momentum": {"optimizer": li.SGD(momentum=0.9), "weight_decay": 0.2},
}
OTHERS: dict[str, dict[str, Any]] = {
    "nesterov": {"optimizer": li.SGD(momentum=0.8, nesterov=True)},
    "average": {"optimizer": li.SGD(momentum=0.8), "released": li.EMA(decay=0.9)},
    "ball": {"optimizer": li.SGD(momentum=0.8), "domain": li.Ball(radius=1.0)},
    "adam": {"optimizer": li.Adam()},
    "adam with an l2 term": {"optimizer": li.Adam(), "weight_decay": 0.1},
    "poisson": {"optimizer": li.SGD(momentum=0.8), "batches": li.Poisson(RECORDS, 0.2)},
}


def a_run(step_size: Any = 0.3, batches: Any = None, **more: Any) -> li.Run:
    batches = batches or li.Shuffled(RECORDS, 8)
    return li.Run(li.losses.network(clip=0.5), batches, step_size, li.OnGradientSum(0.7, 0.5), STEPS, **more)


def a_model() -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))


class AsWritten(TrainingStep):
    """v ← momentum·v − size·(mean gradient), x ← x + v, rounded, with rounded noise; every vector is a new one."""

    def __init__(self, run: Any, objective: Any, source: Any, state: Any, _: Any) -> None:
        super().__init__(run, objective, source, objective.network.size)
        self.memory = state.memory or (torch.zeros_like(state.weights),) * run.optimizer.slots

    def __call__(self, step: int, weights: Any, chosen: Any, seen: bool) -> Any:
        x, size = weights.numpy().copy(), float(self.sizes[step])
        total = self.objective.gradient_sum(weights, chosen, 0.5).numpy().copy()
        taken = total * (-size / self._divisor(chosen))
        optimizer, decay = self.run.optimizer, size * self.decay
        if optimizer.plain:
            mean = taken + (x if decay == 0 else (1 - decay) * x)
        else:
            ratio = size / float(self.sizes[max(step - 1, 0)])
            taken = taken if decay == 0 else taken - decay * x
            mean = (optimizer.momentum * ratio) * self.memory[0].numpy() + x + (1 - optimizer.dampening) * taken
        after = self._with_noise(mean, float(self.noises[step]) * optimizer.noise_factor)
        self.memory = () if optimizer.plain else (torch.from_numpy(after - x),)
        return torch.from_numpy(after)

    def _with_noise(self, mean: np.ndarray, std: float) -> np.ndarray:
        grid = public_grid(std, self.finer)
        return np.rint(mean / grid) * grid + nearest_multiples(0 * mean, grid, ((normal, std),), self.source)


class Killed(Exception):
    """While a batch is brought."""


class KillsAfter(Dataset):  # type: ignore[misc]
    def __init__(self, records: int) -> None:
        self.left = records

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, place: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise Killed
        return DATA[place]


def trained(run: li.Run, file: Path | None = None) -> list[Any]:
    """The last iterate and those released before; with a file, after a training that was killed."""
    if file is not None:
        broken = PrivateTrainer(a_model(), cross_entropy, run, KillsAfter(5 * 8 + 1), releases=[2, 7], seed=SEED)
        with pytest.raises(Killed):
            broken.fit(checkpoint=file, checkpoint_every=0.0)
    private = PrivateTrainer(a_model(), cross_entropy, run, DATA, releases=[2, 7], seed=SEED)
    found = private.fit(**({} if file is None else {"checkpoint": file}))
    last = dict(found.model.named_parameters())
    return [torch.cat([one.detach().flatten() for one in part.values()]) for part in (last, *found.released.values())]


def in_a_loop(run: li.Run, make: Any) -> list[Any]:
    """Batches in two parts, and the parameters that are released after every step."""
    model = a_model()
    batches = loader(DATA, run, source=Source(SEED))
    steps = clip_and_noise(make(model), model, cross_entropy, run, batches, seed=SEED)
    found = []
    for features, labels in batches:
        for part in (slice(3), slice(3, None)):
            steps.accumulate(features[part], labels[part])
        steps.step()
        found.append(torch.cat([one.flatten() for one in steps.release().values()]))
    return found


def same(one: list[Any], two: list[Any]) -> bool:
    return len(one) == len(two) and all(map(torch.equal, one, two))


@pytest.fixture
def as_written(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use() -> None:
        for module in (trainer, private_steps):
            monkeypatch.setattr(module, "step_of", AsWritten)

    return use


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> Any:
    """No vector is used again."""
    flat = Network.flat

    def use() -> None:
        monkeypatch.setattr(SpareVector, "keep", lambda _, vector: None)
        monkeypatch.setattr(Network, "flat", lambda network, into=None: flat(network))

    return use


@pytest.mark.parametrize("name", RUNS)
def test_steps_are_those_of_the_formula(name: str, as_written: Any, tmp_path: Path) -> None:
    run = a_run(**RUNS[name])
    found, resumed = trained(run), trained(run, tmp_path / "state")
    assert not torch.equal(found[1], found[2])
    as_written()
    assert same(found, trained(run))
    assert same(found, resumed)


@pytest.mark.parametrize("name", RUNS)
def test_steps_of_a_loop_are_those_of_the_formula(name: str, as_written: Any) -> None:
    run = a_run(**{**RUNS[name], "step_size": 0.3})
    optimizer, decay = run.optimizer, RUNS[name].get("weight_decay", 0.0)
    options = {"momentum": optimizer.momentum, "dampening": optimizer.dampening}  # type: ignore[attr-defined]

    def make(model: Any) -> Any:
        return torch.optim.SGD(model.parameters(), 0.3, weight_decay=decay, **options)

    found = in_a_loop(run, make)
    as_written()
    assert same(found, in_a_loop(run, make))


@pytest.mark.parametrize("name", [*RUNS, *OTHERS])
def test_vectors_that_are_used_again_change_nothing(name: str, anew: Any) -> None:
    run = a_run(**{**RUNS, **OTHERS}[name])
    found = trained(run)
    anew()
    assert same(found, trained(run))


def test_groups_of_parameters(anew: Any) -> None:
    def make(model: Any) -> Any:
        first, second = model[0].parameters(), model[2].parameters()
        return torch.optim.SGD([{"params": first}, {"params": second, "lr": 0.03}], lr=0.3, momentum=0.9)

    run = a_run(optimizer=li.SGD(momentum=0.9))
    found = in_a_loop(run, make)
    anew()
    assert same(found, in_a_loop(run, make))


@pytest.mark.parametrize("size", [1, 7, 40_000])
@pytest.mark.parametrize("grid", [2.0**-20, 4.0])
def test_rounding_and_noise_in_one_pass(size: int, grid: float) -> None:
    value = 3 * np.random.default_rng(0).normal(size=size)
    found = value.copy()
    make_noisy_multiples(found, grid, normal, 0.37, Source(4))
    noise = nearest_multiples(np.zeros(size), grid, ((normal, 0.37),), Source(4))
    assert (found == np.rint(value / grid) * grid + noise).all()
