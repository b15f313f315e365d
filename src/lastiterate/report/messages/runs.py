"""The words of runs, losses, batches, guarantees as curves, theorems and the kernel."""

from __future__ import annotations

from lastiterate.report.messages import Message

_INSTEAD = {
    "betas": "betas=(0.9, 0.999)",
    "rate": "rate=batch_size/records",
    "optimizer": "optimizer=li.SGD(momentum=0.9), optimizer=li.Adam() or optimizer='the name of another'",
    "epochs": "steps = { epochs = … }, or steps=li.epochs(…) in Python",
    "ema": "released=li.EMA(decay=0.999)",
    "average": "released=li.AVERAGE(last=100)",
}
_ORDERS = {"fixed": "a fixed order", "new": "a new random order each epoch", "one": "one random order"}


def did_you_mean(meant: str) -> str:
    """A clause for the end of a refusal; empty where nothing comes to mind."""
    return f"; did you mean {meant}" if meant else ""


def _hint(meant: str = "", of_run: str = "", write: str = "") -> str:
    if of_run:
        return f"; use {of_run} of the run: li.Run({of_run}=…)"
    return f"; write {_INSTEAD[write]}" if write else did_you_mean(meant)


def _unknown_entry(field: str, of: str, known: str, **hint: str) -> str:
    return f"{field} is not an entry of {of}{_hint(**hint)}. It has {known}."


def _unknown_argument(field: str, of: str, known: str, **hint: str) -> str:
    return f"{field} is not an argument of {of}, which takes {known}{_hint(**hint)}."


def _not_of_run(field: str, of: str, known: str, **hint: str) -> str:
    return f"{field} is not an entry of a run{_hint(**hint)}."


def _unknown_kind(of: str, known: str, got: str, meant: str, field: str = "kind") -> str:
    return f"{field} of {of} must be one of {known}. Got {got}{did_you_mean(meant)}."


def _schedule_too_short(field: str, most: int, steps: str, over: int | None) -> str:
    given = f" and over={over}" if over else ""
    return f"a schedule must span all steps of its run, and at most {most:g}. Got {steps} steps{given}."


def _passes(size: int, records: int, order: str, left_over: int, uneven: bool) -> str:
    told = f"batches of {size} of {records} records in {_ORDERS[order]}"
    if not left_over:
        return told
    return f"{told}, the last of each epoch of {left_over}" if uneven else f"{told}, {left_over} left out"


