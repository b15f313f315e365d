"""English for theorems that do not apply: what each of them needs of a run, and why it refuses one."""

from __future__ import annotations

from collections.abc import Iterable

from lastiterate.facts import Fact
from lastiterate.report.english.claims import released as released_by
from lastiterate.report.english.words import SENTENCES, Sentence, counted

_MILLION = 1_000_000


def name(code: str) -> str:
    """Return the name of a feature of runs, for tables."""
    return _FEATURES[code][0]


def statement(code: str) -> str:
    """Return what a theorem needs of a run: an assumption, or the absence of a feature."""
    return _FEATURES[code][1] if code in _FEATURES else _ASSUMPTIONS[code]


def sentences(reasons: Iterable[Fact]) -> tuple[str, ...]:
    """Return the reasons of a refusal in words: first all that the run lacks, then each of the others."""
    given = list(reasons)
    lacking = [str(dict(one.values)["what"]) for one in given if one.code == "lacks"]
    return (*([_lacking(lacking)] if lacking else []), *(str(one) for one in given if one.code != "lacks"))


def one_text(reasons: Iterable[Fact]) -> str:
    """Return the reasons as one text after a colon, from a small letter and without a full stop at the end."""
    first, *others = sentences(reasons)
    return ". ".join([first, *(other[:1].upper() + other[1:] for other in others)])


# What runs may have: what tables call it, and what a theorem needs that does not cover it.

_BATCHES = {
    "full_batches": "full batches",
    "fixed_order": "batches in a fixed order",
    "one_order": "shuffled batches with one order for all epochs",
    "new_orders": "shuffled batches with a new order each epoch",
    "own_places": "balls and bins",
    "random_batches": "random batches, drawn independently at each step",
}
_ADJACENCIES = {
    "replace_one": "replace one record",
    "zero_out": "zero out one record",
    "add_or_remove_one": "add or remove one record",
}


def _constant(adjacency: str) -> str:
    """Return the name of an adjacency in Python."""
    return f"li.{adjacency.upper()}"


_FEATURES: dict[str, tuple[str, str]] = {
    **{code: (batches, f"no {batches}") for code, batches in _BATCHES.items()},
    **{code: (said, f"another adjacency than {_constant(code)}") for code, said in _ADJACENCIES.items()},
    "uneven_batches": ("a smaller last batch", "all batches of an epoch are equally large"),
    "random_sizes": ("batches of random size", "batches have a fixed size"),
    "changing_steps": ("steps that change", "all steps are identical"),
    "checkpoints": ("checkpoints", "only the last iterate is released"),
    "checkpoints_inside": ("checkpoints inside an epoch", "releases at the end of epochs"),
    "unfinished_epoch": ("an unfinished epoch", "the run consists of whole epochs"),
    "projection": ("a bounded domain", "no projection"),
    "prox": ("a proximal map", "no proximal map"),
    "weight_decay": ("weight decay or an l2 term", "no weight decay or l2 term"),
    "momentum": ("momentum", "no momentum"),
    "nesterov": ("Nesterov momentum", "no Nesterov momentum"),
    "dampening": ("dampening", "no dampening"),
    "other_optimizer": ("Adam or another optimiser", "no optimiser but SGD"),
    "average": ("an average of iterates", "the last iterate is released"),
    "late_average": ("an average that begins after the start", "no average that begins after the start"),
    "several_records": ("several records of a user", "one record differs"),
    "beforehand": ("what was released beforehand", "nothing was released beforehand"),
    "rounding": ("rounding of iterates", "no rounding of iterates"),
    "unknown": ("anything unknown", "nothing that theorems do not know of"),
}

# What theorems assume besides.

