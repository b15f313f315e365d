"""What a forward pass writes into a module is neither seen by other records nor released with it."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

import lastiterate as li
from raising import raises

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.utils.data import TensorDataset  # noqa: E402

from lastiterate.torch import PrivateTrainer  # noqa: E402
from lastiterate.torch.agreement import agreeing  # noqa: E402
from lastiterate.torch.gradients import ByVmap  # noqa: E402
from lastiterate.torch.network import Network  # noqa: E402

torch.manual_seed(0)
FEATURES = torch.randn(20, 3)
LABELS = (FEATURES[:, 0] > 0).long()
DATA = TensorDataset(FEATURES, LABELS)
cross_entropy = torch.nn.functional.cross_entropy
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
                self.last.copy_(x.detach()[:1])
            case "weights":
                self.trained = self.layer.weight.detach().clone()
            case "new buffer":
                self.register_buffer("fresh", torch.ones(1))
            case "no buffer":
                self.last = None
        return self.layer(x) * (1 + self.box.get("calls", 0))


def trained(module: Any, **more: Any) -> Any:
    return PrivateTrainer(module, cross_entropy, RUN, DATA, **more).fit()


def with_spectral_norm(kind: str) -> Any:
    torch.manual_seed(1)
    layer = torch.nn.Linear(3, 2)
    return (torch.nn.utils.spectral_norm if kind == "old" else torch.nn.utils.parametrizations.spectral_norm)(layer)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["old", "new"])
def test_the_vectors_of_a_spectral_norm_do_not_leave(kind: str) -> None:
    module = with_spectral_norm(kind)
    before = copy.deepcopy(module.state_dict())
    with raises("buffer_changed", "model") as caught:
        trained(module)
    assert caught.value.got.endswith(("_u", "_v"))
    assert all(torch.equal(before[name], one) for name, one in module.state_dict().items())
    after = trained(module.eval()).model.state_dict()
    assert all(torch.equal(before[name], one) for name, one in after.items() if name.endswith(("_u", "_v")))


@pytest.mark.parametrize("how", ["buffer", "in place", "weights", "new buffer", "no buffer"])
def test_buffers_that_change_are_refused(how: str) -> None:
    module = Remembering(how)
    before = {name: one.clone() for name, one in module.named_buffers()}
    with pytest.raises(li.errors.InvalidInput) as caught:
        trained(module)
    assert caught.value.code in ("buffer_changed", "model_mixes_records")
    assert before.keys() == dict(module.named_buffers()).keys()
    assert all(torch.equal(before[name], one) for name, one in module.named_buffers())


@pytest.mark.parametrize("how", ["attribute", "inside"])
def test_nothing_else_that_was_stored_is_handed_over(how: str) -> None:
    module = trained(Remembering(how)).model
    assert not hasattr(module, "seen")
    assert module.box == {}
    assert vars(module).keys() == vars(Remembering(how)).keys()


def test_a_model_that_counts_its_calls_is_refused() -> None:
    """Its gradients depend on what was asked for before, so that clipping would not bound what a record changes."""
    with raises("model_mixes_records", "model"):
        trained(Remembering("counter"))


def test_no_step_sees_what_was_stored_before() -> None:
    network = Network(Remembering("counter"), cross_entropy)
    first = network.losses(FEATURES, LABELS)
    network.losses(FEATURES, LABELS)
    network.renew()
    assert torch.equal(network.losses(FEATURES, LABELS), first)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weights_that_a_hook_computes_are_not_those_of_a_hidden_iterate() -> None:
    module = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    before = module.weight.detach().clone()
    trained(module)
    assert torch.equal(module.weight, before)
    module(FEATURES)
    assert not torch.equal(module.weight, before)


def test_shared_buffers_and_parameters() -> None:
    shared = Remembering("none")
    network = Network(
        torch.nn.Sequential(torch.nn.Linear(3, 3), shared.layer, torch.nn.Linear(2, 3), shared), cross_entropy
    )
    assert network.size == 12 + 8 + 9
    assert type(agreeing(network, FEATURES, LABELS, 1.0)) is ByVmap
    assert network.working[1].weight is shared.layer.weight  # which torch.func.functional_call would replace


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(dtype: Any) -> None:
    module = torch.nn.Linear(3, 2, dtype=dtype)
    assert trained(module).model.weight.dtype == dtype
    assert bool(module.weight.isfinite().all())


def test_layers_of_several_precisions_keep_theirs() -> None:
    module = torch.nn.ParameterList([torch.zeros(2, dtype=torch.float64), torch.zeros(3, dtype=torch.bfloat16)])
    network = Network(module, cross_entropy)
    network.put(torch.arange(5, dtype=torch.float64) + 2.0**-30)
    assert [one.dtype for one in module] == [torch.float64, torch.bfloat16]
    assert network.flat().tolist() == [2.0**-30, 1 + 2.0**-30, 2.0, 3.0, 4.0]
    assert [one.dtype for one in network.named(network.flat()).values()] == [torch.float64, torch.bfloat16]


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize(
    ("module", "code", "got"),
    [
        (torch.nn.Linear(3, 2, dtype=torch.complex64), "must_be", "weight of torch.complex64"),
        (torch.nn.LazyLinear, "parameter_lazy", "weight"),
    ],
)
def test_parameters_that_cannot_be_trained(module: Any, code: str, got: str) -> None:
    with raises(code, "model", got=got):
        trained(module(2) if isinstance(module, type) else module)


def test_trainings_that_differ_have_other_identities() -> None:
    def identity(change: Any = None, criterion: Any = cross_entropy) -> str:
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5), Remembering("none"))
        if change is not None:
            change(module)
        return PrivateTrainer(module, criterion, RUN, DATA)._identity()

    changes = [
        lambda module: module[0].weight.requires_grad_(False),
        lambda module: module[2].last.fill_(1.0),
        lambda module: setattr(module[1], "p", 0.25),
        lambda module: module.eval(),
        lambda module: module.double(),
        lambda module: module.append(torch.nn.ReLU()),
        lambda module: module.append(torch.nn.Tanh()),
        lambda module: torch.nn.init.zeros_(module[0].weight),
    ]
    found = [identity(), *map(identity, changes), identity(criterion=torch.nn.functional.mse_loss)]
    assert len(set(found)) == len(found)
    assert identity() == found[0]


def test_a_network_learns() -> None:
    """One model in six is below by its noise alone; the mean of twelve is four of its deviations above."""
    torch.manual_seed(0)
    features = torch.randn(200, 6)
    labels = (features[:, 0] * features[:, 1] > 0).long()
    plan = li.Run(li.losses.network(clip=1.0), li.Poisson(200, 0.25), 0.8, li.OnGradientSum(1.0, 1.0), 150)
    right = []
    for _ in range(6):
        module = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
        trainer = PrivateTrainer(module, cross_entropy, plan, TensorDataset(features, labels), epsilon=60.0, delta=1e-5)
        found = trainer.fit()
        right.append(float((module(features).argmax(1) == labels).double().mean()))
    assert math.fsum(right) / len(right) > 0.72
    assert found.report(1e-5).epsilon <= 60.0
