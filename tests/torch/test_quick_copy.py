"""Quick copies of modules are those of copy.deepcopy; what they do not know, they leave to it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn  # noqa: E402

from lastiterate.torch.working_copy import (  # noqa: E402
    NotSimple,
    quick_copy,
    working_copy,
)


class Remembering(nn.Module):
    """Writes into what a shallow copy would share."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.seen, self.counts = nn.Linear(2, 2), [0], {"calls": 0}
        self.register_buffer("steps", torch.zeros(1))
        self.scale = torch.ones(2)

    def forward(self, x: Any) -> Any:
        self.seen.append(len(x))
        self.counts["calls"] += 1
        self.steps += 1
        self.scale *= 2
        return self.layer(x) * self.scale


class WithItsOwnWay(nn.Linear):
    def __deepcopy__(self, memo: Any) -> Any:
        return "a copy"


def twice() -> Any:
    layer = nn.Linear(2, 2)
    return nn.Sequential(layer, nn.ReLU(), layer)


SIMPLE = {
    "perceptron": lambda: nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)),
    "convolution": lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding="same"), nn.GroupNorm(1, 2), nn.Flatten()),
    "attention": lambda: nn.TransformerEncoderLayer(8, 2),
    "statistics": lambda: nn.BatchNorm1d(3).eval(),
    "one layer twice": twice,
}


def known(module: Any) -> dict[int, Any]:
    return {id(one): one for one in (*module.parameters(), *module.buffers())}


def described(module: Any) -> list[Any]:
    return [(name, type(part), {**vars(part), "_modules": None}) for name, part in module.named_modules()]


@pytest.mark.parametrize("name", SIMPLE)
def test_copies_are_those_of_deepcopy(name: str) -> None:
    module = SIMPLE[name]()
    found, deep = quick_copy(module, known(module)), copy.deepcopy(module, known(module))
    assert str(described(found)) == str(described(deep)) == str(described(module))
    assert all(one is two for one, two in zip(found.parameters(), module.parameters(), strict=True))
    apart = {id(part) for part in found.modules()}
    assert not apart & {id(part) for part in module.modules()}
    assert len(apart) == len(list(module.modules()))
    for part, own in zip(module.modules(), found.modules(), strict=True):
        assert not any(value is vars(own)[name] for name, value in vars(part).items() if isinstance(value, dict | list))


def test_nothing_that_a_pass_writes_reaches_the_module() -> None:
    module = Remembering()
    found = working_copy(module)
    found(torch.zeros(3, 2))
    assert (module.seen, module.counts, float(module.steps), float(module.scale[0])) == ([0], {"calls": 0}, 0.0, 1.0)
    assert (found.seen, found.counts, float(found.steps), float(found.scale[0])) == ([0, 3], {"calls": 1}, 1.0, 2.0)
    assert found.layer.weight is module.layer.weight


@pytest.mark.parametrize(
    "module",
    [WithItsOwnWay(2, 2), nn.LSTM(2, 2), nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))],
    ids=["its own way", "lists of tensors", "parametrised"],
)
def test_what_is_not_simple_is_left_to_deepcopy(module: Any) -> None:
    with pytest.raises(NotSimple):
        quick_copy(module, known(module))
    found = working_copy(module)
    assert found == "a copy" or type(found) is type(module)
