"""What a forward pass writes into a module is neither seen by other records nor released with it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.training.fingerprint import fingerprint

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from lastiterate.training.networks import Network  # noqa: E402

FEATURES = np.random.default_rng(0).normal(size=(20, 3))
LABELS = (FEATURES[:, 0] > 0).astype(np.int64)
RUN = li.Run(li.losses.network(clip=1.0), li.Cyclic(20, 5), 0.5, li.OnGradientSum(multiplier=1.0, clip=1.0), 8)


class Remembering(torch.nn.Module):
    """Stores what it saw, in one of the ways that people store things, and counts what it did in the next output."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.layer = torch.nn.Linear(3, 2)
        self.register_buffer("last", torch.zeros(1, 3))
        self.register_buffer("trained", torch.zeros(2, 3))
        self.box: dict[str, Any] = {}

    def forward(self, x: Any) -> Any:
        match self.how:
            case "attribute":
                self.seen = x.detach()
            case "inside":
                self.box["seen"] = x.detach()
            case "counter":
                self.box["calls"] = self.box.get("calls", 0) + 1
            case "buffer":
                self.last = x.detach()
            case "in place":
                self.last.copy_(x.detach())
            case "weights":
                self.trained = self.layer.weight.detach().clone()
            case "new buffer":
                self.register_buffer("fresh", torch.ones(1))
            case "no buffer":
                self.last = None
        return self.layer(x) * (1 + self.box.get("calls", 0))


def a_network(module: Any) -> Network:
    return Network(module, torch.nn.functional.cross_entropy)


def with_spectral_norm(kind: str) -> Any:
    torch.manual_seed(1)
    layer = torch.nn.Linear(3, 2)
    return (torch.nn.utils.spectral_norm if kind == "old" else torch.nn.utils.parametrizations.spectral_norm)(layer)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["old", "new"])
def test_the_vectors_of_a_spectral_norm_do_not_leave(kind: str) -> None:
    network = a_network(with_spectral_norm(kind))
    before = copy.deepcopy(network.module.state_dict())
    with pytest.raises(li.InvalidInput, match=r"(_u|_v), which changed. Call module.eval\(\)"):
        li.train(RUN, (FEATURES, LABELS), loss=network.gradients, start=network.start)
    assert all(torch.equal(before[name], one) for name, one in network.module.state_dict().items())
    network.module.eval()
    trained = li.train(RUN, (FEATURES, LABELS), loss=network.gradients, start=network.start)
    after = network.load(trained.weights).state_dict()
    assert all(torch.equal(before[name], one) for name, one in after.items() if name.endswith(("_u", "_v")))


@pytest.mark.parametrize("how", ["buffer", "in place", "weights", "new buffer", "no buffer"])
def test_buffers_that_change_are_refused(how: str) -> None:
    network = a_network(Remembering(how))
    before = {name: one.clone() for name, one in network.module.named_buffers()}
    with pytest.raises(li.InvalidInput, match=r"must not change its buffers|record by record"):
        network.gradients(network.start, FEATURES, LABELS)
    assert before.keys() == dict(network.module.named_buffers()).keys()
    assert all(torch.equal(before[name], one) for name, one in network.module.named_buffers())


@pytest.mark.parametrize("how", ["attribute", "inside", "counter"])
def test_nothing_else_that_was_stored_is_handed_over(how: str) -> None:
    network = a_network(Remembering(how))
    trained = li.train(RUN, (FEATURES, LABELS), loss=network.gradients, start=network.start)
    module = network.load(trained.weights)
    assert not hasattr(module, "seen")
    assert module.box == {}
    assert vars(module).keys() == vars(Remembering(how)).keys()


def test_no_record_sees_what_was_stored_of_others() -> None:
    """Gradients are the same whatever was asked for before: otherwise clipping would not bound what a record changes."""
    network = a_network(Remembering("counter"))
    first = network.gradients(network.start, FEATURES[:5], LABELS[:5])
    network.gradients(network.start, FEATURES[5:], LABELS[5:])
    assert (network.gradients(network.start, FEATURES[:5], LABELS[:5]) == first).all()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weights_that_a_hook_computes_are_not_those_of_a_hidden_iterate() -> None:
    network = a_network(torch.nn.utils.weight_norm(torch.nn.Linear(3, 2)))
    before = network.module.weight.detach().clone()
    network.gradients(network.start + 1, FEATURES, LABELS)
    assert torch.equal(network.module.weight, before)


def test_load_puts_buffers_back() -> None:
    network = a_network(Remembering("none"))
    network.module.last.fill_(3.0)
    network.module.trained = torch.ones(7)
    module = network.load(np.zeros(8))
    assert not module.last.any()
    assert module.trained.shape == (2, 3)