MESSAGES: dict[str, Message] = {
    # Files.
    "file_unreadable": "{file} cannot be read: {error}.",
    "file_unwritable": "{file} cannot be written: {error}.",
    "file_too_long": "{file} cannot be read: it is longer than {megabytes} megabytes.",
    "file_not_toml": "{file} is not TOML: {error}.",
    "file_not_json": "{file}, line {line} is not JSON: {error}.",
    "file_ending": "{file} must end in .toml or .json. Got {got}.",
    "wrong_at_line": "{file}, line {line}: {error}",
    # Entries and arguments.
    "run_not_table": "a run must be a table with entries such as step_size. Got a {got}.",
    "unknown_entry": _unknown_entry,
    "run_entry_missing": "{field} is missing. A run needs {needed}.",
    "entries_lacking": "{of} of kind {kind} lacks {missing}.",
    "no_kind": "{field} must be a table with a kind, one of {known}. Got {got}.",
    "no_schedule_kind": "{field} must be a number, a list, or a table with a kind, one of {known}. Got {got}.",
    "unknown_kind": _unknown_kind,
    "kind_not_listed": (
        "{field} of type {kind} cannot be written to a file or a certificate: it is not listed among the kinds of "
        "lastiterate (CONTRIBUTING.md says how to list one)."
    ),
    "steps_entry": "steps must be an integer, or {{ epochs = … }}. Got {got}.",
    "unknown_argument": _unknown_argument,
    "not_of_run": _not_of_run,
    "argument_unnamed": "{of} takes {known}, each by its name. Got {got} without one.",
    # Runs.
    "not_a_run": "{field} must be a Run, such as li.Run(...) or li.read_run('run.toml') returns. Got {got}.",
    "steps_missing": "steps is missing: give a number of steps, or li.epochs(10).",
    "two_clips": (
        "clip must be the same in the loss and in the noise. Got {in_loss} and {in_noise}. Leave it out of the loss."
    ),
    "no_fixed_divisor": (
        "noise on a gradient sum needs a fixed divisor: divided by the batch size, it would shrink with the batch. "
        "Got {noise} and {batches}. Use li.Poisson, or li.OnMeanGradient."
    ),
    "records_would_move": (
        "{batches} do not support {adjacency!r}: adding or removing a record would move records between batches. "
        "Use li.ZERO_OUT, li.Poisson or li.BallsAndBins."
    ),
    "divisor_would_change": (
        "{batches} do not support {adjacency!r}: a missing record would change the divisor of its batch. "
        "Use li.Poisson or li.REPLACE_ONE."
    ),
    "no_gradient_norm": (
        "under {adjacency!r} each record's gradient needs a bound. Clip it, or give li.losses.general its gradient_norm."
    ),
    "unit_of_length": "{field} on the iterate must be from {least:g} to {most:g}, in some unit. Got {got}.",
    "not_per_step": "{field} must be a float, or a list with one float per step. Got shape {shape}.",
    "wrong_length": "{field} must be one float, or one per step: {steps} of them. Got {got}.",
    "schedule_too_short": _schedule_too_short,
    "no_projection": "no projection is known on {domain!r}. Use li.Ball or li.parts.Box.",
    "not_a_matrix": "a nuclear norm is one of matrices. Got weights with {axes} axes.",
    "prox_without_formula": "{prox!r} has no formula, only a modulus.",
    "no_proximal_map": "no proximal map is known for {prox!r}.",
    # Batches.
    "poisson_described": "Poisson batches at rate {rate:g} of {records} records",
    "poisson_mean_described": "Poisson batches at rate {rate:g} of {records} records, averaged over their own size",
    "fixed_size_described": "random batches of {size} of {records} records",
    "balls_and_bins_described": "{records} records, each in one of {batches} batches at random in each epoch",
    "passes_described": _passes,
    "records_left_over": (
        "batch_size must divide records, or last must be given for the {left_over} records left over: "
        'last="smaller" for a smaller batch at the end of each epoch, last="drop" to leave them out, as '
        "DataLoader(drop_last=True) does. Got {size} and {records}."
    ),
    # Losses.
    "two_convexities": "general needs strong_convexity or weak_convexity, not both. Give the one that holds.",
    "general_unbounded": (
        "general needs gradient_sensitivity, gradient_norm or clip. No privacy can be proved without a gradient bound."
    ),
    "network_unbounded": "network needs clip: the gradients of a network are not bounded otherwise.",
    "ridge_unbounded": "ridge needs clip or residual_bound: the gradients of a squared loss are not bounded.",
    "pull_and_clip": "pull needs classes and no clip: it replaces clipping.",
    "classes_missing": "a softmax loss needs classes=, the number of classes: counting them would use the data.",
    # Optimisers.
    "not_an_optimizer": ("{field} must be an optimiser, such as li.SGD(momentum=0.9), or the name of one. Got {got}."),
    "update_unknown": "the update of {name} is unknown, so li.train cannot run it. Use li.SGD or li.Adam.",
    "nesterov_needs_momentum": (
        "nesterov needs a momentum above 0 and no dampening. Got momentum = {momentum:g} and dampening = {dampening:g}."
    ),
    "dampening_needs_momentum": "dampening needs a momentum above 0. Got dampening = {dampening:g} and no momentum.",
    # Facts that are read.
    "fact_basis": "{of} cannot be {basis}.",
    "fact_not_of_kind": "{of} cannot have the values {got}.",
    "fact_unknown": "a fact must have one of the known codes. Got {got}.",
    "fact_values": "{of} must have the values {wanted}. Got {got}.",
    # Guarantees as curves.
    "adjacencies_differ": (
        "guarantees with different adjacencies cannot be combined. Got {first!r} and {other!r}. Account for every part "
        "under one adjacency first."
    ),
    "classical_noise_epsilon": (
        "the classical Gaussian mechanism needs epsilon < 1, but it is {epsilon:g}. Use analytic_gaussian_noise."
    ),
    "closed_form_range": (
        "the closed form needs {field} <= {most:.6g}, but it is {value:g}. Use sampled_gaussian_rdp, which has "
        "no such range."
    ),
    "fixed_size_add_or_remove": (
        "adding or removing a record from batches of fixed size would change every inclusion probability. Got "
        "adjacency=li.ADD_OR_REMOVE_ONE. Use li.REPLACE_ONE or li.ZERO_OUT, or sampling=li.notions.POISSON."
    ),
    "function_or_points": "{of} needs either a function, or {points}. Give exactly one of the two.",
    "guarantee_with_caveat": (
        "nothing follows from a guarantee with a caveat. This one has: {caveat}. Do it again without that."
    ),
    "no_guarantees": "{function} needs a list of at least one guarantee. Got {got}.",
    "no_noise_known": (
        "no noise is known to meet epsilon = {epsilon:g} at delta = {delta:g}: the bounds on sampled steps do not reach "
        "that far. Take a larger epsilon or delta."
    ),
    "no_renyi_divergences": "{of} gives no Rényi divergences. Use epsilon, delta or tradeoff.",
    "no_trial_private_enough": (
        "no trial is private enough for epsilon = {epsilon:g} at delta = {delta:g} and {trials:g} trials on average. Allow "
        "a larger epsilon, or fewer trials."
    ),
    "not_a_guarantee": (
        "{function} needs guarantees, such as li.notions.GaussianDP(mu=1.0), or reports of li.account. Got {got}."
    ),
    "not_a_privacy_loss": (
        "masses must be the law of log dP/dQ under P, under which the mean of e^-loss is at most 1. Got {got}. Was the law "
        "taken under Q, or the sign of the loss flipped?"
    ),
    "order_not_known": "this RenyiDP is known up to order {most:g}. Got order {order:g}. Ask for a smaller order.",
    "present_or_absent_adjacency": "present_or_absent compares data with and without a record. Got {adjacency!r}.",
    "profile_function_raised": (
        "the function of a Profile must take an array of epsilons and return deltas in [0, 1]. It raised: {error}."
    ),
    "profile_function_returned": (
        "the function of a Profile must return deltas in [0, 1], one for each epsilon. Got {got} for epsilon = {epsilons}."
    ),
    "rho_or_divergences": "RenyiDP needs either rho, or orders and divergences. Give exactly one of the two.",
    "sampled_adjacencies_differ": "a sampled step under {first!r} implies nothing under {other!r}.",
    "tradeoff_above_guessing": (
        "a trade-off function lies below 1 − type_i_error, which guessing attains. Got type_ii_error {beta:g} at "
        "type_i_error {alpha:g}."
    ),
    "tradeoff_function_raised": (
        "the function of a TradeOff must take an array of type I errors and return as many errors. It raised: {error}."
    ),
    "trials_entries": "trials of the {law} law must have the entries {entries}.",
    "trials_not_written": "trials must be one of the distributions in li.trials to be written down. Got {got}.",
    # Theorems.
    "name_of_another_theorem": (
        "{name!r} is the name of a theorem of the library, and this is another one. Give it a name of its own."
    ),
    "blocks_too_long": "blocks must have at most {most} rounds. Got {got}.",
    "distance_not_hidden": "no number of steps hides the largest distance.",
    "gradient_not_bounded": "a record's gradient has no bound.",
    "no_finite_schedule": "no schedule has a finite cost.",
    "prepayment_not_finite": "prepayment finds no finite bound.",
    "shift_engine_not_finite": "the shift engine finds no finite bound: {reason}.",
    "too_much_work": (
        "steps times batches per epoch must be at most {most:.3g} to account for every record. Got {needed:.3g}. Use fewer "
        "steps or larger batches."
    ),
}