_ASSUMPTIONS: dict[str, str] = {
    "contracting": "every step contracts (Lipschitz constant < 1)",
    "nonexpansive": "no step moves iterates apart (Lipschitz constant <= 1)",
    "growing": "some step moves iterates apart",
    "finite_lipschitz": "the Lipschitz constant of each step is known",
    "finite_lipschitz_if_new": "a known Lipschitz constant, if each epoch has a new order",
    "tame": "little growth within an epoch, if each epoch has a new order",
    "bounded_domain": "iterates are projected on a bounded set",
    "narrow_domain": "the domain is at most 16 times as wide as the noise",
    "no_small_domain": "no small domain",
    "bounded_distance": "two runs stay within a bounded distance",
    "blocks_hide_domain": "the noise of some block of steps hides the diameter of the domain",
    "some_reach": (
        "before its noise, a step brings any two iterates of the domain within 30 times the noise, because gradients are "
        "bounded or the Lipschitz constant is known"
    ),
    "one_pass": "no record is used twice",
    "long_enough": "the run is long enough to cross the domain",
    "short_enough": "the run is short enough to compute step by step",
    "few_batches": "few enough batches per epoch",
    "several_batches": "several batches per epoch",
    "two_batches": "at least two batches per epoch",
    "comparable_places": "few batches per epoch, or steps alike enough that a few batches represent all",
    "whole_epochs_if_secret": "whole epochs, if the order is secret",
    "whole_epochs_if_new": "whole epochs, if each epoch has a new order",
    "alike_if_new": "all steps are identical, if each epoch has a new order",
    "alike_in_size_and_clip": "all steps are identical, also in step size and clip",
    "batches_fit_adjacency": (
        "batches of fixed size if a record is replaced, Poisson batches with a fixed divisor otherwise"
    ),
    "no_poisson_if_replaced": "no Poisson batches with a fixed divisor when a record is replaced",
    "smooth_loss": "a smooth loss with bounded gradients",
    "smooth_or_clipped": "smoothness or a clip is known",
    "bounded_gradients": "gradients are bounded, by clipping or otherwise",
    "bounded_records": "bounded gradients, if batches are Poisson",
    "weight_decays": "weight decay",
    "known_dimension": "the number of parameters is known",
    "linear_update": "momentum or an average of iterates, and a smooth loss",
    "some_protection": "mu is small enough for some protection",
    "hideable_sensitivity": "a sensitivity that noise can hide",
    "noticeable_sensitivity": "a sensitivity that is not tiny beside the noise",
    "small_steps": "small steps, which keep most of an earlier difference",
    "steps_without_record": "steps without the record at the end",
}

# Why a theorem does not apply: texts with the values of the fact in them, and functions where these are not enough.

