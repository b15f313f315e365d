"""Networks, and data in memory, on which private training is timed: a perceptron, a convolutional network, a transformer.

The data hand out whole batches at once, so that loading takes next to nothing, and note when each batch was fetched: from
one fetch to the one an epoch later is the time of an epoch, whoever trains.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

WORDS, PLACES, WIDTH = 1_450, 32, 64


def perceptron() -> nn.Module:
    """784-512-10."""
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))


def convolutional() -> nn.Module:
    """The network of Opacus' MNIST example."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


class Block(nn.Module):
    """Attention with four heads, and a layer of four times the width."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = self.before(x)
        heads = [one(seen).unflatten(2, (4, -1)).transpose(1, 2) for one in (self.query, self.key, self.value)]
        x = x + self.out(nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))
        return x + self.narrow(nn.functional.gelu(self.wide(self.between(x))))


class Transformer(nn.Module):
    """Two blocks over sequences of 32 words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(PLACES, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.after, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        places = torch.arange(PLACES).repeat(len(words), 1)
        return self.head(self.after(self.blocks(self.words(words) + self.places(places)).mean(1)))


@dataclass(eq=False)
class Marked(torch.utils.data.Dataset):
    """Whole batches, and the wall and CPU time at which each was fetched."""

    inputs: torch.Tensor
    targets: torch.Tensor
    marks: list[tuple[float, float]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, place: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[place], self.targets[place]

    def __getitems__(self, places: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        self.marks.append((time.perf_counter(), time.process_time()))
        chosen = torch.tensor(places)
        return self.inputs[chosen], self.targets[chosen]

    def last(self, batches: int) -> tuple[float, float]:
        """Wall and CPU seconds from the fetch of a batch to the one so many later: the last."""
        (wall, cpu), (wall_after, cpu_after) = self.marks[-1 - batches], self.marks[-1]
        return wall_after - wall, cpu_after - cpu


def whole(batch: Any) -> Any:
    """A collate function for what was fetched as a whole."""
    return batch


def images(*shape: int) -> Any:
    return lambda records: torch.randn(records, *shape)


def sentences(records: int) -> torch.Tensor:
    return torch.randint(WORDS, (records, PLACES))


NETWORKS: dict[str, tuple[Any, Any]] = {
    "perceptron": (perceptron, images(784)),
    "convolutional": (convolutional, images(1, 28, 28)),
    "transformer": (Transformer, sentences),
}


SMALL = "small"  # for what is loaded on first use


def made(network: str, records: int) -> tuple[nn.Module, Marked]:
    """The network and its data, the same each time."""
    torch.manual_seed(0)
    module, inputs = NETWORKS.get(network, (lambda: nn.Sequential(nn.Linear(2, 10)), images(2)))
    return module(), Marked(inputs(records), torch.randint(10, (records,)))


def parameters(network: str) -> int:
    return sum(one.numel() for one in NETWORKS[network][0]().parameters())
