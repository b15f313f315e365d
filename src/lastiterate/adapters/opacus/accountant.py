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
from lastiterate.adapters.opacus.described import covered
from lastiterate.adapters.opacus.setup import (
    COARSEST,
    HiddenState,
    Setup,
    accounted,
    set_up_by_caller,
    squared_straying,
)
from lastiterate.adapters.opacus.state import Span, StepHistory, check_rate, history_from, planned_run, with_multiplier
from lastiterate.adapters.opacus.steps import check_multiplier, same
from lastiterate.adapters.opacus.trusted import TRUSTED, SeenStep
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.errors import InvalidInput, PrivacyLeak, Unavailable, must_be
from lastiterate.runs.run import Run
from lastiterate.torch.trusted import check_all


def accountant_for(run: Run, *, mechanism: str = "lastiterate") -> type[Accountant]:
    """An accountant class for this run, to pass to Opacus' `register_accountant(mechanism, …)`.

    Every step that Opacus executes is compared with the run; a difference raises an error. ε covers the steps executed so
    far; `engine.accountant.report(delta)` is the full report, with its certificate.
    """
    if not isinstance(mechanism, str) or not mechanism:
        raise must_be("mechanism", "a name to register the accountant by", f"{mechanism!r}")
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
        self._setup: Setup | None = None
        self._reports: dict[tuple[Any, ...], tuple[Report, HiddenState]] = {}

    @classmethod
    def mechanism(cls) -> str:
        return cls.registered

    def __len__(self) -> int:
        """Return the number of steps executed."""
        return self._executed.steps

    @property
    def history(self) -> list[Span]:
        """(noise multiplier, sample rate, steps) of the steps executed, or of the steps Opacus is planning."""
        return list(self._executed.spans) if self._planned is None else [self._planned[0]]

    @history.setter
    def history(self, value: list[Span]) -> None:
        """Opacus sets this to try noise multipliers; executed steps stay recorded."""
        if len(self):
            raise InvalidInput("opacus_history_executed", field="history")
        run = planned_run(self.described, value) if value else None
        self._planned = None if run is None else (value[0], run)

    @property
    def run(self) -> Run:
        """The part of the run executed so far."""
        if not len(self):
            raise Unavailable("opacus_no_step")
        return self._whole.first(len(self))

    @property
    def _whole(self) -> Run:
        """The described run with the multiplier of the first step, which may have been calibrated."""
        first, usual = self._executed.spans[0][0], self.described.noise.at(0)
        return self.described if same(first, usual) else with_multiplier(self.described, first)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count one more step; its optimiser is assumed to be the run's."""
        self._check_goes_on()
        check_rate(self.described, sample_rate)
        check_multiplier(self._needed_multiplier(noise_multiplier), noise_multiplier, len(self))
        self._count(noise_multiplier, sample_rate, None)

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[DPOptimizer], None]:
        """The hook that Opacus calls at every executed step, and not while it accumulates a larger batch."""
        self._setup = set_up_by_caller(self.described) or self._setup
        return lambda optimizer: self._seen(optimizer, sample_rate)

    def get_epsilon(self, delta: float, *others: Any, **options: Any) -> float:
        """The smallest provable ε for the steps executed so far, and for what was released before them."""
        if others or options:
            raise InvalidInput("opacus_epsilon_arguments", field="delta", got=", ".join(options) or "more")
        if self._planned is not None:
            (multiplier, _, _), run = self._planned
            self.tried.add(multiplier)
            return accounted(run, delta, (), COARSEST)[0].epsilon
        if not len(self):
            return float(GaussianDP(self.described.user_records * self.described.prior_mu).epsilon(delta))
        report = self.report(delta)
        for caveat in report.caveats:
            warnings.warn(str(caveat), PrivacyLeak, stacklevel=2)
        return report.epsilon

    def report(self, delta: float, releases: Iterable[int] = ()) -> Report:
        """The privacy report of the steps executed so far, with the assumptions on Opacus and PyTorch.

        It also covers the weights after the steps in `releases`, if you release them.
        """
        seen = self._executed.circumstances
        asked = self.run, delta, tuple(releases), seen.rounding
        if asked not in self._reports:
            self._reports = {asked: accounted(*asked)}
        found, hiding = self._reports[asked]
        return replace(found, caveats=seen.caveats, also_assumed=seen.assumed(hiding), basis=seen.basis)

    def state_dict(self, destination: MutableMapping[str, Any] | None = None) -> MutableMapping[str, Any]:
        """The steps executed so far and their run, for a checkpoint."""
        state: MutableMapping[str, Any] = {} if destination is None else destination
        state.update(self._executed.state(self.described), mechanism=self.mechanism())
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict`; with shuffled or cyclic batches, only from the end of an epoch.

        Only a new accountant may: steps that were executed stay counted.
        """
        if len(self):
            raise InvalidInput("opacus_state_late", field="state_dict", steps=len(self))
        self._executed = history_from(state_dict, self.mechanism(), self.described)
        self._planned = self._optimizer = None

    def _seen(self, optimizer: DPOptimizer, sample_rate: float) -> None:
        """Count a step of a visible optimiser, after all checks of what is trusted."""
        self._check_goes_on()
        first = None if self._optimizer is None else self._optimizer()
        multiplier, rate = optimizer.noise_multiplier, sample_rate * optimizer.accumulated_iterations
        needed = self._needed_multiplier(multiplier)
        step = SeenStep(self.described, len(self), optimizer, first, rate, needed, self._setup)
        check_all(TRUSTED, step)
        self._optimizer = weakref.ref(optimizer)
        self._count(multiplier, rate, optimizer)

    def _count(self, multiplier: float, rate: float, optimizer: DPOptimizer | None) -> None:
        strayed = 0.0 if optimizer is None else squared_straying(self.described, optimizer, len(self), multiplier)
        circumstances = self._executed.circumstances.with_step(optimizer, self._setup, strayed)
        self._executed = self._executed.with_step(float(multiplier), float(rate), circumstances)

    def _check_goes_on(self) -> None:
        if self._planned is not None:
            raise InvalidInput("opacus_history_planned", field="history")
        if len(self) >= self.described.steps:
            raise InvalidInput("opacus_run_over", field="steps", steps=self.described.steps)

    def _needed_multiplier(self, multiplier: float) -> float:
        """Return the noise multiplier that the next step must have: this one, if all steps may be calibrated to it."""
        begun = self._executed.spans
        if not begun and multiplier in self.tried:
            return multiplier
        calibrated = begun and not same(begun[0][0], self.described.noise.at(0))
        return begun[0][0] if calibrated else self.described.noise.at(len(self))
