"""Clipped sums of gradients, layer by layer and by vmap, against autograd of single records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lastiterate as li
from raising import raises

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn  # noqa: E402

from lastiterate.torch.agreement import agreeing, check_agreement  # noqa: E402
from lastiterate.torch.clipped import LayerPart, add_clipped  # noqa: E402
from lastiterate.torch.gradients import ByVmap, LayerByLayer, OneByOne  # noqa: E402
from lastiterate.torch.network import Network, NotByRecord  # noqa: E402

RECORDS = 5
cross_entropy = nn.functional.cross_entropy


class Twice(nn.Module):
    """One layer, used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.layer(torch.tanh(self.layer(x)))


class Tied(nn.Module):
    """A weight that is also used outside its layer, where no hook sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 3)

    def forward(self, x: Any) -> Any:
        return self.table(x).mean(1) @ self.table.weight.T


class Named(nn.Module):
    """Inputs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 3), nn.Linear(2, 3)

    def forward(self, left: Any, right: Any) -> Any:
        return self.one(left) * torch.sigmoid(self.two(right))


class Mixing(nn.Module):
    """Subtracts the mean of the batch, as batch normalisation does."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(x - x.mean(0))


class Wrong(LayerPart):
    """Gradients that are a hundredth too long."""

    def __init__(self, part: LayerPart) -> None:
        self.part = part

    @property
    def squares(self) -> Any:
        return self.part.squares

    def add(self, factors: Any) -> None:
        self.part.add(1.01 * factors)


class MixingLater(nn.Module):
    """In batches of more records than are compared by themselves, and not from the beginning."""

    def __init__(self, seen_by_gradients: bool, dropout: bool) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(4, 3), nn.Dropout(0.5 if dropout else 0.0)
        self.seen_by_gradients, self.drops, self.mixing = seen_by_gradients, dropout, False

    def forward(self, x: Any) -> Any:
        found = self.layer(x)
        if self.mixing and len(x) == RECORDS:
            other = found.roll(1, 0)
            found = found + (other - other.detach() if self.seen_by_gradients else other.detach())
        return self.dropout(found) if self.drops else found


def frozen(module: Any, *names: str) -> Any:
    for name, one in module.named_parameters():
        one.requires_grad_(name not in names)
    return module


def flat(*layers: Any) -> Any:
    return nn.Sequential(*layers, nn.Flatten())


def rows(*shape: int) -> Any:
    return torch.randn(RECORDS, *shape)


def words() -> Any:
    return torch.randint(7, (RECORDS, 6))


LAYERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "linear": (lambda: nn.Linear(4, 3), lambda: rows(4)),
    "without bias": (lambda: nn.Linear(4, 3, bias=False), lambda: rows(4)),
    "bias alone": (lambda: frozen(nn.Linear(4, 3), "weight"), lambda: rows(4)),
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), lambda: rows(4)),
    "in place": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 3)), lambda: rows(4)),
    "frozen": (lambda: frozen(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)), "0.weight", "0.bias"), lambda: rows(4)),
    "few places": (lambda: flat(nn.Linear(9, 8)), lambda: rows(3, 9)),
    "many places": (lambda: flat(nn.Linear(2, 3)), lambda: rows(9, 2)),
    "places in a plane": (lambda: flat(nn.Linear(9, 8)), lambda: rows(2, 2, 9)),
    "places that cancel": (
        lambda: nn.Sequential(nn.Linear(9, 8), nn.Flatten(), nn.Linear(16, 3)),
        lambda: cancelling(),
    ),
    "embedding": (lambda: flat(nn.Embedding(7, 3)), words),
    "padded": (lambda: flat(nn.Embedding(7, 3, padding_idx=2)), words),
    "conv1d": (lambda: flat(nn.Conv1d(2, 4, 3, padding=1)), lambda: rows(2, 6)),
    "conv2d": (lambda: flat(nn.Conv2d(2, 4, 3, stride=2, groups=2, dilation=2)), lambda: rows(2, 9, 9)),
    "conv3d": (lambda: flat(nn.Conv3d(1, 2, 2)), lambda: rows(1, 3, 3, 3)),
    "group norm": (lambda: flat(nn.GroupNorm(2, 4)), lambda: rows(4, 3)),
    "layer norm": (lambda: flat(nn.LayerNorm(4), nn.Linear(4, 3)), lambda: rows(2, 4)),
    "rms norm": (lambda: flat(nn.RMSNorm(4)), lambda: rows(2, 4)),
    "instance norm": (lambda: flat(nn.InstanceNorm1d(4, affine=True)), lambda: rows(4, 6)),
    "instance norm 2d": (lambda: flat(nn.InstanceNorm2d(2, affine=True)), lambda: rows(2, 4, 4)),
    "named": (Named, lambda: {"left": rows(4), "right": rows(2)}),
}
BY_VMAP: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "twice": (Twice, lambda: rows(4)),
    "tied": (Tied, words),
    "reflected": (lambda: flat(nn.Conv1d(2, 4, 3, padding=1, padding_mode="reflect")), lambda: rows(2, 6)),
    "parametrised": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), lambda: rows(4)),
    "two inputs": (lambda: Product(), lambda: (rows(4), rows(2))),
}


class Product(nn.Module):
    """A parameter of its own, in no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 2, 3))

    def forward(self, left: Any, right: Any) -> Any:
        return torch.einsum("ni,nj,ijk->nk", left, right, self.weight)


