"""Processes that train together: one draws batches and noise, which all of them use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
import torch.distributed as dist

from lastiterate.errors import InvalidInput, LastIterateError

Facts = dict[str, Any]
"""What has to be the same in all processes, by the name that a message calls it."""


class Team:
    """The team of a single process."""

    rank = 0
    size = 1

    @property
    def leads(self) -> bool:
        """Whether this process draws what is random, and writes files."""
        return self.rank == 0

    def join(self, make: Callable[[], tuple[Any, Facts]]) -> Any:
        """Return the network that each process makes, with the leader's numbers; an error in one ends all."""
        return make()[0]

    def lead(self, make: Callable[[], Any]) -> Any:
        """Return what `make` makes in the leader; an error there ends all processes."""
        return make()

    @contextmanager
    def together(self, facts: Facts) -> Iterator[None]:
        """Train inside this context: whatever ends one process ends all."""
        yield

    def total(self, counted: Callable[[], int]) -> int:
        """Return the sum of the numbers that `counted` returns in all processes; an error in one is an error in all."""
        return counted()

    def sum(self, vector: Any) -> Any:
        """Return the sum of the vectors of all processes."""
        return vector

    def broadcast(self, vector: Any) -> Any:
        """Return the leader's vector."""
        return vector

    def draw(self, draw: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
        """Draw an order, which the leader alone knows, and the records of a batch, which all learn."""
        return draw()

    def agree(self, state: Any) -> Any:
        """Return the state that the leader found."""
        return state

    def finish(self, last: Callable[[], None]) -> None:
        """Call `last` in the leader when all processes have finished, before any of them goes on."""
        last()

    def share(self, chosen: Any) -> Any:
        """Return the share of the chosen records that this process computes."""
        return chosen[self.rank :: self.size]


ALONE = Team()


# Communication: sums, broadcasts by the leader, and values of each process.


_LEADER = 0


class Stopped(LastIterateError, RuntimeError):
    """Error because another process of this training stopped."""


class Channel:
    """A group of all processes. Nothing else may hold on to the group: it is closed when nobody does."""

    def __init__(self, group: Any) -> None:
        self._group = group

    @classmethod
    def open(cls) -> Channel:
        """Open a new channel between CPUs; all processes open theirs at the same place."""
        return cls(dist.new_group(backend="gloo", timeout=_timeout()))

    def close(self) -> None:
        """Close the channel; processes that wait for this one learn that it is gone."""
        with suppress(ValueError, AssertionError):  # somebody has closed all groups
            dist.destroy_process_group(self._group)
        self._group = None

    def add(self, tensor: Any) -> Any:
        """Sum the tensors of all processes, in place."""
        self._do(dist.all_reduce, tensor)
        return tensor

    def broadcast(self, tensor: Any) -> Any:
        """Copy the leader's tensor to all processes, in place."""
        self._do(dist.broadcast, tensor, _LEADER)
        return tensor

    def broadcast_any_length(self, tensor: Any) -> Any:
        """Return the leader's tensor of one axis, of any length; those of others give its type."""
        length = int(self.broadcast(torch.tensor([len(tensor)])))
        told = tensor if dist.get_rank() == _LEADER else torch.empty(length, dtype=tensor.dtype)
        return self.broadcast(told) if length else told

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes."""
        found = [None] * dist.get_world_size()
        self._do(dist.all_gather_object, found, value)
        return found

    def _do(self, collective: Callable[..., Any], *values: Any) -> None:
        """Execute a collective operation, and raise a new error if it fails: PyTorch's would keep the group."""
        try:
            collective(*values, group=self._group)
            return
        except RuntimeError as error:
            reason = _reason(error)
        raise Stopped("process_lost", reason=reason)


def _reason(error: RuntimeError) -> str:
    """Return the first sentence of an error, without the place in the source of PyTorch."""
    return re.sub(r"^\[\S+\] ", "", str(error)).partition("\n")[0].partition(". ")[0][:120]


def _timeout() -> Any:
    """Timeout of the process group if it has one for CPUs; otherwise None, for PyTorch's default."""
    try:
        return dist.group.WORLD._get_backend(torch.device("cpu")).options._timeout
    except (AttributeError, RuntimeError):
        return None


# Every process needs all parameters, since records' gradients are clipped over all of them at once.


_SHARDED = {"FullyShardedDataParallel", "FSDPModule", "DTensor"}


def check_whole(module: Any) -> None:
    """Raise an error if a module's parameters are divided among processes."""
    for part in (*module.modules(), *module.parameters()):
        if any(
            kind.__name__ in _SHARDED and kind.__module__.startswith("torch.distributed") for kind in type(part).__mro__
        ):
            raise InvalidInput("model_sharded", field="model")
