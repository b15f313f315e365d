"""Facts: what a guarantee rests on, what is wrong with an execution, each as a code and its numbers.

Certificates, models, checkpoints and budgets hold facts. `report/english` makes the sentences, which may change on any
day: nothing that is written or compared depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from lastiterate.errors import InvalidInput, must_be, shown

_LONGEST = 400  # characters of a text in a file


class Basis(Enum):
    """Who answers for an assumption."""

    PROMISED = "promised"
    """Only the owner of the data can know it."""
    CHECKED = "checked"
    """A program compared it with the data or with what was executed."""
    ENFORCED = "enforced"
    """lastiterate itself executed the run so."""


@dataclass(frozen=True)
class Fact:
    """A code of `KINDS` with its values; `str` is its sentence in English."""

    code: str
    values: tuple[tuple[str, Value], ...] = ()
    basis: Basis = Basis.PROMISED

    def __str__(self) -> str:
        from lastiterate.report.english import sentence

        return sentence(self.code, dict(self.values))

    def __repr__(self) -> str:
        return f"{self.code}({', '.join(f'{name}={value!r}' for name, value in self.values)})"

    @property
    def stated(self) -> Fact:
        """The fact as a promise, whoever answers for it."""
        return self.on(Basis.PROMISED)

    def on(self, basis: Basis) -> Fact:
        """Return the fact with `basis` as the one who answers for it."""
        return replace(self, basis=basis)

    def to_dict(self) -> dict[str, Any]:
        """The fact as JSON holds it: its code, its numbers, and who stands for it if that is not its owner."""
        values = {name: _as_json(value) for name, value in self.values}
        basis = {} if self.basis is Basis.PROMISED else {"basis": self.basis.value}
        return {"code": self.code, **values, **basis}


Value = bool | int | float | str | tuple[int, ...] | tuple[tuple[str, tuple[int, ...]], ...] | Fact | None


def _as_json(value: Any) -> Any:
    """A value as JSON holds it: tuples become lists, at any depth, and a fact inside a fact is written as one."""
    if isinstance(value, Fact):
        return value.to_dict()
    return [_as_json(one) for one in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class FactKind:
    """A kind of fact by an example of its values; `most` is the strongest basis that it may have."""

    values: Mapping[str, Value]
    most: Basis = Basis.PROMISED


def _kind(most: Basis = Basis.PROMISED, /, **values: Value) -> FactKind:
    return FactKind(values, most)


_BECAUSE = Fact("smoothness_unknown")
_OPTIMIZER = Fact("sgd", (("momentum", 0.9), ("nesterov", False), ("dampening", 0.0)))
_ENFORCED, _CHECKED = Basis.ENFORCED, Basis.CHECKED

KINDS: dict[str, FactKind] = {
    # The privacy unit: between which data sets, or runs, nobody can tell.
    "neighbours": _kind(adjacency="replace_one", user_records=1, records=()),
    "forgotten": _kind(records=1, replaced=False, adaptive=False),
    # What is released.
    "only_released": _kind(released="last", parameter=None, after=(), beforehand=False),
    "user_records": _kind(at_most=3),
    "one_person": _kind(records=(0, 4)),
    "released_before": _kind(mu=0.3),
    "kept_inside": _kind(what=(("resume.pt", (10, 20)),)),
    "every_iterate_released": _kind(),
    # How a run is executed.
    "start_independent": _kind(_ENFORCED, beforehand=False),
    "batches": _kind(_ENFORCED, kind="shuffled"),
    "smaller_batch_divisor": _kind(_ENFORCED, divided_by=200, own_size=False),
    "noise": _kind(_ENFORCED),
    "projected": _kind(_ENFORCED),
    "l2_in_full": _kind(_ENFORCED, after_clipping=True),
    "start_norm": _kind(_ENFORCED, at_most=0.0),
    "record_unchanged": _kind(_ENFORCED),
    "optimizer_sees_noisy_gradients": _kind(_ENFORCED),
    "gradients_bounded_everywhere": _kind(_ENFORCED),
    "batches_not_adaptive": _kind(_ENFORCED),
    "schedules_public": _kind(),
    "no_batch_statistics": _kind(_ENFORCED),
    # The loss of a record.
    "clipped": _kind(_ENFORCED, least=0.5, most=0.5, per="record", classes=0),
    "gradient_change": _kind(_ENFORCED, at_most=2.0),
    "gradient_norm": _kind(_ENFORCED, at_most=1.0, before_clipping=False),
    "feature_norm": _kind(_ENFORCED, at_most=1.0, intercept=True),
    "residual": _kind(at_most=2.0),
    "pull_limit": _kind(_ENFORCED, together=0.5, each=0.125),
    "hessian": _kind(low=0.0, high=1.0),
    "differentiable": _kind(),
    "convex": _kind(modulus=0.0, of="record", before_clipping=False),
    # An execution by other libraries, or by a loop of one's own.
    "record_gradients_separate": _kind(_CHECKED),
    "collate_separate": _kind(_CHECKED, compared="once"),
    "loader_to_model": _kind(),
    "generator_unpredictable": _kind(drew="order"),
    "exact_arithmetic": _kind(precision="float32", hidden="unused"),
    "criterion_reduction": _kind(),
    "resumed_as_saved": _kind(),
    "loader_unseen": _kind(),
    "steps_unseen": _kind(count=3),
    "trainer_seed_unused": _kind(seed="42"),
    "durations_tell_nothing": _kind(),
    "statistics_public": _kind(),
    "loop_follows_run": _kind(),
    "nothing_outside_logs": _kind(),
    "metrics_public": _kind(),
    # Theorems, selections, forgetting, budgets.
    "theorem_true": _kind(theorem="mine/full-batch", citation="my notes"),
    "trials_drawn": _kind(law="geometric", mean=10.0, shape=None),
    "setting_drawn": _kind(settings=4),
    "trials_fresh": _kind(),
    "only_best_trial_released": _kind(),
    "score_public": _kind(),
    "stated_gdp": _kind(mu=0.5),
    "same_start_and_settings": _kind(steps=100, further=20, records=1, replaced=False, earlier=0, after=()),
    "separate_run": _kind(steps=100, further=20, records=1, replaced=False, earlier=0),
    "models_covered": _kind(earlier="not covered"),
    "removed_unused": _kind(),
    "requests_independent": _kind(),
    "nothing_released_meanwhile": _kind(),
    "ledger_complete": _kind(),
    "releases_adaptive": _kind(adaptive=True),
    "stated_by_owner": _kind(entries=(4,)),
    # Caveats: what is known to be wrong with an execution.
    "noise_seeded": _kind(generator="lastiterate"),
    "order_seeded": _kind(),
    "leaked": _kind(what=(("train_loss", (1, 2)),)),
    "stopped_early": _kind(taken=10, planned=30),
    "trace_kept": _kind(),
    "called_by": _kind(callers="GridSearchCV"),
    "learnt_before": _kind(steps="StandardScaler"),
    "classes_read": _kind(count=3),
    "target_bound_read": _kind(bound=2.5),
    "feature_norm_read": _kind(norm=2.5),
    "random_state_set": _kind(),
    "delta_from_records": _kind(records=100, delta=0.001),
    "records_counted": _kind(records=100),
    "best_of_trials": _kind(),
    "of_one_person": _kind(),
    # Why a theorem does not apply.
    "own": _kind(text="needs at least 500 steps"),
    "no_finite_bound": _kind(because=_BECAUSE),
    "lacks": _kind(what="bounded_domain"),
    "not_covered": _kind(feature="full_batches"),
    "update_not_covered": _kind(
        feature="momentum",
        optimizer=_OPTIMIZER,
        released="last",
        parameter=None,
    ),
    "adjacency_not_proved": _kind(adjacency="zero_out"),
    "unknown_field": _kind(field="temperature"),
    "steps_change": _kind(quantity="lipschitz", least=0.9, most=1.0),
    "releases_more": _kind(checkpoints=3),
    "release_inside_epoch": _kind(every=4, step=6),
    "epoch_unfinished": _kind(every=4, steps=10, left=2),
    "not_contracting": _kind(because=_BECAUSE),
    "not_nonexpansive": _kind(because=_BECAUSE),
    "not_growing": _kind(lipschitz=0.9),
    "lipschitz_infinite": _kind(because=_BECAUSE),
    "grows_within_epoch": _kind(times_noise=1e3, because=_BECAUSE),
    "distance_unbounded": _kind(because=_BECAUSE),
    "blocks_hide_too_little": _kind(diameter=10.0, at_most=40.0, noise=0.1, because=_BECAUSE),
    "iterates_too_far_apart": _kind(at_most=30.0, times_noise=45.0),
    "domain_too_wide": _kind(at_most=16.0, times_noise=20.0),
    "domain_too_small": _kind(times_noise=2.0),
    "used_again": _kind(every=4, steps=5),
    "used_too_rarely": _kind(needed=50.0, turns=20),
    "too_many_steps": _kind(at_most=200_000, steps=1_000_000),
    "too_much_work": _kind(times="batches", at_most=1e6, needed=2e6),
    "too_many_batches": _kind(at_most=24, batches=100),
    "too_many_batches_averaged": _kind(at_most=24, batches=100),
    "too_many_batches_on_domain": _kind(at_most=24, batches=100),
    "not_several_batches": _kind(),
    "not_two_batches": _kind(),
    "places_not_comparable": _kind(at_most=24, batches=100, lipschitz=1.1),
    "steps_not_alike": _kind(),
    "steps_not_alike_if_new": _kind(),
    "poisson_replaced": _kind(),
    "batches_not_for": _kind(adjacency="replace_one", batches="poisson"),
    "record_in_every_step": _kind(),
    "record_gradients_unbounded": _kind(),
    "neither_clipped_nor_smooth": _kind(),
    "decay_too_strong": _kind(factor=1.5),
    "not_prepayable": _kind(because=_BECAUSE),
    "plain_update": _kind(),
    "not_linear": _kind(because=_BECAUSE),
    "hardly_protected": _kind(at_most=8.0, mu=20.0),
    "sensitivity_too_large": _kind(at_most=8.0, times_noise=20.0),
    "sensitivity_too_small": _kind(times_noise=1e-4),
    "difference_lost": _kind(kept=0.2),
    # Why a constant of a run is unknown, or large: inside a reason.
    "smoothness_unknown": _kind(),
    "loss_not_smooth": _kind(),
    "push_unknown": _kind(),
    "lipschitz_constant": _kind(
        step_size=0.5,
        curvature=0.0,
        smoothness=1.0,
        clipping=False,
        decay=0.0,
        largest_share=1.0,
        unusual_apart=False,
        lipschitz=1.0,
        step_size_below=None,
    ),
    "run_projects": _kind(),
    "run_has_prox": _kind(),
    "gradients_unbounded": _kind(),
    "clip_changes": _kind(),
    "dimension_unknown": _kind(),
    "decay_above_one": _kind(product=1.5),
    "step_size_too_large": _kind(step_size=3.0),
    "step_size_changes": _kind(),
    "step_size_gains_nothing": _kind(product=20.0),
    "plain_steps": _kind(),
    "optimizer_not_linear": _kind(optimizer=_OPTIMIZER),
    "steps_count_as_worst": _kind(),
    "start_forgotten": _kind(),
    "user_in_one_batch": _kind(),
    "records_push_at_once": _kind(),
    "records_forgotten": _kind(),
    # Optimisers: inside a reason.
    "sgd": _kind(momentum=0.9, nesterov=False, dampening=0.0),
    "adam": _kind(beta1=0.9, beta2=0.999),
    "adamw": _kind(beta1=0.9, beta2=0.999),
    "optimizer_named": _kind(name="Lion"),
}
"""Every kind of fact, with an example of its values."""


def fact(code: str, /, **values: Value) -> Fact:
    """A fact of a kind that is listed, with all of its values."""
    if set(values) != set(KINDS[code].values):
        raise TypeError(f"{code} takes {', '.join(KINDS[code].values)}, not {', '.join(values)}")
    return Fact(code, tuple((name, values[name]) for name in KINDS[code].values))


def own(text: str) -> Fact:
    """A fact in somebody's own words: why a theorem outside the library refuses, or what a process made by hand is."""
    return fact("own", text=text)


