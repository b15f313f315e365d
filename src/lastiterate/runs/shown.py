"""A run as a notebook shows it: in one line, and as a small table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lastiterate.curves.adjacency import REPLACE_ONE
from lastiterate.display import card, headline, summary, table
from lastiterate.runs.domains import Unbounded
from lastiterate.runs.per_step import per_step_shown

if TYPE_CHECKING:
    from lastiterate.runs.run import Run


def run_line(run: Run) -> str:
    """What is usual is left out."""
    return summary(
        run,
        f"{run.loss.kind} loss",
        run.batches.described,
        repr(run.length),
        f"step size {per_step_shown(run.step_size)}",
        f"noise {run.noise.described}",
        *(f"{name} {said}" if name else said for name, said in _unusual(run)),
    )


def run_html(run: Run) -> str:
    return card(headline("Run"), table(run_rows(run)))


def run_rows(run: Run) -> list[tuple[str, str]]:
    """The name of an entry, and what it says."""
    clip = "" if run.clip is None else f", clipped at {per_step_shown(run.clip)}"
    decay = f", l2 {run.loss.l2:g}" if run.loss.l2 else ""
    steps = f"{run.steps}" if run.length.epochs is None else f"{run.steps} ({run.length!r})"
    return [
        ("loss", f"{run.loss.described}{clip}{decay}"),
        ("batches", run.batches.described),
        ("steps", steps),
        ("step size", per_step_shown(run.step_size)),
        ("noise", run.noise.described),
        *((name or "protected", said) for name, said in _unusual(run)),
    ]


def _unusual(run: Run) -> Iterator[tuple[str, str]]:
    if not isinstance(run.domain, Unbounded):
        yield "domain", run.domain.described
    if not run.process.update.plain:
        yield "optimizer", run.process.update.described
    if run.prox is not None:
        yield "prox", repr(run.prox)
    if run.weight_decay:
        yield "weight decay", f"{run.weight_decay:g}"
    if run.prior_mu:
        yield "beforehand", f"{run.prior_mu:g}-GDP"
    if run.adjacency is not REPLACE_ONE or run.user_records > 1:
        yield "", str(run.unit)
