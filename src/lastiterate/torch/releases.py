"""What leaves a training before its end: checkpoints that are charged, files that stay inside, and what nothing covers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lastiterate.errors import checked_count, must_be, shown
from lastiterate.facts import Fact, fact
from lastiterate.runs.run import Run

_PARTS = ("charged", "inside", "uncharged")


@dataclass(frozen=True)
class ReleaseEntry:
    """After `step` steps, `what` was written, shown or logged."""

    step: int
    what: str


class Releases:
    """The record of everything released. `charged`: parameters, or values computed from them and public data; accounted for.

    `inside`: seen only by the owners of the data, such as a file to resume from. `uncharged`: computed from the records
    without noise, such as the loss of a batch; no theorem covers it. `written` is called after each entry.
    """

    def __init__(self) -> None:
        self.charged: list[ReleaseEntry] = []
        self.inside: list[ReleaseEntry] = []
        self.uncharged: list[ReleaseEntry] = []
        self.written: Callable[[], None] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Releases) and self.told() == other.told()

    __hash__ = None  # type: ignore[assignment]

    def told(self) -> tuple[tuple[str, int, str], ...]:
        """As a file could hold it."""
        return tuple((name, one.step, one.what) for name in _PARTS for one in getattr(self, name))

    def read(self, told: Iterable[tuple[str, int, str]]) -> None:
        """The entries of a book that was told."""
        parts = {name: getattr(self, name) for name in _PARTS}
        for name, step, what in told:
            parts[name].append(_release(step, what))

    def _write(self, name: str, step: int, what: str) -> None:
        getattr(self, name).append(_release(step, what))
        if self.written is not None:
            self.written()

    def charge(self, step: int, what: str) -> None:
        """Record the release of the parameters after `step` steps, or of values computed from them and public data."""
        self._write("charged", step, what)

    def keep_inside(self, step: int, what: str) -> None:
        """Record something that only the owners of the data see."""
        self._write("inside", step, what)

    def leak(self, step: int, what: str) -> None:
        """Record the release of something computed from the records without noise: a leak."""
        self._write("uncharged", step, what)

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of steps after which parameters were released."""
        return tuple(sorted({one.step for one in self.charged if one.step > 0}))

    def show_iterates_of(self, run: Run) -> bool:
        """Whether an iterate was released beside an average of them: only bounds on every iterate cover both."""
        return bool(self.charged) and not run.released.plain

    @property
    def caveats(self) -> tuple[Fact, ...]:
        """Leaks that void the guarantee."""
        return (fact("leaked", what=_by_name(self.uncharged)),) if self.uncharged else ()

    @property
    def kept(self) -> tuple[Fact, ...]:
        """The assumption that entries in `inside` stay secret."""
        return (fact("kept_inside", what=_by_name(self.inside)),) if self.inside else ()


def _release(step: int, what: str) -> ReleaseEntry:
    if not isinstance(what, str) or not what.strip():
        raise must_be("what", "a text that names the release", f"{shown(what):.60}")
    return ReleaseEntry(checked_count("step", step, least=0), what)


def _by_name(entries: list[ReleaseEntry]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """What was written, shown or logged, each with the steps after which it was."""
    steps: dict[str, list[int]] = {}
    for one in entries:
        steps.setdefault(one.what, []).append(one.step)
    return tuple((what, tuple(found)) for what, found in steps.items())
