"""A rectifier that rounding switches on in a batch and off alone is no reason to refuse a model; what mixes records is."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn  # noqa: E402

from lastiterate.torch import agreement  # noqa: E402
from lastiterate.torch.agreement import agreeing, check_agreement  # noqa: E402
from lastiterate.torch.gradients import Gradients, LayerByLayer  # noqa: E402
from lastiterate.torch.network import Network  # noqa: E402
from raising import raises  # noqa: E402

RECORDS, SWITCHED = 20, 3
cross_entropy = nn.functional.cross_entropy


class Rounding(nn.Module):
    """In a batch sums are taken in another order than alone: here, what they differ by is one rounding of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 3)
        with torch.no_grad():
            self.first.weight[0] = torch.tensor([-1.0, 0.0, 0.0, 0.0])
            self.first.bias[0] = -1e-9  # with a feature of 0, single precision may take it for positive

    def forward(self, x: Any) -> Any:
        found = self.first(x)
        rounding = torch.finfo(found.dtype).eps if len(x) > 1 else 0.0
        return self.last(torch.relu(found + rounding))


class MixingInSinglePrecision(nn.Module):
    """As a quantised layer that takes its scale from the batch."""

    def __init__(self, seen_by_losses: bool) -> None:
        super().__init__()
        self.layer, self.seen_by_losses = nn.Linear(4, 3), seen_by_losses

    def forward(self, x: Any) -> Any:
        found = self.layer(x)
        if found.dtype == torch.float64:
            return found
        mean = found.mean(0)
        return found - (mean if self.seen_by_losses else mean - mean.detach())


class Centred(nn.Module):
    """As batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        found = self.layer(x)
        return found - found.mean(0)


class InSinglePrecisionOnly(Rounding):
    def forward(self, x: Any) -> Any:
        if x.dtype == torch.float64:
            raise TypeError("expected scalar type Float")
        return super().forward(x)


def of(module: Any) -> Network:
    return Network(module, cross_entropy)


def records(count: int = RECORDS) -> tuple[Any, Any]:
    """One of them has a feature that is 0."""
    torch.manual_seed(2)
    features = torch.rand(count, 4) + 0.5
    features[SWITCHED, 0] = 0.0
    return features, torch.randint(3, (count,))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The record that rounding switches is among those that are compared first, and among no others."""
    asked: list[Any] = []

    def places(inputs: Any, targets: Any) -> Any:
        asked.append(torch.arange(4, 8) if asked else torch.arange(4))
        return asked[-1]

    monkeypatch.setattr(agreement, "_some_places", places)
    return asked


def with_the_switched(count: int) -> tuple[Any, Any]:
    features, labels = records(max(count, 4))
    first = 0 if count > 3 else SWITCHED + 1 - count
    return features[first : first + count], labels[first : first + count]


def begun(module: Any) -> Gradients:
    torch.manual_seed(1)
    return LayerByLayer(of(module))


@pytest.mark.parametrize("count", [3, 4])
def test_a_switched_rectifier_in_a_small_batch(count: int) -> None:
    gradients, given = begun(Rounding()), with_the_switched(count)
    assert not agreement._agree(gradients, *given, 0.5, agreement.WithoutDropout())
    check_agreement(gradients, *given, 0.5)
    assert type(agreeing(of(Rounding()), *given, 0.5)) is LayerByLayer


def test_a_switched_rectifier_is_not_taken_for_mixed_records(drawn: list[Any]) -> None:
    check_agreement(begun(Rounding()), *records(), 0.5)
    assert len(drawn) == 2
    drawn.clear()
    assert type(agreeing(of(Rounding()), *records(), 0.5)) is LayerByLayer


def test_of_two_records_none_are_left_to_tell() -> None:
    with raises("model_mixes_records", "model"):
        check_agreement(begun(Rounding()), *with_the_switched(2), 0.5)


def test_where_most_records_differ_it_is_no_rectifier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "_some_places", lambda *_: torch.arange(4))
    with raises("model_mixes_records", "model"):
        check_agreement(begun(Rounding()), *records(), 0.5)


@pytest.mark.parametrize("count", [2, 3, 4, RECORDS])
@pytest.mark.parametrize("seen_by_losses", [True, False])
def test_records_that_are_mixed_in_single_precision_alone(count: int, seen_by_losses: bool) -> None:
    gradients, given = begun(MixingInSinglePrecision(seen_by_losses)), with_the_switched(count)
    with raises("model_mixes_records", "model"):
        check_agreement(gradients, *given, 0.5)


@pytest.mark.parametrize("count", [2, 4, RECORDS])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_centred_batches_are_refused(count: int, dtype: Any) -> None:
    features, labels = with_the_switched(count)
    gradients = begun(Centred().to(dtype))
    with raises("model_mixes_records", "model"):
        check_agreement(gradients, features.to(dtype), labels, 0.5)


def test_a_model_that_has_no_double_precision_is_refused(drawn: list[Any]) -> None:
    with raises("model_mixes_records", "model"):
        check_agreement(begun(InSinglePrecisionOnly()), *records(), 0.5)


def test_a_copy_in_double_precision_has_the_loss_and_leaves_the_model_alone() -> None:
    module, weights = Rounding(), torch.tensor([0.2, 0.3, 0.5])
    network = Network(module, nn.CrossEntropyLoss(weight=weights, reduction="sum"))
    doubled = network.in_doubles()
    assert (doubled.dtype, network.dtype, weights.dtype) == (torch.float64, torch.float32, torch.float32)
    features, labels = records()
    alone = [network.losses(features[place : place + 1], labels[place : place + 1]) for place in range(4)]
    found = doubled.losses(features[:4].double(), labels[:4])
    assert torch.allclose(found.float(), torch.cat(alone), atol=1e-6)
