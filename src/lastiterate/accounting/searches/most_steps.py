"""The longest run, in whole epochs for batches in passes."""

from __future__ import annotations

from lastiterate.accounting.searches.by_theorem import Meets
from lastiterate.errors import Unavailable
from lastiterate.runs.run import Run


def longest_run(run: Run, meets_target: Meets, most_steps: int) -> Run:
    unit = run.batches.per_epoch if run.batches.passes else 1
    longest = _longest(run, most_steps)

    def meets(count: int) -> bool:
        return meets_target(run.first(count * unit))

    if longest < unit:
        raise Unavailable("most_steps_below_epoch", field="most_steps", per_epoch=unit, got=f"{longest}")
    if not meets(1):
        raise Unavailable("no_steps_meet", steps=unit, epsilon=meets_target.epsilon)
    low, high = 1, 2
    while high * unit <= longest and meets(high):
        low, high = high, 2 * high
    high = min(high, longest // unit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return run.first(low * unit)


def _longest(run: Run, most_steps: int) -> int:
    """A run with one entry per step cannot be made longer."""
    per_step = [run.step_size, getattr(run.noise, run.noise.size), run.clip]
    return min([most_steps, *(len(value) for value in per_step if isinstance(value, tuple))])
