"""An accountant for Opacus' registry: it counts the steps that are executed, and accounts for them as a run."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any, ClassVar

from opacus.accountants import IAccountant
from opacus.optimizers import DPOptimizer

from lastiterate.accounting.report import Report
from lastiterate.adapters.opacus.caller import set_up_by_caller
from lastiterate.adapters.opacus.circumstances import Dealer
from lastiterate.adapters.opacus.covered import covered
from lastiterate.adapters.opacus.hidden import COARSEST, Hiding, accounted, squared_straying
from lastiterate.adapters.opacus.loaders import check_batches, dealer_of, watch_of
from lastiterate.adapters.opacus.plan import check_rate, planned_run, with_multiplier
from lastiterate.adapters.opacus.regularity import too_regular
from lastiterate.adapters.opacus.state import Span, StepHistory, history_from
from lastiterate.adapters.opacus.steps import check_batch_size, check_setup, check_step, same, seen_records
from lastiterate.algorithms.batches import Poisson
from lastiterate.algorithms.run import Run
from lastiterate.errors import InvalidInput, LastIterateError, PrivacyLeak, Unavailable
from lastiterate.privacy.gaussian import GaussianDP
from lastiterate.torch.loaders import generator_of
from lastiterate.torch.watched import PassWatch


def accountant_for(run: Run, *, mechanism: str = "lastiterate") -> type[Accountant]:
    """An accountant class for this run, to pass to Opacus' `register_accountant(mechanism, …)`.

    Every step that Opacus executes is compared with the run; a difference raises an error. ε covers the steps executed so
    far; `engine.accountant.report(delta)` is the full report, with its certificate.
    """
    if not isinstance(mechanism, str) or not mechanism:
        raise InvalidInput(
            f"mechanism must be a name to register the accountant by. Got {mechanism!r}.", field="mechanism"
        )
    members = {"described": covered(run), "registered": mechanism, "tried": set()}
    return type("LastIterateAccountant", (Accountant,), members)


class Accountant(IAccountant):  # type: ignore[misc]
    """An Opacus accountant for one run. Create the class with `accountant_for(run)`.

    `described` is the whole run, `run` the part executed so far, with the noise multiplier that was used. Another multiplier
    than the run's is accepted only if `make_private_with_epsilon` has chosen it.
    """

    described: ClassVar[Run]
    registered: ClassVar[str]
    tried: ClassVar[set[float]]

    def __init__(self) -> None:
        self._executed = StepHistory()
        self._planned: tuple[Span, Run] | None = None
        self._optimizer: Callable[[], DPOptimizer | None] | None = None
        self._dealer: Dealer | None = None
        self._watch: PassWatch | None = None
        self._equal_sizes = (-1, 0)
        self._reports: dict[tuple[Any, ...], tuple[Report, Hiding]] = {}

    @classmethod
    def mechanism(cls) -> str:
        return cls.registered

    def __len__(self) -> int:
        """Number of steps executed."""
        return self._executed.steps

    @property
    def history(self) -> list[Span]:
        """(noise multiplier, sample rate, steps) of the steps executed, or of the steps Opacus is planning."""
        return list(self._executed.spans) if self._planned is None else [self._planned[0]]

    @history.setter
    def history(self, value: list[Span]) -> None:
        """Opacus sets this to try noise multipliers; executed steps stay recorded."""
        if len(self):
            raise InvalidInput("history cannot be set once steps were executed. Use a new accountant.", field="history")
        run = planned_run(self.described, value) if value else None
        self._planned = None if run is None else (value[0], run)

    @property
    def run(self) -> Run:
        """The part of the run executed so far."""
        if not len(self):
            raise Unavailable("no step was executed yet, so there is nothing to account for.")
        return self._whole.first(len(self))

    @property
    def _whole(self) -> Run:
        """With the multiplier of the first step, which may have been calibrated."""
        first, usual = self._executed.spans[0][0], self.described.noise.at(0)
        return self.described if same(first, usual) else with_multiplier(self.described, first)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count one more step; its optimiser is assumed to be the run's."""
        self._count(noise_multiplier, sample_rate, None)

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[DPOptimizer], None]:
        """The hook that Opacus calls at every executed step, and not while it accumulates a larger batch."""
        if (found := set_up_by_caller()) is not None:
            optimizer, loader = found
            check_setup(self.described, optimizer)
            check_batches(self.described.batches, loader)
            random = self.described.batches.random or self.described.batches.reshuffled
            self._dealer = Dealer(random, generator_of(dealer_of(loader)))
            self._watch = watch_of(loader, self.described.batches)

        return lambda optimizer: self._seen(optimizer, sample_rate)

    def get_epsilon(self, delta: float, *others: Any, **options: Any) -> float:
        """The smallest provable ε for the steps executed so far, and for what was released before them."""
        if others or options:
            raise InvalidInput(
                f"get_epsilon takes no argument except delta. Got {', '.join(options) or 'more'}.", field="delta"
            )
        if self._planned is not None:
            (multiplier, _, _), run = self._planned
            self.tried.add(multiplier)
            return accounted(run, delta, (), COARSEST)[0].epsilon
        if not len(self) and self._executed.refusal is None:
            return float(GaussianDP(self.described.user_records * self.described.beforehand_mu).epsilon(delta))
        report = self.report(delta)
        for caveat in report.caveats:
            warnings.warn(caveat, PrivacyLeak, stacklevel=2)
        return report.epsilon

    def report(self, delta: float, releases: Iterable[int] = ()) -> Report:
        """The privacy report of the steps executed so far, with the assumptions on Opacus and PyTorch.

        It also covers the weights after the steps in `releases`, if you release them.
        """
        if self._executed.refusal is not None:
            raise Unavailable(f"no guarantee holds for this training: {self._executed.refusal}")
        seen = self._executed.circumstances
        asked = self.run, delta, tuple(releases), seen.rounding
        if asked not in self._reports:
            self._reports = {asked: accounted(*asked)}
        found, hiding = self._reports[asked]
        return replace(found, caveats=seen.caveats, also_assumed=seen.assumed(hiding, self.described.batches.passes))

    def state_dict(self, destination: MutableMapping[str, Any] | None = None) -> MutableMapping[str, Any]:
        """The steps executed so far and their run, for a checkpoint."""
        state: MutableMapping[str, Any] = {} if destination is None else destination
        state.update(self._executed.state(self.described), mechanism=self.mechanism())
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict`; with shuffled or cyclic batches, only from the end of an epoch."""
        self._executed = history_from(state_dict, self.mechanism(), self.described)
        self._planned = self._optimizer = None

    def _seen(self, optimizer: DPOptimizer, sample_rate: float) -> None:
        """A step of an optimiser that can be looked at."""
        rate = sample_rate * optimizer.accumulated_iterations
        self._check_end()
        check_rate(self.described, rate)
        check_step(self.described, optimizer, len(self))
        try:
            self._check_training(optimizer)
        except LastIterateError as error:  # of other steps it is not known that they were not of this kind
            self._executed = replace(self._executed, refusal=str(error))
            raise
        if self._watch is not None:  # what was executed before is the beginning of the run
            self._watch.check(len(self))
        self._count(optimizer.noise_multiplier, rate, optimizer)

    def _check_training(self, optimizer: DPOptimizer) -> None:
        """What makes a description of the steps before this one doubtful, too."""
        if self._optimizer is not None and self._optimizer() is not optimizer:
            raise InvalidInput(
                "an accountant must count one training only. Got steps of two optimisers; use one engine for each.",
                field="optimizer",
            )
        self._optimizer = weakref.ref(optimizer)
        check_batch_size(self.described, optimizer, len(self))
        self._check_irregular(optimizer)

    def _count(self, multiplier: float, rate: float, optimizer: DPOptimizer | None) -> None:
        if self._executed.refusal is not None:
            raise InvalidInput(self._executed.refusal)
        if self._planned is not None:
            raise InvalidInput(
                "history was set to try a noise multiplier. Use a new accountant to count steps.", field="history"
            )
        self._check_end()
        check_rate(self.described, rate)
        self._check_multiplier(multiplier)
        strayed = 0.0 if optimizer is None else squared_straying(self.described, optimizer, len(self), multiplier)
        circumstances = self._executed.circumstances.with_step(optimizer, self._dealer, strayed)
        self._executed = self._executed.with_step(float(multiplier), float(rate), circumstances)

    def _check_end(self) -> None:
        if len(self) >= self.described.steps:
            raise InvalidInput(
                f"the training must stop after the run's {self.described.steps} steps. Got one more. Describe a longer run, "
                "and train again from the beginning.",
                field="steps",
            )

    def _check_multiplier(self, multiplier: float) -> None:
        begun = self._executed.spans
        if not begun and multiplier in self.tried:
            return
        calibrated = begun and not same(begun[0][0], self.described.noise.at(0))
        expected = begun[0][0] if calibrated else self.described.noise.at(len(self))
        if not same(multiplier, expected):
            raise InvalidInput(
                f"noise_multiplier must be that of the run, {expected:g}, at step {len(self) + 1}. Got {multiplier}.",
                field="noise_multiplier",
            )

    def _check_irregular(self, optimizer: DPOptimizer) -> None:
        """Poisson batches change their size; the loader of a user who ignores that of make_private does not."""
        batches, size = self.described.batches, seen_records(optimizer)
        if not isinstance(batches, Poisson) or size is None or optimizer._is_last_step_skipped:
            return
        self._equal_sizes = (size, self._equal_sizes[1] + 1 if self._equal_sizes[0] == size else 1)
        if too_regular(batches.records, batches.rate, self._equal_sizes[1]):
            raise InvalidInput(
                f"batches must be Poisson batches, as in the run. Got {self._equal_sizes[1]} batches of {size} records in a "
                "row. Train with the loader that make_private returns.",
                field="batches",
            )