def cancelling() -> Any:
    """Places that are nearly opposite, far from 0."""
    far = 1e6 * torch.randn(RECORDS, 1, 9)
    return torch.cat([far, -far], 1) + rows(2, 9)


def network_of(make: Callable[[], Any], dtype: Any = None) -> Network:
    torch.manual_seed(0)
    return Network(make().to(dtype or torch.float64), cross_entropy)


def records(make: Callable[[], Any], dtype: Any = None) -> tuple[Any, Any]:
    torch.manual_seed(1)
    made = make()
    kind = dtype or torch.float64
    if isinstance(made, dict):
        made = {name: one.to(kind) for name, one in made.items()}
    elif isinstance(made, tuple):
        made = tuple(one.to(kind) for one in made)
    elif made.is_floating_point():
        made = made.to(kind)
    return made, torch.randint(2, (RECORDS,))


def one_by_one(network: Network, inputs: Any, targets: Any, most: float) -> tuple[Any, Any]:
    """Clipped and added up as the definition says, and the norms."""
    total, norms = torch.zeros(network.size, dtype=torch.float64), []
    for place in range(RECORDS):
        alone = slice(place, place + 1)
        if isinstance(inputs, dict):
            output = network.module(**{name: one[alone] for name, one in inputs.items()})
        else:
            output = (
                network.module(*(one[alone] for one in inputs))
                if isinstance(inputs, tuple)
                else network.module(inputs[alone])
            )
        loss = cross_entropy(output, targets[alone])
        found = torch.autograd.grad(loss, list(network.parameters.values()))
        row = torch.cat([one.reshape(-1) for one in found]).double()
        norms.append(row.norm())
        total += row * min(1.0, most / float(row.norm()))
    return total, torch.stack(norms)


@pytest.mark.parametrize("name", [*LAYERS, *BY_VMAP])
def test_clipped_sums_are_those_of_single_records(name: str) -> None:
    make, inputs_of = {**LAYERS, **BY_VMAP}[name]
    network = network_of(make)
    inputs, targets = records(inputs_of)
    found = agreeing(network, inputs, targets, 0.5)
    assert type(found) is (LayerByLayer if name in LAYERS else ByVmap)
    for way in (found, ByVmap(network)):
        for most in (0.05, 0.7, 1e6):
            total = torch.zeros(network.size, dtype=torch.float64)
            way.add(inputs, targets, network.views(total), most)
            expected, _ = one_by_one(network, inputs, targets, most)
            assert float((total - expected).norm()) <= 1e-9 * max(1.0, float(expected.norm()))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_no_record_counts_for_more_than_the_clip(name: str, dtype: Any) -> None:
    """Also where terms cancel: norms are rounded up, so what is added for each record alone is never longer."""
    make, inputs_of = LAYERS[name]
    network = network_of(make, dtype)
    inputs, targets = records(inputs_of, dtype)
    gradients = LayerByLayer(network)
    _, norms = one_by_one(network, inputs, targets, 1.0)
    bounds = torch.stack([part.squares for part in gradients.parts(inputs, targets, totals_of(network))]).sum(0).sqrt()
    assert bool((bounds >= norms * (1 - 1e-5 if dtype == torch.float32 else 1 - 1e-12)).all())
    for place in range(RECORDS):
        total = torch.zeros(network.size, dtype=torch.float64)
        alone = only(inputs, place)
        gradients.add(alone, targets[place : place + 1], network.views(total), 0.01)
        assert float(total.norm()) <= 0.01 * (1 + 1e-12)


