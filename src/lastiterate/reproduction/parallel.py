"""Many jobs on all cores, where joblib is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Job = TypeVar("Job")
Answer = TypeVar("Answer")


def in_parallel(function: Callable[[Job], Answer], jobs: Sequence[Job], workers: int = -1) -> Iterator[Answer]:
    """The answers as they come, in any order."""
    try:
        from joblib import Parallel, delayed
    except ImportError:
        workers = 1
    if workers == 1 or len(jobs) < 2:
        return map(function, jobs)
    tasks = (delayed(function)(job) for job in jobs)
    return iter(Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)(tasks))
