"""PyTorch modules: gradients record by record, as autograd computes them one at a time; the trainer clips and adds noise."""

from __future__ import annotations

import numpy as np
import pytest

import lastiterate as li

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from lastiterate.training.networks import Network  # noqa: E402

SOURCE = np.random.default_rng(0)
FEATURES = SOURCE.normal(size=(200, 6))
LABELS = (FEATURES[:, 0] * FEATURES[:, 1] > 0).astype(np.int64)


def a_network() -> Network:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    return Network(module, torch.nn.functional.cross_entropy)


def test_gradients_are_those_of_single_records() -> None:
    network = a_network()
    found = network.gradients(network.start, FEATURES[:5], LABELS[:5])
    for x, label, row in zip(FEATURES[:5], LABELS[:5], found, strict=True):
        network.module.zero_grad()
        output = network.module(torch.as_tensor(x, dtype=torch.float32)[None])
        torch.nn.functional.cross_entropy(output, torch.as_tensor([label])).backward()
        expected = torch.cat([parameter.grad.reshape(-1) for parameter in network.module.parameters()])
        assert row == pytest.approx(expected.numpy(), abs=1e-6)


def test_a_network_learns_and_is_accounted_for() -> None:
    network = a_network()
    plan = li.Run(
        li.losses.network(clip=1.0), li.Poisson(200, 0.25), 0.8, li.OnGradientSum(multiplier=1.0, clip=1.0), 150
    )
    run = li.calibrate(plan, epsilon=60.0, delta=1e-5)
    start, right = network.start, []
    for _ in range(12):  # one model in six is below by its noise alone, the mean of twelve four of its deviations above
        trained = li.train(run, (FEATURES, LABELS), loss=network.gradients, start=start)
        module = network.load(trained.weights)
        right.append(module(torch.as_tensor(FEATURES, dtype=torch.float32)).argmax(dim=1).numpy() == LABELS)
    assert np.mean(right) > 0.75
    assert trained.report(1e-5).epsilon <= 60.0
    assert network.start == pytest.approx(trained.weights, abs=1e-6)


def test_frozen_parameters_stay() -> None:
    network = a_network()
    module = network.module
    module[0].weight.requires_grad_(False)
    frozen = Network(module, torch.nn.functional.cross_entropy)
    assert len(frozen.start) == len(network.start) - 96
    before = module[0].weight.clone()
    frozen.load(np.ones(len(frozen.start)))
    assert (module[0].weight == before).all()
    assert frozen.gradients(frozen.start, FEATURES[:3], LABELS[:3]).shape == (3, len(frozen.start))
    with pytest.raises(li.InvalidInput, match="a vector of"):
        frozen.load(np.zeros(3))


@pytest.mark.parametrize(("module", "said"), [(torch.nn.ReLU(), "Got none"), (torch.relu, "must be a torch.nn.Module")])
def test_what_is_no_network(module: object, said: str) -> None:
    with pytest.raises(li.InvalidInput, match=said):
        Network(module, torch.nn.functional.cross_entropy)


def test_layers_that_mix_records_are_refused() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4))
    with pytest.raises(li.InvalidInput, match="BatchNorm1d"):
        Network(module, torch.nn.functional.cross_entropy)