def totals_of(network: Network) -> Any:
    return network.views(torch.zeros(network.size, dtype=torch.float64))


def only(inputs: Any, place: int) -> Any:
    part = slice(place, place + 1)
    return {name: one[part] for name, one in inputs.items()} if isinstance(inputs, dict) else inputs[part]


def test_attention_is_trained_by_vmap() -> None:
    module = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    network = network_of(lambda: nn.Sequential(module, nn.Flatten(), nn.Linear(24, 3)))
    inputs, targets = records(lambda: rows(3, 8))
    assert type(agreeing(network, inputs, targets, 0.5)) is ByVmap


class Positions(nn.Module):
    """A table that is looked at once for all records, as language models do for positions."""

    def __init__(self, batched: bool) -> None:
        super().__init__()
        self.words, self.places, self.last = nn.Embedding(7, 3), nn.Embedding(6, 3), nn.Linear(18, 3)
        self.batched = batched

    def forward(self, x: Any) -> Any:
        places = torch.arange(6)
        return self.last((self.words(x) + self.places(places[None] if self.batched else places)).flatten(1))


class Branching(nn.Module):
    """Looks at its values on the way, as attention masks of language models do: torch.func.vmap cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.layer(torch.tanh(self.layer(x))) if bool((x < 100).all()) else x


@pytest.mark.parametrize(("make", "inputs_of", "way"), [
    (lambda: Positions(True), words, LayerByLayer),
    (lambda: Positions(False), words, ByVmap),
    (Branching, lambda: rows(4), OneByOne),
])  # fmt: skip
def test_models_as_people_write_them(make: Any, inputs_of: Any, way: Any) -> None:
    network = network_of(make)
    inputs, targets = records(inputs_of)
    found = agreeing(network, inputs, targets, 0.5)
    assert type(found) is way
    total = torch.zeros(network.size, dtype=torch.float64)
    found.add(inputs, targets, network.views(total), 0.3)
    assert torch.allclose(total, one_by_one(network, inputs, targets, 0.3)[0], atol=1e-9)


class Dropping(nn.Module):
    """By a function, and inside attention."""

    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True)
        self.last = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        x = torch.nn.functional.dropout(x, 0.5, self.training)
        x = x + torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
        return self.last(self.attend(x, x, x)[0].flatten(1))


def test_dropout_of_any_kind_is_fine() -> None:
    network = network_of(Dropping)
    assert type(agreeing(network, *records(lambda: rows(2, 4)), 0.5)) is ByVmap


def test_dropout_is_fine() -> None:
    network = network_of(lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3)))
    inputs, targets = records(lambda: rows(4))
    assert type(agreeing(network, inputs, targets, 0.5)) is LayerByLayer
    assert network.module[1].training


def test_layers_that_mix_records_are_refused() -> None:
    network = network_of(Mixing)
    with raises("model_mixes_records", "model"):
        agreeing(network, *records(lambda: rows(4)), 0.5)
    with raises("model_mixes_records", "model"):
        check_agreement(LayerByLayer(network), *records(lambda: rows(4)), 0.5)


@pytest.mark.parametrize("seen_by_gradients", [True, False])
@pytest.mark.parametrize("dropout", [True, False])
def test_records_that_are_mixed_later_are_noticed_where_they_are(seen_by_gradients: bool, dropout: bool) -> None:
    """By the losses alone, or by what they send back alone; in the pass that is taken, or in one without dropout."""
    network = network_of(lambda: MixingLater(seen_by_gradients, dropout))
    inputs, targets = records(lambda: rows(4))
    totals = network.views(torch.zeros(network.size, dtype=torch.float64))
    gradients = agreeing(network, inputs, targets, 0.5)

    def taken() -> None:
        check_agreement(gradients, inputs, targets, 0.5)
        assert not (dropout and network.module.mixing)
        gradients.add(inputs, targets, totals, 0.5)

    taken()
    network.module.mixing = True
    network.renew()
    with raises("model_mixes_records", "model"):
        taken()


def test_a_look_at_a_pass_changes_nothing_and_is_the_only_one() -> None:
    network = network_of(lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)))
    inputs, targets = records(lambda: rows(4))
    gradients = LayerByLayer(network)
    sums = []
    for _ in range(2):
        sums.append(torch.zeros(network.size, dtype=torch.float64))
        gradients.add(inputs, targets, network.views(sums[-1]), 0.5)
        check_agreement(gradients, inputs, targets, 0.5)
    assert gradients.look is not None
    assert torch.equal(*sums)
    gradients.add(inputs, targets, network.views(sums[-1]), 0.5)
    assert gradients.look is None


@pytest.mark.parametrize("norms", [(1e-9, 1.0), (0.0, 3.0), (0.4, 0.4)])
def test_gradients_that_are_shorter_than_all_others_are_compared_as_well(norms: tuple[float, float]) -> None:
    """The shortest is not cut where that would leave rounding alone; wrong gradients are refused all the same."""
    network = Network(nn.Linear(1, 1, bias=False).double(), lambda output, target: (output * target).squeeze(1))
    inputs, targets = torch.ones(2, 1, dtype=torch.float64), torch.tensor(norms, dtype=torch.float64)[:, None]
    gradients = LayerByLayer(network)
    check_agreement(gradients, inputs, targets, 0.5)
    gradients.rules = {"": lambda *given: [Wrong(part) for part in LayerByLayer(network).rules[""](*given)]}
    with raises("model_mixes_records", "model"):
        check_agreement(gradients, inputs, targets, 0.5)


def test_losses_are_of_single_records_however_they_are_reduced() -> None:
    inputs, targets = records(lambda: rows(4))
    module = nn.Linear(4, 3).double()
    expected = cross_entropy(module(inputs), targets, reduction="none")
    for loss in (
        cross_entropy,
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(reduction="sum"),
        lambda o, t: cross_entropy(o, t, reduction="none"),
    ):
        assert torch.equal(Network(module, loss).losses(inputs, targets), expected)
    squares = Network(module, nn.MSELoss(reduction="sum")).losses(inputs, inputs[:, :3])
    assert torch.allclose(squares, (module(inputs) - inputs[:, :3]).square().sum(1))
    with raises("loss_of_whole_batch", kind=NotByRecord):
        Network(module, lambda o, t: cross_entropy(o, t)).losses(inputs, targets)


def test_a_loss_of_the_whole_batch_is_trained_record_by_record() -> None:
    network = Network(nn.Linear(4, 3).double(), lambda o, t: cross_entropy(o, t))
    assert type(agreeing(network, *records(lambda: rows(4)), 0.5)) is ByVmap


def test_gradients_that_are_not_finite_are_refused() -> None:
    network = network_of(LAYERS["mlp"][0])
    inputs, targets = records(lambda: rows(4))
    inputs[2, 1] = torch.nan
    with raises("record_gradients_not_finite", kind=li.errors.InvalidInput):
        LayerByLayer(network).add(inputs, targets, totals_of(network), 1.0)


@pytest.mark.parametrize("name", ["mlp", "conv2d", "embedding", "few places"])
def test_everything_stays_on_the_device_of_the_model(name: str) -> None:
    """On `meta` any look at a value would be an error."""
    make, inputs_of = LAYERS[name]
    network = Network(make().to("meta"), cross_entropy)
    inputs, targets = (one.to("meta") for one in records(inputs_of, torch.float32))
    total = torch.zeros(network.size, dtype=torch.float64, device="meta")
    for way in (LayerByLayer(network), ByVmap(network)):
        add_clipped(way.parts(inputs, targets, network.views(total)), 1.0)
    assert total.is_meta
