"""Sentences of claims: who is protected, what is released, and what selections, forgetting and budgets promise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lastiterate.digits import above, below
from lastiterate.report.english.words import SHORT, always, listed, says


@dataclass(frozen=True)
class Change:
    """The change of a record between neighbouring data sets, in the forms that sentences need."""

    verb: str
    done: str
    one: str
    public: str
    several: str
    differ: str


CHANGES = {
    "replace_one": Change(
        "replace",
        "replaced",
        "they differ in one record, replaced by another",
        "the number of records is public",
        "each may be replaced by another",
        "that differ in one record, replaced by another",
    ),
    "zero_out": Change(
        "zero out",
        "zeroed out",
        "one record of the first is zeroed out in the second: it contributes no gradient, and its slot stays",
        "the number of records, the batch sizes and the divisor of gradient sums are public",
        "each may be zeroed out in the second: it contributes no gradient, and its slot stays",
        "that differ in one record, which is zeroed out in one of them",
    ),
    "add_or_remove_one": Change(
        "add or remove",
        "added or removed",
        "the second has one record more or less",
        "the divisor of gradient sums is public and does not depend on the number of records",
        "each may be added or removed",
        "of which one has one record more",
    ),
}


# The privacy unit.


@says("neighbours")
def _neighbours(adjacency: str, user_records: int, records: tuple[int, ...]) -> str:
    """The privacy unit in a few words."""
    verb = CHANGES[adjacency].verb
    if records:
        whose = f"record {records[0]}" if len(records) == 1 else f"the {len(records)} records {listed(records)}"
        return f"{verb} {whose} of one person"
    return f"{verb} one record" if user_records == 1 else f"{verb} up to {user_records} records of one user"


def definition(adjacency: str, user_records: int, records: tuple[int, ...]) -> str:
    """Return the definition of neighbouring data sets in full."""
    change = CHANGES[adjacency]
    if records:
        which = f"they differ in records {listed(records)} of the data, counted from 0: {change.several}"
    elif user_records > 1:
        which = f"they differ in up to {user_records} records of one user, anywhere in the data: {change.several}"
    else:
        which = change.one
    return f"Two data sets are neighbours if {which}; {change.public}."


def differing(adjacency: str, user_records: int, records: tuple[int, ...]) -> str:
    """Describe neighbouring data sets, after “any two data sets”."""
    change = CHANGES[adjacency]
    if records:
        return f"that differ in records {listed(records)}, those of one person; {change.several}"
    if user_records > 1:
        return f"that differ in up to {user_records} records of one user; {change.several}"
    return change.differ


def unit(user_records: int, records: tuple[int, ...]) -> str:
    """Name the unit that is protected."""
    if records:
        return f"records {listed(records)}, those of one person"
    return "one record" if user_records == 1 else f"one user with up to {user_records} records"


def claim(
    what: str, epsilon: str, delta: float, adjacency: str, user_records: int, records: tuple[int, ...] = ()
) -> str:
    """Return the claim in one sentence."""
    whom = differing(adjacency, user_records, records)
    private = f"(ε, δ)-differentially private with ε = {epsilon} and δ = {delta:g}"
    return f"Releasing {what} is {private}, for any two data sets {whom}."


def nothing_proved(delta: float) -> str:
    """Return the sentence that stands in place of a claim if no finite ε is proved."""
    return f"No finite ε is proved for this run at δ = {delta:g}."


def lower_bound(lower: float, upper: float) -> str:
    """Return the sentence on how near the lower bound is to what was proved."""
    if not lower > 0:
        return "A lower bound is not available for this run."
    ratio = upper / lower
    near = "so this ε is exact" if ratio < 1 + 1e-6 else f"so this ε is at most {above(ratio, 3)} times too large"
    return f"No proof from these assumptions can go below ε = {below(lower)}, {near}."


def every_iterate(every: float, epsilon: float) -> str:
    """Return the sentence on the cost of releasing every iterate; empty if that is not known."""
    if not (math.isfinite(every) and epsilon > 0):
        return ""
    ratio = every / epsilon
    larger = f"ε = {above(every)}, {ratio:.3g} times as large" if ratio > 1.005 else "the same ε"
    return f"Releasing every iterate would give {larger}."


HARDLY_ANY_PROTECTION = 0.5  # a higher detection rate at 1% of false positives is called that


def attack(adjacency: str, user_records: int, detected: float) -> str:
    """Return the sentence on what a detection rate at 1% of false positives means."""
    done = CHANGES[adjacency].done
    article = "an" if done[0] in "aeiou" else "a"
    whose = f"{article} {done} record" if user_records == 1 else f"the {user_records} {done} records of a user"
    found = (
        f"An attacker with a 1% false-positive rate detects {whose} at most {above(100 * detected, 3)}% of the time."
    )
    hardly = f" This is hardly any protection for a {'single record' if user_records == 1 else 'user'}."
    return f"{found}{hardly}" if detected > HARDLY_ANY_PROTECTION else found


@says("forgotten")
def _forgotten(records: int, replaced: bool, adaptive: bool) -> str:
    """Name forgotten records in place of a privacy unit: forgetting is no guarantee of privacy."""
    how = "replaced by others" if replaced else "left out"
    which = "one record" if records == 1 else f"{records} records"
    return f"{which} forgotten ({how}){', given all earlier models' if adaptive else ''}"


# What is released.


def released(released: str, parameter: float | None) -> str:
    """Name what a run releases at its end."""
    if released == "ema":
        return f"the exponential moving average of the iterates with decay {parameter:g}"
    if released == "average":
        return f"the mean of {'all' if parameter is None else f'the last {parameter:.15g}'} iterates"
    return "the last iterate"


@says("only_released")
def _only_released(released: str, parameter: float | None, after: tuple[int, ...], beforehand: bool) -> str:
    if released != "last":
        also = f", as it was after {listed(after)} steps and at the end," if after else ""
        what = f"Only {_released(released, parameter)}{also} is released."
    elif after:
        what = f"Only the iterates after {listed(after)} steps and the last are released."
    else:
        what = "Only the last iterate is released."
    but = ", except what was released before training" if beforehand else ""
    return (
        f"{what} Nothing else that was computed from the data is released: no other iterate, no metric or stopping time, "
        f"no hyperparameter chosen by looking at the data{but}."
    )


_released = released
SHORT["only_released"] = lambda released, parameter, after, beforehand: (
    f"nothing but {_released(released, parameter)}{' and the declared checkpoints' if after else ''} is released"
)


@says("user_records", "no user has more than {at_most} records")
def _user_records(at_most: int) -> str:
    return f"No user has more than {at_most} records."


@says("one_person", "the named records are all of one person")
def _one_person(records: tuple[int, ...]) -> str:
    return f"Records {listed(records)} of the data, counted from 0, are all records of one person."


@says("released_before", "earlier releases are {mu:g}-GDP")
def _released_before(mu: float) -> str:
    return (
        f"What was released about these records before training is mu-GDP with mu at most {mu!r}, under the same "
        "neighbours, and includes every choice for training that depends on the data: feature preparation, "
        "hyperparameters, the first iterate. The assumptions on training hold for each of its possible outcomes."
    )


def releases(what: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    """Names of files, metrics and the like, each with the steps after which it was written."""
    return "; ".join(f"{name} (after {listed(steps)} steps)" for name, steps in what)


@says("kept_inside", "files kept inside stay secret")
def _kept_inside(what: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    return f"Nobody else sees {releases(what)}."


always(
    "every_iterate_released",
    "The optimiser's state, or an average of iterates, was released too, so every iterate is accounted as released.",
)


# Theorems, selections, forgetting, budgets.


@says("theorem_true", "the theorem {theorem} is true")
def _theorem_true(theorem: str, citation: str) -> str:
    return f"The theorem {theorem} ({citation}) is true: it is a theorem of yours, which is not part of the library."


def trials(law: str, mean: float, shape: float | None) -> str:
    """The distribution of a random number of trials."""
    named = law.replace("-", " ").replace("poisson", "Poisson")
    return f"{named} distribution with mean {mean:g}{'' if shape is None else f' and shape {shape:g}'}"


@says("trials_drawn", "the number of trials is random and secret")
def _trials_drawn(law: str, mean: float, shape: float | None) -> str:
    drawn = trials(law, mean, shape)
    return f"The number of trials is drawn from a {drawn}, independently of the data, and is not released."


@says("setting_drawn", "settings are drawn at random")
def _setting_drawn(settings: int) -> str:
    return f"Every trial draws one of {settings} settings at random, independently of the data and of the other trials."


always(
    "trials_fresh",
    "Every trial trains anew, with fresh noise: the trials share nothing that was learnt from the data.",
    "every trial trains anew",
)
always(
    "only_best_trial_released",
    "Only the best trial is released: its model, its setting and its score. The other trials, their scores and their number "
    "stay secret, and so does how long the search took.",
    "only the best trial is released",
)
always(
    "score_public",
    "The score of a trial is computed from its model and public records.",
    "scores use public records",
)


@says("stated_gdp", "the rest is {mu:g}-GDP, as stated")
def _stated_gdp(mu: float) -> str:
    return (
        f"Trials without a certificate here, or scores on records that no trial trains on, are {mu:.12g}-GDP. This is "
        "stated, and not proved here."
    )


def _never_had(records: int, replaced: bool, earlier: int) -> str:
    which = "the removed record" if records == 1 else f"the {records} removed records"
    if replaced:
        others = "another record takes its place" if records == 1 else "other records take their places"
        instead = f"{others} from the start, as in the further steps"
    else:
        left = "its gradient is" if records == 1 else "their gradients are"
        instead = f"{left} left out, and sums are divided by the same numbers"
    before = (
        "record that was removed earlier is" if earlier == 1 else f"{earlier} records that were removed earlier are"
    )
    also = f". The {before} removed from both runs at the same step" if earlier else ""
    return f"that never had {which}: {instead}{also}"


@says("same_start_and_settings")
def _same_start_and_settings(
    steps: int, further: int, records: int, replaced: bool, earlier: int, after: tuple[int, ...]
) -> str:
    also = f", together with the iterates released after {listed(after)} steps," if after else ""
    return (
        f"The model after {steps} steps of training and {further} further steps{also} is compared with that of a run of "
        f"{steps + further} steps with the same start and settings {_never_had(records, replaced, earlier)}."
    )


@says("separate_run")
def _separate_run(steps: int, further: int, records: int, replaced: bool, earlier: int) -> str:
    return (
        "Given everything that was computed before the last request, the model after "
        f"{steps} steps of training and {further} further steps is compared with the model of a separate run of "
        f"{steps + further} steps with the same settings and noise of its own {_never_had(records, replaced, earlier)}."
    )


_EARLIER_MODELS = {
    "public": "Earlier models may be public, and requests may depend on them. ",
    "covered": "",
    "not covered": "Models that were released earlier are not covered. ",
}


@says("models_covered")
def _models_covered(earlier: str) -> str:
    later = "Models that are later trained from this one are covered as well, and later requests may depend on them."
    return f"{_EARLIER_MODELS[earlier]}{later}"


always("removed_unused", "From its request on, no step uses a removed record.")
always(
    "requests_independent",
    "Which records these requests remove, and when, does not depend on models or on anything else that was computed with "
    "the noise of this run.",
)
always(
    "nothing_released_meanwhile",
    "Between a request and the end of its further steps nothing is released: no iterate, no metric, no stopping time. The "
    "number of steps is fixed before they begin.",
)
always("ledger_complete", "Whatever was computed from this data set and released is an entry of this ledger.")


@says("releases_adaptive")
def _releases_adaptive(adaptive: bool) -> str:
    if adaptive:
        return "Which release came next, and how, depended on the data only through earlier entries."
    return "All entries were decided before the first of them was released."


@says("stated_by_owner")
def _stated_by_owner(entries: tuple[int, ...]) -> str:
    which = "guarantee of entry" if len(entries) == 1 else "guarantees of entries"
    return f"The {which} {listed(entries)} {'is' if len(entries) == 1 else 'are'} stated by the owner, not proved."
