"""What processes say to each other: sums, what the leader tells, what each of them has to say."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
import torch.distributed as dist

from lastiterate.errors import LastIterateError

_LEADER = 0


class Stopped(LastIterateError, RuntimeError):
    """Another process of this training stopped."""


class Channel:
    """A group of all processes. Nothing else may hold on to the group: it is closed when nobody does."""

    def __init__(self, group: Any) -> None:
        self._group = group

    @classmethod
    def opened(cls) -> Channel:
        """A new one, between CPUs; all processes open theirs at the same place."""
        return cls(dist.new_group(backend="gloo", timeout=_timeout()))

    def close(self) -> None:
        """Whoever waits for this process is told that it is gone."""
        with suppress(ValueError, AssertionError):  # somebody has closed all groups
            dist.destroy_process_group(self._group)
        self._group = None

    def add(self, tensor: Any) -> Any:
        """Of all processes, in place."""
        self._do(dist.all_reduce, tensor)
        return tensor

    def tell(self, tensor: Any) -> Any:
        """The leader's, in place."""
        self._do(dist.broadcast, tensor, _LEADER)
        return tensor

    def tell_any_length(self, tensor: Any) -> Any:
        """The leader's, of one axis; what the others bring says its type."""
        length = int(self.tell(torch.tensor([len(tensor)])))
        told = tensor if dist.get_rank() == _LEADER else torch.empty(length, dtype=tensor.dtype)
        return self.tell(told) if length else told

    def gathered(self, value: Any) -> list[Any]:
        """What each process says."""
        found = [None] * dist.get_world_size()
        self._do(dist.all_gather_object, found, value)
        return found

    def _do(self, collective: Callable[..., Any], *values: Any) -> None:
        """The error of PyTorch is let go of, since it would keep the group."""
        try:
            collective(*values, group=self._group)
            return
        except RuntimeError as error:
            reason = _reason(error)
        raise Stopped("process_lost", reason=reason)


def _reason(error: RuntimeError) -> str:
    """The first sentence, without the place in the source of PyTorch."""
    return re.sub(r"^\[\S+\] ", "", str(error)).partition("\n")[0].partition(". ")[0][:120]


def _timeout() -> Any:
    """That of init_process_group, if its group has one for CPUs; otherwise PyTorch's."""
    try:
        return dist.group.WORLD._get_backend(torch.device("cpu")).options._timeout
    except (AttributeError, RuntimeError):
        return None
