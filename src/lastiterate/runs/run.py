"""A run, described in the words of the code that executed it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.display import card, headline, summary, table
from lastiterate.errors import (
    NON_NEGATIVE,
    POSITIVE,
    Interval,
    InvalidInput,
    checked_choice,
    checked_count,
    checked_number,
    must_be,
    shown,
)
from lastiterate.facts import Fact, fact
from lastiterate.numerics.arrays import Floats
from lastiterate.runs.batches import Batches, Sizes
from lastiterate.runs.domains import Domain, Prox, Unbounded
from lastiterate.runs.losses import Loss
from lastiterate.runs.named import names_arguments
from lastiterate.runs.noise import EXACT, Arithmetic, Noise, expected_arithmetic
from lastiterate.runs.optimizers import LAST, Optimizer, Released, optimizer_of
from lastiterate.runs.per_step import (
    Epochs,
    Length,
    PerStep,
    at_step,
    checked_per_step,
    continued,
    extremes,
    first_steps,
    is_constant,
    length_of,
    over_run,
    per_step_shown,
)
from lastiterate.runs.process import LONG, Process
from lastiterate.runs.quantities import Quantities

_LEAST, _MOST = 1e-100, 1e100
_BEFOREHAND = Interval(0.0, _MOST, low_included=True, high_included=True)


@partial(names_arguments, code="not_of_run")
@dataclass(frozen=True, init=False)
class Run:
    """x ← Π(prox((1 − step_size·weight_decay)·x − step_size·(mean gradient of the batch) + noise)), `steps` times.

    - `step_size`, the size of the noise and the clip: one number, one per step, or a schedule such as li.cosine(0.1).
    - `weight_decay`: that of torch.optim.SGD; an l2 term of the loss does the same.
    - `optimizer`: li.SGD(momentum=0.9), li.Adam(), or the name of any other, which gets the noisy gradients.
    - `released`: the last iterate, or an average of iterates such as li.EMA(decay=0.99).
    - `adjacency`: which data sets are neighbours: `li.REPLACE_ONE`, `li.ZERO_OUT` (one record contributes nothing) or, with
      li.Poisson and li.BallsAndBins, `li.ADD_OR_REMOVE_ONE`; or their names, such as "zero_out".
    - `start_norm`: the largest norm of the first iterate, which must not depend on the data. It matters only with weight
      decay.
    - `arithmetic`: what floating-point rounding adds to ε; `li.train` states it in the run that it returns.
    - `prior_mu`: what was released about the same records before training, such as private means and scales of
      features, is mu-GDP under `adjacency` with this mu (of several, the root of the sum of squares). Training may depend on
      it, and the guarantee covers both together.
    - `user_records`: the largest number of records of one user, anywhere in the data. The guarantee is then for a whole
      user: all these records may be replaced, zeroed out, or added or removed. `prior_mu` stays that of one record.
    """

    loss: Loss
    batches: Batches
    step_size: PerStep
    noise: Noise
    length: Length
    domain: Domain
    prox: Prox | None
    weight_decay: float
    arithmetic: Arithmetic
    start_norm: float
    adjacency: Adjacency
    optimizer: Optimizer
    released: Released
    prior_mu: float
    user_records: int

    def __init__(
        self,
        loss: Loss,
        batches: Batches,
        step_size: Any,
        noise: Noise,
        steps: int | Epochs | None = None,
        domain: Domain | None = None,
        prox: Prox | None = None,
        weight_decay: float = 0.0,
        arithmetic: Arithmetic = EXACT,
        start_norm: float = 0.0,
        adjacency: Adjacency | str = REPLACE_ONE,
        optimizer: Optimizer | str | None = None,
        released: Released = LAST,
        prior_mu: float = 0.0,
        length: Length | None = None,
        user_records: int = 1,
    ) -> None:
        _checked_kind("loss", loss, Loss, "li.losses.logistic(feature_norm=1.0)")
        _checked_kind("batches", batches, Batches, "li.Shuffled(records=60_000, batch_size=256)")
        _checked_kind("noise", noise, Noise, "li.OnMeanGradient(std=0.1)")
        domain = Unbounded() if domain is None else domain
        _checked_kind("domain", domain, Domain, "li.Ball(radius=1.0)")
        if prox is not None:
            _checked_kind("prox", prox, Prox, "li.parts.L1(weight=0.1)")
        _checked_kind("arithmetic", arithmetic, Arithmetic, "that of a run of li.train")
        _checked_kind("released", released, Released, "li.LAST or li.EMA(decay=0.99)")
        length = _length(steps, length, batches.per_epoch)
        sizes, span = checked_per_step("step_size", step_size, POSITIVE), (length.steps, batches.per_epoch)
        values = {
            "loss": loss if loss.clip is None else replace(loss, clip=over_run("clip", loss.clip, *span)),
            "batches": batches,
            "step_size": over_run("step_size", sizes, *span),
            "noise": noise.over(*span),
            "length": length,
            "domain": domain,
            "prox": prox,
            "weight_decay": checked_number("weight_decay", weight_decay, NON_NEGATIVE),
            "arithmetic": arithmetic,
            "start_norm": checked_number("start_norm", start_norm, NON_NEGATIVE),
            "optimizer": optimizer_of(optimizer),
            "released": released,
            "adjacency": checked_choice("adjacency", adjacency, Adjacency),
            "prior_mu": checked_number("prior_mu", prior_mu, _BEFOREHAND),
            "user_records": checked_count("user_records", user_records),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_clip()
        self._check_mean()
        self._check_adjacency()
        self._check_user()
        for name in ("sensitivity", "noise"):
            _checked_range(name, getattr(self.process, name))  # lists of the wrong length are refused here, too

    if TYPE_CHECKING:
        steps: int  # what `replace` may be given
    else:

        @property
        def steps(self):
            return self.length.steps

    @cached_property
    def process(self) -> Process:
        """The run as theorems see it."""
        worst = self._process_of(self.batches.sizes_under(self.noise.on_sum))
        if self.batches.constant_size or self.batches.sizes == self.batches.usual_sizes(0.0):
            return worst
        usual = lru_cache(maxsize=8)(lambda rare: self._process_of(self.batches.usual_sizes(rare)))
        return replace(worst, usual=usual)

    def _process_of(self, sizes: Sizes) -> Process:
        """Return the process of the run if its batches have these sizes; what overflows is refused, or infinite.

        A smaller last batch makes steps differ, also in runs of more steps than could be stored: there the first epoch
        stands for all.
        """
        if self.batches.uneven and self.batches.per_epoch <= LONG < self.steps and self._alike:
            return replace(self, steps=self.batches.per_epoch)._process_of(sizes).repeated(self.steps)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return Quantities(self, sizes).process

    @property
    def _alike(self) -> bool:
        """Whether nothing was given as one number for each step."""
        given = (self.step_size, self.clip, *vars(self.noise).values())
        return all(one is None or isinstance(one, float | int) for one in given)

    def __repr__(self) -> str:
        return run_line(self)

    def _repr_html_(self) -> str:
        return run_html(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without cached values, since numbers stored once for all steps would be pickled in full."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def clip(self) -> PerStep | None:
        """The clipping norm of gradients; noise on the gradient sum implies one."""
        return self.loss.clip if self.noise.implied_clip is None else self.noise.implied_clip

    @property
    def expected_arithmetic(self) -> Arithmetic:
        """The most that the rounding of `li.train` may add, whatever the precision of the data."""
        bounded = self.clip is not None or math.isfinite(self.loss.gradient_bound)
        replaces, linear = self.adjacency.replaces, self.loss.linear
        return expected_arithmetic(self.batches.largest, self.batches.random, linear, bounded, replaces)

    @property
    def unit(self) -> Fact:
        """The privacy unit: one record, or all records of a user."""
        return self.adjacency.unit(self.user_records)

    @property
    def convex(self) -> bool:
        """Whether every per-record loss, after any clipping, is convex."""
        return self.loss.convex_if(clipped=self.clip is not None)

    def with_noise(self, factor: float) -> Run:
        """Return the run with its noise scaled by this factor."""
        return replace(self, noise=self.noise.scaled(checked_number("factor", factor, POSITIVE)))

    def first(self, steps: int) -> Run:
        """The run cut to its first `steps`; if nothing is given per step, it may also become longer."""
        count = checked_count("steps", steps)
        loss = self.loss if self.loss.clip is None else replace(self.loss, clip=first_steps(self.loss.clip, count))
        sizes = first_steps(self.step_size, count)
        length = self.length.cut(count, self.batches.per_epoch)
        return replace(self, loss=loss, step_size=sizes, noise=self.noise.first(count), length=length)

    def continued(self, more: int) -> Run:
        """The run with `more` steps, each like the last one."""
        count = checked_count("more", more, least=0)
        loss = self.loss if self.loss.clip is None else replace(self.loss, clip=continued(self.loss.clip, count))
        length = self.length.cut(self.steps + count, self.batches.per_epoch)
        sizes, noise = continued(self.step_size, count), self.noise.continued(count)
        return replace(self, loss=loss, step_size=sizes, noise=noise, length=length)

    @property
    def decay(self) -> float:
        """The l2 term of the loss plus the weight decay."""
        return self.loss.l2 + self.weight_decay

    def divisor_of(self, count: int) -> float:
        """The divisor of the gradient sum of a batch of `count` records; fixed if the noise is on the sum."""
        return self.batches.divisor if self.noise.on_sum else self.batches.divisor_of(count)

    def reason(self, lipschitz: Floats, sizes: Sizes) -> Fact:
        """Return the source of the largest Lipschitz constant as a fact, in the numbers of the run."""
        if not math.isfinite(self.loss.smoothness):
            return fact("smoothness_unknown")
        worst = 0 if is_constant(lipschitz) else int(np.argmax(lipschitz))
        size = at_step(self.step_size, worst)
        loss, share = self.loss, sizes.largest_share
        limit = 2 / (loss.smoothness * share + self.decay or math.inf)
        return fact(
            "lipschitz_constant",
            step_size=size,
            curvature=loss.curvature,
            smoothness=loss.smoothness,
            clipping=self.clip is not None and not loss.keeps_convexity,
            decay=self.decay,
            largest_share=share,
            unusual_apart=sizes != self.batches.sizes,
            lipschitz=float(lipschitz[worst]),
            step_size_below=limit if self.convex and size > limit > 0 else None,
        )

    def _check_clip(self) -> None:
        implied = self.noise.implied_clip
        if implied is not None and self.loss.clip not in (None, implied):
            raise InvalidInput("two_clips", field="clip", in_loss=self.loss.clip, in_noise=implied)

    def _check_mean(self) -> None:
        if self.noise.on_sum and self.batches.own_mean:
            kinds = {"noise": type(self.noise).__name__, "batches": type(self.batches).__name__}
            raise InvalidInput("no_fixed_divisor", field="noise", **kinds)

    def _check_adjacency(self) -> None:
        if self.adjacency not in self.batches.adjacencies:
            code, batches = self.batches.other_neighbours, self.batches.called
            raise InvalidInput(code, field="adjacency", batches=batches, adjacency=self.adjacency)
        if not self.adjacency.replaces and self.clip is None and math.isinf(self.loss.gradient_bound):
            raise InvalidInput("no_gradient_norm", field="adjacency", adjacency=self.adjacency)

    def _check_user(self) -> None:
        if self.user_records > self.batches.records:
            raise must_be("user_records", f"at most records = {self.batches.records}", f"{self.user_records}")


def _length(steps: int | Epochs | None, before: Length | None, per_epoch: int) -> Length:
    """Return the length of a run; if only other settings changed, that of `before`, in passes if described so."""
    if steps is not None:
        return length_of(steps, per_epoch)
    if before is None:
        raise InvalidInput("steps_missing", field="steps")
    return before.with_batches(per_epoch)


def _checked_range(name: str, values: Floats) -> None:
    """Raise an error if values are so far from 1 that their products leave the range of floats."""
    low, high = extremes(values)
    if not _LEAST <= low <= high <= _MOST:
        raise InvalidInput("unit_of_length", field=name, least=_LEAST, most=_MOST, got=f"{low:g} to {high:g}")


def _checked_kind(name: str, value: Any, kind: type, example: str) -> None:
    if not isinstance(value, kind):
        raise must_be(name, f"a {kind.__name__}, such as {example}", f"{shown(value):.60}")


def checked_run(run: Any) -> Run:
    if not isinstance(run, Run):
        raise InvalidInput("not_a_run", field="run", got=f"{shown(run):.60}")
    return run


# Representations: one line, and a small table.


def run_line(run: Run) -> str:
    """Return a one-line description of the run that leaves out what is usual."""
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
    """Return the rows of a table of the run: the name of an entry, and what it says."""
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