_TEXTS: dict[str, str] = {
    "own": "{text}",
    "no_finite_bound": "finds no finite bound: {because}",
    "unknown_field": "does not know of {field}, which this run has",
    "release_inside_epoch": "needs releases at the end of epochs of {every} steps; this run has one at step {step}",
    "not_contracting": "needs steps that contract (Lipschitz constant < 1); {because}",
    "not_nonexpansive": "needs steps that never move iterates apart (Lipschitz constant <= 1); {because}",
    "lipschitz_infinite": "needs a finite Lipschitz constant of every step; {because}",
    "not_growing": (
        "covers steps that may move iterates apart; here their Lipschitz constant is at most {lipschitz:.6g}, and "
        "random-order is better"
    ),
    "grows_within_epoch": (
        "needs a record's effect to stay small within an epoch; it may grow to {times_noise:.3g} times the noise, because "
        "{because}"
    ),
    "distance_unbounded": "needs a bound on the distance between two runs; {because}. A bounded domain would give one",
    "blocks_hide_too_little": (
        "needs blocks of steps that hide a distance of {diameter:.6g} up to {at_most:g} times the noise; the noise is "
        "{noise:.6g}, and {because}"
    ),
    "iterates_too_far_apart": (
        "needs any two iterates within {at_most:g} times the noise after a step; in this run they may be "
        "{times_noise:.3g} times the noise apart"
    ),
    "domain_too_wide": (
        "needs a domain at most {at_most:g} times as wide as the noise; its diameter is {times_noise:.6g} times the noise"
    ),
    "domain_too_small": (
        "is skipped on small domains: the diameter is {times_noise:.3g} times the noise, where reflection is better"
    ),
    "used_again": "covers one pass of {every} steps; this run has {steps}",
    "used_too_rarely": (
        "needs each record to be used at least diameter/sensitivity = {needed:.6g} times; this run uses it {turns} times"
    ),
    "too_many_batches": "takes at most {at_most} batches per epoch; this run has {batches}",
    "too_many_batches_averaged": (
        "takes at most {at_most} batches per epoch if part of the run is averaged; this run has {batches}"
    ),
    "too_many_batches_on_domain": (
        "takes at most {at_most} batches per epoch on a domain this wide; this run has {batches}"
    ),
    "not_several_batches": "needs several batches per epoch; this run has one",
    "not_two_batches": "needs at least two batches per epoch; this run has one",
    "places_not_comparable": (
        "takes more than {at_most} batches per epoch only without checkpoints, with steps that never move iterates apart "
        "and with sensitivities that do not fall within an epoch; this run has {batches} batches per epoch and a Lipschitz "
        "constant of at most {lipschitz:.6g}"
    ),
    "steps_not_alike": "needs identical steps; step sizes or noise change",
    "steps_not_alike_if_new": "needs identical steps if each epoch has a new order; step sizes or noise change",
    "poisson_replaced": (
        "does not cover Poisson batches with a fixed divisor when a record is replaced; composition is better there"
    ),
    "record_in_every_step": "it needs steps without the record, but all may use it",
    "record_gradients_unbounded": (
        "needs a bound on each record's gradient for Poisson batches; only its change is bounded. Use clip, or "
        "gradient_norm of li.losses.general"
    ),
    "neither_clipped_nor_smooth": "needs clipped gradients or a known smoothness; this run has neither",
    "decay_too_strong": (
        "needs weight decay that shrinks the weights; a step of this run multiplies them by up to {factor:.6g}"
    ),
    "not_prepayable": "needs smooth, unprojected steps; {because}",
    "plain_update": (
        "covers momentum and averages of iterates; this run has plain gradient steps whose last iterate is released"
    ),
    "not_linear": "needs an optimiser that is linear in the noisy gradients, and a smooth loss; {because}",
    "hardly_protected": (
        "needs mu <= {at_most:g}, per step and in all; this run has mu = {mu:.3g}, which is hardly any protection"
    ),
    "sensitivity_too_large": (
        "needs a sensitivity of at most {at_most:g} times the noise; it is {times_noise:.3g} times the noise. Add noise"
    ),
    "sensitivity_too_small": (
        "is skipped where composition is as good: the sensitivity is {times_noise:.3g} times the noise"
    ),
    "difference_lost": (
        "needs steps that keep most of an earlier difference; here a step keeps {kept:.3g} of it. Use a smaller step_size"
    ),
    # Why a constant of a run is unknown, or large: for the end of a reason.
    "smoothness_unknown": "the smoothness of the loss is unknown. Give the loss its smoothness",
    "loss_not_smooth": ("the smoothness of the loss is unknown. Give the loss its smoothness, or use a smooth loss"),
    "push_unknown": "the smoothness of the loss is unknown",
    "run_projects": "this run projects on a bounded domain. Leave out domain",
    "run_has_prox": "this run has a proximal map. Leave out prox",
    "gradients_unbounded": "gradients are not bounded. Clip them",
    "clip_changes": "clip changes from step to step. Use one clip",
    "dimension_unknown": "the number of parameters is unknown. Use domain=li.Unbounded(dimension=...)",
    "decay_above_one": "step_size times l2 or weight_decay is {product:g}, above 1. Use a smaller step_size",
    "step_size_too_large": (
        "step_size {step_size:g} is too large for the smoothness of the loss. Use a smaller step_size"
    ),
    "step_size_changes": "step_size changes from step to step. Use one step_size",
    "step_size_gains_nothing": (
        "step_size times smoothness is {product:.3g}, so large that releasing only the last iterate gains nothing. Use a "
        "smaller step_size"
    ),
    "plain_steps": "this run has plain gradient steps",
    "optimizer_not_linear": "{optimizer} is not linear in the noisy gradients",
    "steps_count_as_worst": "every step counts as the worst one",
    "start_forgotten": "of so long a run only the last steps are counted, and where they start is not known",
    "user_in_one_batch": "several records of a user are in one batch",
    "records_push_at_once": "several records push at once",
    "records_forgotten": "nothing is prepaid where records are forgotten",
    # Optimisers.
    "adam": "Adam with beta1 {beta1:g} and beta2 {beta2:g}",
    "adamw": "AdamW with beta1 {beta1:g} and beta2 {beta2:g}",
    "optimizer_named": "{name}",
}

_LACKS = {  # what is lacking, and what to do about it
    "bounded_domain": ("a bounded domain", "Use domain=li.Ball(radius=...)"),
    "clipped_gradients": ("clipped gradients", ""),
    "weight_decay": ("weight decay", ""),
    "dimension": ("a stated number of parameters", "Use domain=li.Unbounded(dimension=...), without prox"),
}


def _lacks(what: str) -> str:
    return _lacking([what])