def facts_to_json(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    """Return the facts as JSON holds them."""
    return [one.to_dict() for one in facts]


def fact_from_json(content: Any) -> Fact:
    """A fact that was read; an error where it is of no known kind, or its values are not those of its kind."""
    if not isinstance(content, dict) or content.get("code") not in KINDS:
        raise InvalidInput("fact_unknown", field="facts", got=f"{shown(content):.60}")
    kind, given = (
        KINDS[content["code"]],
        {name: value for name, value in content.items() if name not in ("code", "basis")},
    )
    values = {name: _read(value) for name, value in given.items()}
    if set(values) != set(kind.values) or not all(_like(values[name], kind.values[name]) for name in values):
        wanted = ", ".join(kind.values) or "none"
        raise InvalidInput("fact_values", field="facts", of=content["code"], wanted=wanted, got=f"{shown(given):.60}")
    basis = Basis(content.get("basis", Basis.PROMISED.value))
    if _STRENGTH.index(basis) > _STRENGTH.index(kind.most):
        raise InvalidInput("fact_basis", field="facts", of=content["code"], basis=basis.value)
    found = fact(content["code"], **values).on(basis)
    try:
        str(found)
    except (
        LookupError,
        TypeError,
        ValueError,
    ) as error:  # a text that is none of those of its kind, or a list of others
        raise InvalidInput("fact_not_of_kind", field="facts", of=content["code"], got=f"{shown(given):.60}") from error
    return found


_STRENGTH = (Basis.PROMISED, Basis.CHECKED, Basis.ENFORCED)


def facts_from_json(content: Any) -> tuple[Fact, ...]:
    """Return the facts in a list from JSON."""
    if not isinstance(content, list):
        raise must_be("facts", "a list", f"{shown(content):.60}")
    return tuple(fact_from_json(one) for one in content)


def _read(value: Any) -> Any:
    """A value as JSON holds it: lists become tuples, and what is written as a fact becomes one."""
    if isinstance(value, dict):
        return fact_from_json(value)
    return tuple(_read(one) for one in value) if isinstance(value, list) else value


def _like(value: Any, example: Value) -> bool:
    """Whether a value that was read is one of the kind of the example: a flag, a number, a short text, a list of these."""
    match example:
        case bool():
            return isinstance(value, bool)
        case str():
            return isinstance(value, str) and value.isprintable() and len(value) <= _LONGEST
        case Fact():
            return isinstance(value, Fact)
        case tuple():
            return isinstance(value, tuple) and all(_plain(one) for one in value)
        case int():
            return _whole(value)
        case None:
            return value is None or _finite(value)
    return _finite(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _finite(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def _plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_plain(one) for one in value)
    if isinstance(value, str):
        return value.isprintable() and len(value) <= _LONGEST
    return _whole(value)
