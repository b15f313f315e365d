"""Many calls of one function, through joblib: on this machine, or on the cluster that `joblib.parallel_config` names.

Calls know all that they need, their seeds included, so that the answers do not depend on who computes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from typing import Any, TypeVar

from lastiterate.errors import Unavailable

Answer = TypeVar("Answer")
Calls = Sequence[tuple[Any, ...]]

_PARTS = 10  # in which calls are made where a backend cannot give answers one by one


def in_parallel(
    function: Callable[..., Answer], calls: Calls, workers: int | None = None, *, ordered: bool = True
) -> Iterator[Answer]:
    """The answer to each call, as they come; in the order of the calls unless that does not matter.

    With `workers` None it is the active context of joblib that says how many there are: one, where there is none.
    """
    if workers in (None, 1) and "joblib" not in sys.modules:  # then nobody can have made a context
        return starmap(function, calls)
    try:
        from joblib import Parallel, delayed
    except ImportError as error:
        raise Unavailable("joblib_missing") from error
    if len(calls) < 2 or Parallel(n_jobs=workers).n_jobs == 1:
        return starmap(function, calls)
    tasks = [delayed(function)(*call) for call in calls]
    try:
        one_by_one = Parallel(n_jobs=workers, return_as="generator" if ordered else "generator_unordered")
    except ValueError:  # multiprocessing and ray have no such way
        return _in_parts(Parallel(n_jobs=workers), tasks)
    return iter(one_by_one(tasks))


def every_core() -> int | None:
    """Workers for whoever asks for all cores, unless a context of joblib says otherwise."""
    try:
        from joblib import Parallel
        from joblib.parallel import get_active_backend
    except ImportError:
        return None
    untold = get_active_backend()[1] is None and Parallel().n_jobs == 1
    return -1 if untold else None


def _in_parts(parallel: Any, tasks: list[Any]) -> Iterator[Any]:
    size = -(-len(tasks) // _PARTS)
    with parallel:
        for first in range(0, len(tasks), size):
            yield from parallel(tasks[first : first + size])