def _lacking(what: list[str]) -> str:
    """All that a run lacks in one sentence, followed by what to do about it."""
    needed, advice = zip(*(_LACKS[one] for one in what), strict=True)
    has = {1: "none", 2: "neither"}.get(len(needed), "none of these")
    return ". ".join([f"needs {_listed(needed)}; this run has {has}", *filter(None, advice)])


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _not_covered(feature: str) -> str:
    return f"does not cover {name(feature)}"


def _update_not_covered(feature: str, optimizer: Fact, released: str, parameter: float | None) -> str:
    has = f"{optimizer}, with {released_by(released, parameter)} released"
    return f"does not cover {name(feature)}; this run has {has}"


def _adjacency_not_proved(adjacency: str) -> str:
    return f"is not proved for {_constant(adjacency)}"


def _steps_change(quantity: str, least: float, most: float) -> str:
    which = {"lipschitz": "Lipschitz constant"}.get(quantity, quantity)
    return f"needs identical steps; the {which} runs from {least:.6g} to {most:.6g}"


def _releases_more(checkpoints: int) -> str:
    also = counted(checkpoints, "checkpoint")
    return f"covers the release of the last iterate alone; this run also releases {also}"


def _epoch_unfinished(every: int, steps: int, left: int) -> str:
    return f"needs whole epochs of {every} steps; this run's {steps} steps end {counted(left, 'step')} into an epoch"


def _too_many_steps(at_most: int, steps: int) -> str:
    """Say that the run has too many steps; a small limit is compared with all digits."""
    shown = steps if at_most < _MILLION else f"{steps:g}"
    return f"takes at most {at_most:g} steps; this run has {shown}"


_WORK = {
    "batches": "steps times batches",
    "batches_per_epoch": "steps times batches per epoch",
    "pairs": "steps times pairs of batches",
}


def _too_much_work(times: str, at_most: float, needed: float) -> str:
    return f"takes at most {at_most:.3g} {_WORK[times]}; this run has {needed:.3g}"


_CALLED = {
    "full": "full batches",
    "cyclic": "cyclic batches",
    "shuffled": "shuffled batches",
    "fixed_size": "random batches of fixed size",
    "poisson": "Poisson batches",
    "poisson_mean": "Poisson batches",
    "balls_and_bins": "balls and bins",
}


def _batches_not_for(adjacency: str, batches: str) -> str:
    needed = "batches of fixed size" if adjacency == "replace_one" else "Poisson batches with a fixed divisor"
    return f"needs {needed} under {_constant(adjacency)}; this run has {_CALLED.get(batches, batches)}"


def _lipschitz_constant(
    step_size: float,
    curvature: float,
    smoothness: float,
    clipping: bool,
    decay: float,
    largest_share: float,
    unusual_apart: bool,
    lipschitz: float,
    step_size_below: float | None,
) -> str:
    """Say where the largest Lipschitz constant of a step comes from, with advice."""
    causes = [f"step_size {step_size:g}", f"a Hessian between {curvature:g} and {smoothness:g}"]
    if clipping:
        causes.append("clipping (which loses convexity)")
    if decay > 0:
        causes.append(f"l2 or weight_decay {decay:g}")
    if largest_share > 1:
        which = "all but unusual batches" if unusual_apart else "batches"
        causes.append(f"{which} of up to {largest_share:.4g} times the expected size")
    advice = "" if step_size_below is None else f". Use step_size < {step_size_below:.4g}"
    return f"{', '.join(causes[:-1])} and {causes[-1]} give a Lipschitz constant of {lipschitz:.6g}{advice}"


def _sgd(momentum: float, nesterov: bool, dampening: float) -> str:
    if not momentum:
        return "plain gradient steps"
    damped = f", dampening {dampening:g}" if dampening else ""
    return f"{'Nesterov ' if nesterov else ''}momentum {momentum:g}{damped}"


_MADE: dict[str, Sentence] = {
    "lacks": _lacks,
    "not_covered": _not_covered,
    "update_not_covered": _update_not_covered,
    "adjacency_not_proved": _adjacency_not_proved,
    "steps_change": _steps_change,
    "releases_more": _releases_more,
    "epoch_unfinished": _epoch_unfinished,
    "too_many_steps": _too_many_steps,
    "too_much_work": _too_much_work,
    "batches_not_for": _batches_not_for,
    "lipschitz_constant": _lipschitz_constant,
    "sgd": _sgd,
}
SENTENCES.update({**{code: text.format for code, text in _TEXTS.items()}, **_MADE})
