"""Training in several processes, on one machine or many, by `torch.distributed`.

The process of rank 0 leads. It draws each batch and each noise from its own source, and tells the others the records and
the noisy result, so that the law of what is trained, and its account, are those of one process. The order of shuffled
records and the state of random numbers it keeps. Sums of gradients travel without noise: whoever can read the network
between the processes, or the memory of any of them, is inside.

Channels are opened for a training, and closed when it ends, however it ends: whatever another process then waits for fails
at once, so that none of them hangs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from lastiterate.errors import InvalidInput
from lastiterate.torch.checkpoint import NetworkFile, NetworkState
from lastiterate.torch.team import ALONE, Channel, Facts, Stopped, Team


def team_of() -> Team:
    """Return the team of all processes of `torch.distributed` if it is initialised, otherwise that of this one."""
    several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    return Processes() if several else ALONE


def check_alone() -> None:
    """Raise an error where several processes would each train a model of their own."""
    if team_of() is not ALONE:
        raise InvalidInput("loop_in_several_processes", processes=dist.get_world_size())


class Processes(Team):
    """All processes of the default group. Vectors travel between the devices of the model, all else between CPUs."""

    def __init__(self) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise InvalidInput("processes_not_initialised")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._open: tuple[Channel, Channel] | None = None

    def join(self, make: Callable[[], tuple[Any, Facts]]) -> Any:
        with self._closed_by_errors():
            network, facts = self._make_everywhere(lambda: _with_shapes(*make()))
            self._check_same(facts)
            for part in (*network.module.parameters(), *network.module.buffers()):
                self._broadcast_content(part)
            network.renew()
            return network

    def lead(self, make: Callable[[], Any]) -> Any:
        with self._closed_by_errors():
            made = self._make_everywhere(make if self.leads else lambda: None)
            return self._numbers.gather(made)[0]

    @contextmanager
    def together(self, facts: Facts) -> Iterator[None]:
        with self._closed_by_errors():
            self._check_same(facts)
            yield
        self._close()

    def total(self, counted: Callable[[], int]) -> int:
        try:
            count = counted()
        except Exception as error:
            with suppress(Stopped):
                self._sums(0, 1)
                self._numbers.gather(str(error) or type(error).__name__)
            raise
        found, failed = self._sums(count, 0)
        if failed:
            said = self._numbers.gather(None)
            rank = next(rank for rank, message in enumerate(said) if message is not None)
            raise Stopped("rank_stopped", rank=rank, processes=self.size, reason=said[rank])
        return found

    def sum(self, vector: Any) -> Any:
        return self._between(vector).add(vector)

    def broadcast(self, vector: Any) -> Any:
        return self._between(vector).broadcast(vector)

    def draw(self, draw: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
        order, chosen = draw() if self.leads else (None, np.empty(0))
        told = self._sampling.broadcast_any_length(torch.from_numpy(np.ascontiguousarray(chosen, "<i8")))
        return order, told.numpy().astype(np.intp)

    def agree(self, state: NetworkState) -> NetworkState:
        """Return the leader's state, without the order of the records and the state of its random numbers."""
        file = NetworkFile("", state.weights.device)
        found = self.leads and state.step > 0
        content = file.encode(replace(state, order=None, randomness=None)) if found else b""
        told = self._numbers.broadcast_any_length(torch.from_numpy(np.frombuffer(content, np.uint8).copy()))
        if not len(told):
            return replace(state, weights=self.broadcast(state.weights))
        return state if self.leads else replace(file.decode(told.numpy().tobytes()), randomness=state.randomness)

    def finish(self, last: Callable[[], None]) -> None:
        """Let the leader remove its file while others wait: two trainings from one file would be two releases."""
        self.total(lambda: 0)
        if self.leads:
            last()
        else:
            self.broadcast(torch.zeros(1))
        with suppress(Stopped):  # whoever ends now ends after the training; the others wait until all have heard
            if self.leads:
                self.broadcast(torch.zeros(1))
            self._sums(0, 0)

    @property
    def _numbers(self) -> Channel:
        return self._channels[0]

    @property
    def _sampling(self) -> Channel:
        """Channel of the sampler alone: a loader draws batches ahead while gradients are added up."""
        return self._channels[1]

    @property
    def _channels(self) -> tuple[Channel, Channel]:
        if self._open is None:
            self._open = Channel.open(), Channel.open()
        return self._open

    def _close(self) -> None:
        for channel in self._open or ():
            channel.close()
        self._open = None

    @contextmanager
    def _closed_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._close()
            raise

    def _between(self, vector: Any) -> Channel:
        return self._numbers if vector.device.type == "cpu" else Channel(dist.group.WORLD)

    def _sums(self, count: int, failed: int) -> tuple[int, int]:
        first, second = self._numbers.add(torch.tensor([count, failed])).tolist()
        return first, second

    def _make_everywhere(self, make: Callable[[], Any]) -> Any:
        """Return what `make` makes in each process; raise an error in all processes if one cannot."""
        made: list[Any] = []

        def counted() -> int:
            made.append(make())
            return 1

        self.total(counted)
        return made[0]

    def _check_same(self, facts: Facts) -> None:
        """Raise an error in all processes if facts differ between them."""
        told = {name: hashlib.sha256(repr(fact).encode()).hexdigest() for name, fact in facts.items()}
        said = self._numbers.gather(told)
        for rank, others in enumerate(said):
            for name in (name for name in said[0] if others[name] != said[0][name]):
                raise InvalidInput("ranks_differ", name=name, rank=rank, processes=self.size)

    def _broadcast_content(self, tensor: Any) -> None:
        """Broadcast the content of a tensor as bytes, whatever its type."""
        if tensor.numel():
            content = tensor.data.contiguous().reshape(-1)
            self.broadcast(content.view(torch.uint8))
            tensor.data.copy_(content.view_as(tensor))


def _with_shapes(network: Any, facts: Facts) -> tuple[Any, Facts]:
    module = network.module
    named = [*module.named_parameters(), *module.named_buffers()]
    shapes = [
        (name, tuple(one.shape), str(one.dtype), one.device.type, name in network.parameters) for name, one in named
    ]
    return network, {**facts, "model": shapes}
