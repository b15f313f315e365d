"""Gradients of single layers are autograd's of single records, clipped and added up, for every known kind of layer."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import lastiterate as li  # noqa: E402
from lastiterate.torch import clipped  # noqa: E402
from lastiterate.torch import gradients as layers  # noqa: E402
from lastiterate.torch.gradients import LayerByLayer  # noqa: E402
from lastiterate.torch.network import (  # noqa: E402
    Network,
    NotByRecord,
    pieces,
)
from lastiterate.torch.objective import NetworkObjective  # noqa: E402
from raising import raises  # noqa: E402

nn = torch.nn
RECORDS = 70  # more than are taken at once, for patches and for rows
LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(5, 4), (5,)),
    "linear, without bias": (lambda: nn.Linear(5, 4, bias=False), (5,)),
    "few wide places": (lambda: nn.Linear(60, 50), (2, 60)),
    "many narrow places": (lambda: nn.Linear(5, 4), (3, 9, 5)),
    "convolution": (lambda: nn.Conv2d(2, 4, 3), (2, 7, 6)),
    "convolution, unusual": (lambda: nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), (1, 2), groups=2, bias=False), (4, 9, 8)),
    "convolution, same": (lambda: nn.Conv2d(2, 3, (4, 3), padding="same", dilation=(1, 2)), (2, 6, 6)),
    "convolution, valid": (lambda: nn.Conv1d(2, 3, 3, padding="valid", stride=2), (2, 8)),
    "convolution of channels alone": (lambda: nn.Conv1d(3, 6, 2, groups=3), (3, 5)),
    "convolution in space": (lambda: nn.Conv3d(2, 2, 2, padding=1), (2, 3, 4, 3)),
    "layer norm": (lambda: nn.LayerNorm(5), (3, 4, 5)),
    "layer norm of a vector": (lambda: nn.LayerNorm(5), (5,)),
    "layer norm, two axes": (lambda: nn.LayerNorm((4, 5)), (3, 4, 5)),
    "layer norm of a matrix": (lambda: nn.LayerNorm((4, 5)), (4, 5)),
    "layer norm, without bias": (lambda: nn.LayerNorm(5, bias=False), (3, 5)),
    "RMS norm": (lambda: nn.RMSNorm(5), (3, 5)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (4, 3, 3)),
    "group norm of a vector": (lambda: nn.GroupNorm(2, 6), (6,)),
    "instance norm": (lambda: nn.InstanceNorm2d(3, affine=True), (3, 4, 4)),
    "instance norm of a sequence": (lambda: nn.InstanceNorm1d(3, affine=True), (3, 6)),
}
network = pytest.mark.parametrize("name", LAYERS)
pytestmark = pytest.mark.filterwarnings("ignore:Using padding=:UserWarning")
clips = pytest.mark.parametrize("most", [0.3, math.inf])


def squared(output: Any, targets: Any) -> Any:
    return (output.flatten(1).sin() * targets[:, None]).sum(1)


def of(name: str) -> tuple[Network, Any, Any]:
    torch.manual_seed(1)
    made, shape = LAYERS[name]
    layer = made().double()
    with torch.no_grad():
        for one in layer.parameters():
            one.copy_(torch.randn(one.shape))
    return Network(layer, squared), torch.randn(RECORDS, *shape).double(), torch.randn(RECORDS).double()


def clipped_sum(network: Network, inputs: Any, targets: Any, most: float) -> Any:
    total = torch.zeros(network.size, dtype=torch.float64)
    for record in pieces(inputs, targets, 1):
        found = torch.autograd.grad(network.losses(*record).sum(), list(network.parameters.values()))
        alone = torch.cat([one.reshape(-1) for one in found])
        total += alone * min(1.0, most / float(torch.linalg.vector_norm(alone)))
    return total


@clips
@network
def test_layers_by_themselves_have_autograds_gradients(name: str, most: float) -> None:
    network, inputs, targets = of(name)
    total = torch.zeros(network.size, dtype=torch.float64)
    LayerByLayer(network).add(inputs, targets, network.views(total), most)
    torch.testing.assert_close(total, clipped_sum(network, inputs, targets, most), rtol=1e-9, atol=1e-12)


@network
def test_parameters_that_are_frozen_have_no_gradients(name: str) -> None:
    network, inputs, targets = of(name)
    if len(network.parameters) == 1:
        pytest.skip("there is nothing else to train")
    for frozen in list(network.parameters):
        network.module.get_parameter(frozen).requires_grad_(False)
        left = Network(network.module, squared)
        total = torch.zeros(left.size, dtype=torch.float64)
        LayerByLayer(left).add(inputs, targets, left.views(total), 0.3)
        torch.testing.assert_close(total, clipped_sum(left, inputs, targets, 0.3), rtol=1e-9, atol=1e-12)
        network.module.get_parameter(frozen).requires_grad_(True)


@pytest.mark.parametrize("places", [False, True])
def test_formed_or_by_places_it_is_the_same(places: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "_quicker_formed", lambda *_: not places)
    network, inputs, targets = of("many narrow places")
    gradients, total = LayerByLayer(network), torch.zeros(network.size, dtype=torch.float64)
    gradients.add(inputs, targets, network.views(total), 0.3)
    assert (gradients.formed == 0) == places
    torch.testing.assert_close(total, clipped_sum(network, inputs, targets, 0.3), rtol=1e-9, atol=1e-12)


def test_rows_in_single_precision_are_squared_and_added_in_double_precision() -> None:
    torch.manual_seed(2)
    rows, factors = torch.randn(RECORDS, 3, 7), torch.rand(RECORDS, dtype=torch.float64)
    total = torch.zeros(3, 7, dtype=torch.float64)
    part = clipped.Rows(rows, total)
    part.add(factors)
    exact = (rows.double() * factors[:, None, None]).sum(0)
    torch.testing.assert_close(total, exact, rtol=1e-13, atol=1e-13)
    squares = rows.double().square().sum((1, 2))
    assert (part.squares >= squares * (1 - 1e-16)).all()
    assert (part.squares <= squares * (1 + 1e-13)).all()


def test_a_convolution_of_one_record_is_refused() -> None:
    network = Network(nn.Conv2d(2, 2, 2), lambda output, targets: output.flatten(1).sum(1))
    totals = network.views(torch.zeros(network.size, dtype=torch.float64))
    with raises("convolution_without_batch", kind=NotByRecord):
        LayerByLayer(network).add(torch.randn(2, 4, 4), torch.zeros(2), totals, 1.0)


def test_records_that_are_looked_at_one_at_a_time_are_charged() -> None:
    """An addition for every record: their rounding is at most this part of two gradients."""
    run = li.Run(li.losses.network(clip=1.0), li.Cyclic(20_000, 10_000), 0.1, li.OnMeanGradient(std=0.1), 4)
    objective = NetworkObjective(Network(nn.Linear(2, 2), nn.functional.cross_entropy), run)
    assert objective.arithmetic(run, 6).factor - 1 >= 10_000 * 10_000 * 2.0**-53
