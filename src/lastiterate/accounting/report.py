"""The answer: ε, where it comes from, what else was tried, and what has to be believed."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lastiterate.accounting.certificate import certificate_of
from lastiterate.accounting.describe import described, promises
from lastiterate.algorithms.batches import Cyclic, Shuffled
from lastiterate.algorithms.encode import run_to_dict
from lastiterate.algorithms.files import write_text
from lastiterate.algorithms.per_step import each, extremes
from lastiterate.algorithms.run import Run
from lastiterate.plots import draw_comparison, draw_growth
from lastiterate.privacy.best import best
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.privacy.notion import Notion
from lastiterate.privacy.subsampled import subsampled_gaussian
from lastiterate.theorems.assumptions import KindOfBatches
from lastiterate.theorems.theorem import Guarantee, Inapplicable

_WIDTH = 110
_HARDLY_ANY_PROTECTION = 0.5  # of those who look are right, at 1% of false alarms


@dataclass(frozen=True, eq=False)
class Report:
    """What may be claimed of a run. `guarantees` are in order, the least ε first; `epsilons` are theirs, at `delta`."""

    run: Run
    delta: float
    releases: tuple[int, ...]
    guarantees: tuple[Guarantee, ...]
    epsilons: tuple[float, ...]
    inapplicable: tuple[Inapplicable, ...]

    @property
    def best(self) -> Guarantee:
        """The guarantee with the least ε."""
        return self.guarantees[0]

    @property
    def epsilon(self) -> float:
        """The least provable ε at `delta`: an upper bound."""
        return self.epsilons[0]

    @property
    def mu(self) -> float | None:
        """μ, if the best guarantee is Gaussian differential privacy."""
        return self.best.notion.mu if isinstance(self.best.notion, GaussianDP) else None

    @property
    def composition(self) -> float:
        """ε if every iterate were released; ∞ where no theorem says."""
        named = zip(self.guarantees, self.epsilons, strict=True)
        return next((epsilon for one, epsilon in named if one.theorem.name.endswith("/composition")), math.inf)

    @cached_property
    def notion(self) -> Notion:
        """All guarantees together: the best of them at every ε."""
        return best([guarantee.notion for guarantee in self.guarantees])

    def profile(self, epsilons: ArrayLike) -> Any:
        """δ for each ε."""
        return self.notion.delta(epsilons)

    def tradeoff(self, type_i_errors: ArrayLike) -> Any:
        """A lower bound on the type II error of any test, for each type I error."""
        return self.notion.tradeoff(type_i_errors)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the owner of the run has to stand for."""
        return tuple(promises(self.run, self.releases))

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The proof of the best guarantee, for `lastiterate verify`; None if it does not come from a schedule."""
        if self.best.proof is None:
            return None
        return certificate_of(self.run, replace(self.run.process, releases=self.releases), self.best.proof, self.delta)

    def save_certificate(self, path: str | Path) -> None:
        """Write the certificate as JSON."""
        write_text(path, json.dumps(self.certificate) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """The report without its certificate, as JSON could hold it."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mu": self.mu,
            "adjacency": "replace one record",
            "theorem": self.best.theorem.name,
            "citation": self.best.theorem.citation,
            "releases": list(self.releases),
            "guarantees": [
                {"theorem": one.theorem.name, "citation": one.theorem.citation, "epsilon": epsilon}
                for one, epsilon in zip(self.guarantees, self.epsilons, strict=True)
            ],
            "inapplicable": [{"theorem": one.theorem.name, "reasons": list(one.reasons)} for one in self.inapplicable],
            "assumptions": list(self.assumptions),
            "run": run_to_dict(self.run),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def plot(self, path: str | Path | None = None) -> Any:
        """ε against steps, for the best bound and for composition; written to `path` if given. Returns the figure."""
        from lastiterate.accounting.growth import growth

        found, every = growth(self.run, self.delta, self.releases), self.run.batches.per_epoch
        unit = every if every > 1 and all(place % every == 0 for place in found.steps) else 1
        along = [place / unit for place in found.steps]
        name = "epochs" if unit > 1 else "steps"
        what = (
            f"the last iterate and {len(self.releases)} more released"
            if self.releases
            else "only the last iterate released"
        )
        return draw_growth(along, found.released, found.hidden, name, self.delta, what, path)

    def plot_comparison(self, path: str | Path | None = None) -> Any:
        """ε of every theorem that applies, as bars."""
        names = [guarantee.theorem.name for guarantee in self.guarantees]
        return draw_comparison(names, self.epsilons, self.delta, path)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"epsilon = {self.epsilon:.6g} at delta = {self.delta:g} (replace one record)"
        if self.mu is not None:
            yield f"mu = {self.mu:.6g} (Gaussian differential privacy)"
        yield f"by {self.best.theorem.name}: {self.best.theorem.citation}"
        yield from _section("What was run", described(self.run))
        yield from _section("What it means", self._meaning())
        yield from _section("All guarantees", self._table(), indent="")
        yield from _section("What does not apply", self._refusals())
        yield from _section("What you have to stand for", self.assumptions)

    def _meaning(self) -> Iterator[str]:
        if math.isfinite(self.composition) and self.epsilon > 0:
            ratio = self.composition / self.epsilon
            less = f", {ratio:.3g} times as much" if ratio > 1.005 else ", no more than this"
            yield f"releasing every iterate would cost epsilon = {self.composition:.6g}{less}"
        power = 1 - float(self.tradeoff(0.01))
        yield (
            f"whoever wants to tell whether a record was replaced, and is wrong in 1% of the cases where it was not, "
            f"finds out in at most {100 * power:.3g}% of those where it was"
        )
        if power > _HARDLY_ANY_PROTECTION:
            yield "that is hardly any protection for a single record"
        yield from self._advice()
        if (poisson := self.poisson_epsilon) is not None:
            yield (
                f"an accountant for Poisson batches (as in Opacus with a shuffled loader) would print {poisson:.4g}, for "
                "one record added or removed: no such batches were drawn, so this number says nothing about this run"
            )
        if self.delta * self.run.batches.records > 1:
            yield f"delta is larger than 1/records = {1 / self.run.batches.records:.3g}: it allows to betray a record"

    def _advice(self) -> Iterator[str]:
        run = self.run
        if 1 < run.process.contraction < math.inf:
            yield f"steps move iterates apart, which costs privacy: {run.process.reason}"
        left = run.steps % run.batches.per_epoch
        if left and isinstance(run.batches, Cyclic | Shuffled):
            yield (
                f"the run ends {left} step{'s' if left > 1 else ''} into an epoch, whose records are hidden by less noise "
                f"than others; {run.steps - left} or {run.steps - left + run.batches.per_epoch} steps would end with one"
            )

    @cached_property
    def poisson_epsilon(self) -> float | None:
        """What a Poisson accountant would say of passes over the data, where it does not apply."""
        process, batches = self.run.process, self.run.batches
        if not isinstance(batches, Cyclic | Shuffled) or batches.per_epoch == 1:
            return None
        low, high = extremes(each(np.divide, process.sensitivity, process.noise))
        if high > low * (1 + 1e-9):
            return None
        step = subsampled_gaussian(mu=high / 2, inclusion=1 / batches.per_epoch)
        return float(step.compose(len(process)).epsilon(self.delta))

    def _refusals(self) -> Iterator[str]:
        """Theorems about other kinds of batches are only counted."""
        other = [one for one in self.inapplicable if any(isinstance(failed, KindOfBatches) for failed in one.failed)]
        yield from (str(one) for one in self.inapplicable if one not in other)
        if other:
            yield f"{len(other)} theorems are about other kinds of batches"

    def _table(self) -> Iterator[str]:
        for guarantee, epsilon in zip(self.guarantees, self.epsilons, strict=True):
            yield f"  {epsilon:>12.6g}  {guarantee.theorem.name} ({guarantee.theorem.citation})"


def _section(title: str, lines: Any, indent: str = "  - ") -> Iterator[str]:
    first = True
    for line in lines:
        if first:
            yield ""
            yield title
            first = False
        yield from textwrap.wrap(line, _WIDTH, initial_indent=indent, subsequent_indent="    ")