def test_shared_buffers_and_parameters() -> None:
    shared = Remembering("none")
    network = a_network(torch.nn.Sequential(torch.nn.Linear(3, 3), shared.layer, torch.nn.Linear(2, 3), shared))
    assert len(network.start) == 12 + 8 + 9
    assert network.gradients(network.start, FEATURES, LABELS).shape == (20, 29)


@pytest.mark.parametrize("layer", [torch.nn.Dropout(0.5), torch.nn.LayerNorm(4), torch.nn.GroupNorm(2, 4)], ids=str)
def test_layers_without_memory_are_fine(layer: Any) -> None:
    network = a_network(torch.nn.Sequential(torch.nn.Linear(3, 4), layer, torch.nn.Linear(4, 2)))
    assert np.isfinite(network.gradients(network.start, FEATURES, LABELS)).all()


def test_statistics_of_records_are_refused_before_training() -> None:
    layer = torch.nn.InstanceNorm1d(2, track_running_stats=True)
    with pytest.raises(li.InvalidInput, match="InstanceNorm1d; say track_running_stats=False"):
        a_network(torch.nn.Sequential(torch.nn.Linear(3, 2), layer))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(dtype: Any) -> None:
    torch.manual_seed(0)
    network, wide = a_network(torch.nn.Linear(3, 2, dtype=dtype)), a_network(torch.nn.Linear(3, 2))
    wide.load(network.start)
    assert network.start.dtype == np.float64
    found = network.gradients(network.start, FEATURES, LABELS)
    assert found == pytest.approx(wide.gradients(wide.start, FEATURES, LABELS), abs=0.02)
    trained = li.train(RUN, (FEATURES, LABELS), loss=network.gradients, start=network.start)
    module = network.load(trained.weights)
    assert module.weight.dtype == dtype
    assert network.start == pytest.approx(trained.weights, rel=0.01)


def test_layers_of_several_precisions_keep_theirs() -> None:
    module = torch.nn.ParameterList([torch.zeros(2, dtype=torch.float64), torch.zeros(3, dtype=torch.bfloat16)])
    network = a_network(module)
    loaded = network.load(np.arange(5) + 2.0**-30)
    assert [one.dtype for one in loaded] == [torch.float64, torch.bfloat16]
    assert network.start.tolist() == [2.0**-30, 1 + 2.0**-30, 2.0, 3.0, 4.0]


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize(
    ("module", "said"),
    [
        (torch.nn.Linear(3, 2, dtype=torch.complex64), "real numbers. Got weight of torch.complex64"),
        (torch.nn.LazyLinear, "which has none yet"),
    ],
)
def test_parameters_that_cannot_be_trained(module: Any, said: str) -> None:
    with pytest.raises(li.InvalidInput, match=said):
        a_network(module(2) if isinstance(module, type) else module)


def test_networks_that_differ_have_other_identities() -> None:
    def identity(change: Any = None, criterion: Any = torch.nn.functional.cross_entropy) -> str:
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), Remembering("none"))
        if change is not None:
            change(module)
        return fingerprint(Network(module, criterion).gradients)

    changes = [
        lambda module: module[0].weight.requires_grad_(False),
        lambda module: module[2].last.fill_(1.0),
        lambda module: setattr(module[1], "p", 0.25),
        lambda module: module.eval(),
        lambda module: module.double(),
        lambda module: module.append(torch.nn.ReLU()),
        lambda module: module.append(torch.nn.Tanh()),
    ]
    found = [identity(), *map(identity, changes), identity(criterion=torch.nn.functional.mse_loss)]
    assert len(set(found)) == len(found)
    assert identity() == found[0]


def test_a_network_goes_on_from_its_checkpoint_only(tmp_path: Path) -> None:
    class Stopping(torch.nn.Module):
        calls = 0

        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            Stopping.calls += 1
            if Stopping.calls == 3:
                raise KeyboardInterrupt
            return self.layer(x)

    torch.manual_seed(0)
    network, file = a_network(Stopping()), tmp_path / "state"
    arguments = {"loss": network.gradients, "start": network.start, "checkpoint": file, "checkpoint_every": 0}
    with pytest.raises(KeyboardInterrupt):
        li.train(RUN, (FEATURES, LABELS), **arguments)
    other = Network(network.module, torch.nn.functional.multi_margin_loss)
    with pytest.raises(li.InvalidInput, match="another loss"):
        li.train(RUN, (FEATURES, LABELS), **{**arguments, "loss": other.gradients})
    li.train(RUN, (FEATURES, LABELS), **arguments)
    assert Stopping.calls == 3 + 6
