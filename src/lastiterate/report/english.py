"""English: one sentence for each kind of fact. A second language would be a second module with the same functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lastiterate.digits import above, below

if TYPE_CHECKING:
    from lastiterate.facts import Fact

Sentence = Callable[..., str]
_SHOWN = 6  # numbers of a list; the rest is "…"


def sentence(code: str, values: dict[str, Any]) -> str:
    """Return the sentence of a fact."""
    return _SENTENCES[code](**values)


def short(code: str, values: dict[str, Any]) -> str:
    """A few words for a fact, where it is one of many; its sentence where there are none."""
    return _SHORT[code](**values) if code in _SHORT else sentence(code, values).rstrip(".")


def add_sentences(made: Mapping[str, Sentence]) -> None:
    """Add the functions that make the sentences of further codes, which are in a module of their own."""
    _SENTENCES.update(made)


_SENTENCES: dict[str, Sentence] = {}
_SHORT: dict[str, Sentence] = {}


def _says(code: str, in_short: str = "") -> Callable[[Sentence], Sentence]:
    """Register the function that makes the sentences of a code."""

    def register(made: Sentence) -> Sentence:
        _SENTENCES[code] = made
        if in_short:
            _SHORT[code] = lambda **values: in_short.format(**values)
        return made

    return register


def _always(code: str, text: str, in_short: str = "") -> None:
    """A code whose sentence is always the same."""
    _says(code, in_short)(lambda: text)


def listed(values: Iterable[Any]) -> str:
    """Return the first few values, separated by commas."""
    given = [str(one) for one in values]
    return f"{', '.join(given[:_SHOWN])}{', …' if len(given) > _SHOWN else ''}"


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun: “1 step”, “3 steps”."""
    return f"{count} {one if count == 1 else several or one + 's'}"


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


@_says("neighbours")
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


@_says("forgotten")
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


@_says("only_released")
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
_SHORT["only_released"] = lambda released, parameter, after, beforehand: (
    f"nothing but {_released(released, parameter)}{' and the declared checkpoints' if after else ''} is released"
)


@_says("user_records", "no user has more than {at_most} records")
def _user_records(at_most: int) -> str:
    return f"No user has more than {at_most} records."


@_says("one_person", "the named records are all of one person")
def _one_person(records: tuple[int, ...]) -> str:
    return f"Records {listed(records)} of the data, counted from 0, are all records of one person."


@_says("released_before", "earlier releases are {mu:g}-GDP")
def _released_before(mu: float) -> str:
    return (
        f"What was released about these records before training is mu-GDP with mu at most {mu!r}, under the same "
        "neighbours, and includes every choice for training that depends on the data: feature preparation, "
        "hyperparameters, the first iterate. The assumptions on training hold for each of its possible outcomes."
    )


def releases(what: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    """Names of files, metrics and the like, each with the steps after which it was written."""
    return "; ".join(f"{name} (after {listed(steps)} steps)" for name, steps in what)


@_says("kept_inside", "files kept inside stay secret")
def _kept_inside(what: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    return f"Nobody else sees {releases(what)}."


_always(
    "every_iterate_released",
    "The optimiser's state, or an average of iterates, was released too, so every iterate is accounted as released.",
)


# How a run is executed.


@_says("start_independent", "the start does not depend on the data")
def _start_independent(beforehand: bool) -> str:
    how = (
        "depends on the data only through what was released before training"
        if beforehand
        else "does not depend on the data"
    )
    return f"The first iterate {how}, and lies in the domain."


_BATCHES = {
    "full": "Every step uses every record.",
    "cyclic": "Batches and their order are fixed before training, without looking at the data.",
    "shuffled": "Permutations are uniformly random, independent of the data, and never released.",
    "fixed_size": "Each step draws its batch afresh, uniformly, and the batches are never released.",
    "poisson": (
        "Each step draws its batch afresh, every record independently; the gradient sum is divided by rate·records, "
        "whatever the size of the batch; batches are never released."
    ),
    "poisson_mean": (
        "Each step draws its batch afresh, every record independently; the gradient sum is divided by the size of the "
        "batch, an empty batch contributes only noise; batches and their sizes are never released."
    ),
    "balls_and_bins": (
        "In each epoch every record goes to one of the batches uniformly, independently of all other records and epochs; "
        "the gradient sum is divided by records/batches, whatever the size of the batch; batches are never released."
    ),
}


@_says("batches", "batches are drawn as described, and secret where they are random")
def _batches(kind: str) -> str:
    return _BATCHES.get(kind, f"Batches are drawn as those of the kind {kind}, without looking at the data.")


@_says("smaller_batch_divisor", "the smaller batch is divided as described")
def _smaller_batch_divisor(divided_by: int, own_size: bool) -> str:
    by = f"its own size, {divided_by}" if own_size else f"{divided_by}, as that of all others"
    return f"The gradient sum of the smaller batch at the end of each epoch is divided by {by}."


_always(
    "noise",
    "The noise is Gaussian, independent at every step and coordinate, from a random generator that nobody can predict.",
    "nobody can predict the noise",
)
_always("projected", "Every step ends with the projection on the domain.", "every step ends with the projection")
_always(
    "record_unchanged",
    "A record has the same features and target every time it is used: no augmentation changes them.",
    "no augmentation",
)
_always(
    "optimizer_sees_noisy_gradients",
    "The optimiser sees the data only through the noisy gradients, and its state starts from values that do not depend on "
    "the data.",
    "the optimiser sees only noisy gradients",
)
_always(
    "gradients_bounded_everywhere",
    "The bound on gradients holds at every point that the optimiser may reach.",
    "the gradient bound holds everywhere",
)
_always(
    "batches_not_adaptive",
    "Batches do not depend on earlier gradients or iterates.",
    "batches do not depend on iterates",
)
_always(
    "schedules_public",
    "The divisor of gradient sums, all schedules and the number of steps are public and do not depend on the data.",
    "schedules do not depend on the data",
)
_always(
    "no_batch_statistics",
    "No statistics of a batch are used: no batch normalisation, no loss of a batch, no norm of a noiseless gradient.",
    "no batch statistics",
)


@_says("l2_in_full", "L2 regularisation applies to every weight")
def _l2_in_full(after_clipping: bool) -> str:
    return f"L2 regularisation applies to every weight at every step{', after clipping' if after_clipping else ''}."


@_says("start_norm")
def _start_norm(at_most: float) -> str:
    return f"The first iterate has norm at most {at_most:g}." if at_most else "Training starts at zero."


_SHORT["start_norm"] = lambda at_most: (
    f"the start has norm at most {at_most:g}" if at_most else "training starts at zero"
)


# The loss of a record.


def _range(least: float, most: float) -> str:
    return f"{least:.6g}" if least == most else f"{least:.6g} to {most:.6g}"


@_says("clipped", "gradients are clipped per {per}")
def _clipped(least: float, most: float, per: str, classes: int) -> str:
    if per == "record":
        return f"Each record's gradient is clipped to norm {_range(least, most)} before anything else is done with it."
    return (
        f"Each record's gradient is clipped class by class, before anything else is done with it: in each of the {classes} "
        f"one-against-the-rest problems to norm {_range(least, most)}/√{classes}. One clip of all classes together is not "
        "covered, because it does not keep the loss convex."
    )


@_says("gradient_change", "replacing a record changes its gradient by at most {at_most:.4g}")
def _gradient_change(at_most: float) -> str:
    return f"Replacing a record changes its gradient by at most {at_most:.6g}, at every point of the domain."


@_says("gradient_norm", "each gradient has norm at most {at_most:.4g}")
def _gradient_norm(at_most: float, before_clipping: bool) -> str:
    before = ", before clipping" if before_clipping else ""
    return f"Each record's gradient has norm at most {at_most:.6g}{before}, at every point of the domain."


@_says("feature_norm", "feature vectors have norm at most {at_most:g}")
def _feature_norm(at_most: float, intercept: bool) -> str:
    also = ", the constant feature of an intercept included" if intercept else ""
    return f"Every feature vector has norm at most {at_most:g}{also}."


@_says("residual", "residuals are at most {at_most:g}")
def _residual(at_most: float) -> str:
    return f"Every residual |prediction − target| is at most {at_most:g} on the domain."


@_says("pull_limit", "the pull limit of the softmax is applied")
def _pull_limit(together: float, each: float) -> str:
    return (
        "The gradient is that of the softmax loss with its pull limit applied: the wrong classes get a probability of at "
        f"most {together:g} together and {each:g} each, and of all such probabilities those of the largest likelihood. The "
        "gradient without this limit is not covered."
    )


@_says("hessian", "Hessians lie between {low:g} and {high:g}")
def _hessian(low: float, high: float) -> str:
    return f"The Hessian of each record's loss lies between {low:g} and {high:g} on a neighbourhood of the domain."


_always(
    "differentiable",
    "Each record's loss is differentiable; nothing is known of its second derivatives.",
    "each record's loss is differentiable",
)


@_says("convex", "the loss of each {of} is convex as declared")
def _convex(modulus: float, of: str, before_clipping: bool) -> str:
    which = "The potential" if of == "potential" else "Each record's loss"
    shape = f"strongly convex with modulus {modulus:g}" if modulus else "convex"
    return f"{which} is {shape}{', before clipping' if before_clipping else ''}: this is assumed, not checked."


# An execution by other libraries, or by a loop of one's own.

_always(
    "record_gradients_separate",
    "The gradient that PyTorch computes for a record does not depend on the other records of its batch. Some gradients were "
    "compared with those of single records, at the first step and after 1, 2, 4, 8, … steps.",
    "gradients of records are separate",
)


@_says("collate_separate", "the collate function treats records separately")
def _collate_separate(compared: str) -> str:
    how = {
        "once": " A few records were compared with the same ones alone, once.",
        "impossible": " This was not compared, because the function uses random numbers, or fails on single records.",
        "never": "",
    }[compared]
    return f"What the collate function makes of a record does not depend on the rest of its batch.{how}"


_always(
    "loader_to_model",
    "Between the loader and the model, no record is exchanged for another.",
    "no record is exchanged between loader and model",
)


@_says("generator_unpredictable", "nobody can predict PyTorch's generator")
def _generator_unpredictable(drew: str) -> str:
    what, more = {
        "order": ("the order of the records and is not cryptographic", "li.torch.loader uses one that is."),
        "all": (
            "noise and batches and is not cryptographic (secure_mode=False)",
            "Nobody can recover the noise from the low bits of the released weights.",
        ),
    }[drew]
    return f"Nobody can predict PyTorch's generator, which drew {what}. Its seed came from the operating system. {more}"


_HIDDEN_WEIGHTS = {
    "unused": "",
    "charged": " It includes the rounding of hidden weights.",
    "assumed": " Nor that of hidden weights and of the optimiser's state, which was measured to be small.",
    "too_coarse": (
        " Every iterate is accounted as released, because the rounding of weights is not small compared with the noise, or "
        "could not be measured; train in double precision."
    ),
}


@_says("exact_arithmetic", "the rounding of Opacus and PyTorch is negligible")
def _exact_arithmetic(precision: str, hidden: str) -> str:
    return (
        f"The arithmetic of Opacus and PyTorch is treated as exact: epsilon does not include the {precision} rounding of "
        f"gradients, their sums and the noise.{_HIDDEN_WEIGHTS[hidden]}"
    )


_always(
    "criterion_reduction",
    "The criterion reduces the loss as loss_reduction says, so each record's gradient is clipped separately.",
    "the criterion reduces as declared",
)
_always(
    "resumed_as_saved",
    "Weights and optimiser were those saved with the accountant's state when the training was resumed from it.",
    "the training was resumed from what was saved",
)
_always(
    "loader_unseen",
    "The loader, which the accountant could not check, draws the batches of the run.",
    "the loader draws the batches of the run",
)


@_says("steps_unseen", "{count} steps that were not seen are those of the run")
def _steps_unseen(count: int) -> str:
    return (
        f"For {counted(count, 'step')} the accountant could not check the optimiser: its update, learning rate and clip are "
        "those of the run."
    )


@_says("trainer_seed_unused", "noise and batches do not come from the trainer's seed")
def _trainer_seed_unused(seed: str) -> str:
    return f"Neither noise nor batches come from the seed {seed} of the trainer, which others may know."


_always(
    "durations_tell_nothing",
    "The duration of the training and its evaluations reveals nothing about the records.",
    "durations reveal nothing",
)
_always(
    "statistics_public",
    "The running statistics of the batch normalisation come from public data, not from these records.",
    "running statistics are public",
)
_always(
    "loop_follows_run",
    "The loop clips gradients, adds noise and draws batches as the run says; a callback cannot check this.",
    "the loop does as the run says",
)
_always(
    "nothing_outside_logs",
    "Nothing that depends on the records was printed, written or sent outside the trainer's logs and checkpoints.",
    "nothing is sent outside the trainer's logs",
)
_always(
    "metrics_public",
    "Everything named in public= was computed from public data and the parameters of the step at which it was logged.",
    "public= names public metrics only",
)


# Theorems, selections, forgetting, budgets.


@_says("theorem_true", "the theorem {theorem} is true")
def _theorem_true(theorem: str, citation: str) -> str:
    return f"The theorem {theorem} ({citation}) is true: it is a theorem of yours, which is not part of the library."


def trials(law: str, mean: float, shape: float | None) -> str:
    """The distribution of a random number of trials."""
    named = law.replace("-", " ").replace("poisson", "Poisson")
    return f"{named} distribution with mean {mean:g}{'' if shape is None else f' and shape {shape:g}'}"


@_says("trials_drawn", "the number of trials is random and secret")
def _trials_drawn(law: str, mean: float, shape: float | None) -> str:
    drawn = trials(law, mean, shape)
    return f"The number of trials is drawn from a {drawn}, independently of the data, and is not released."


@_says("setting_drawn", "settings are drawn at random")
def _setting_drawn(settings: int) -> str:
    return f"Every trial draws one of {settings} settings at random, independently of the data and of the other trials."


_always(
    "trials_fresh",
    "Every trial trains anew, with fresh noise: the trials share nothing that was learnt from the data.",
    "every trial trains anew",
)
_always(
    "only_best_trial_released",
    "Only the best trial is released: its model, its setting and its score. The other trials, their scores and their number "
    "stay secret, and so does how long the search took.",
    "only the best trial is released",
)
_always(
    "score_public",
    "The score of a trial is computed from its model and public records.",
    "scores use public records",
)


@_says("stated_gdp", "the rest is {mu:g}-GDP, as stated")
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


@_says("same_start_and_settings")
def _same_start_and_settings(
    steps: int, further: int, records: int, replaced: bool, earlier: int, after: tuple[int, ...]
) -> str:
    also = f", together with the iterates released after {listed(after)} steps," if after else ""
    return (
        f"The model after {steps} steps of training and {further} further steps{also} is compared with that of a run of "
        f"{steps + further} steps with the same start and settings {_never_had(records, replaced, earlier)}."
    )


@_says("separate_run")
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


@_says("models_covered")
def _models_covered(earlier: str) -> str:
    later = "Models that are later trained from this one are covered as well, and later requests may depend on them."
    return f"{_EARLIER_MODELS[earlier]}{later}"


_always("removed_unused", "From its request on, no step uses a removed record.")
_always(
    "requests_independent",
    "Which records these requests remove, and when, does not depend on models or on anything else that was computed with "
    "the noise of this run.",
)
_always(
    "nothing_released_meanwhile",
    "Between a request and the end of its further steps nothing is released: no iterate, no metric, no stopping time. The "
    "number of steps is fixed before they begin.",
)
_always("ledger_complete", "Whatever was computed from this data set and released is an entry of this ledger.")


@_says("releases_adaptive")
def _releases_adaptive(adaptive: bool) -> str:
    if adaptive:
        return "Which release came next, and how, depended on the data only through earlier entries."
    return "All entries were decided before the first of them was released."


@_says("stated_by_owner")
def _stated_by_owner(entries: tuple[int, ...]) -> str:
    which = "guarantee of entry" if len(entries) == 1 else "guarantees of entries"
    return f"The {which} {listed(entries)} {'is' if len(entries) == 1 else 'are'} stated by the owner, not proved."


# Caveats.

_DO_NOT = "DO NOT RELEASE: "


@_says("noise_seeded")
def _noise_seeded(generator: str) -> str:
    whose, advice = (
        ("a seeded PyTorch generator", "; call torch.seed() before training")
        if generator == "torch"
        else ("a seed", "")
    )
    return f"{_DO_NOT}the noise came from {whose}, and anyone who knows the seed can subtract it{advice}"


_always(
    "order_seeded",
    f"{_DO_NOT}batches came from a seeded PyTorch generator, and anyone who knows the seed knows the records of each step; "
    "call torch.seed() before training, or use a loader without generator=",
)


@_says("leaked")
def _leaked(what: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    return f"{_DO_NOT}{releases(what)} came from the records without noise, and no theorem covers that"


@_says("stopped_early")
def _stopped_early(taken: int, planned: int) -> str:
    when = f"after {taken} of {planned} steps"
    return f"{_DO_NOT}the training stopped {when}, and the decision to stop may depend on the records"


_always("trace_kept", f"{_DO_NOT}the trace of the iterates was kept, and epsilon covers the last iterate only")
_always("of_one_person", "it is for the records of one person alone")
_NOT_COUNTED = "NOT ACCOUNTED FOR: "
_WARNINGS: dict[str, tuple[Sentence, str]] = {}
_SETTINGS = {  # in Python, and on the command line
    "classes": ("classes=", "--classes"),
    "delta": ("delta=", "--delta"),
    "feature_norm": ("feature_norm=", "--feature-norm"),
    "seed": ("random_state=", "--seed"),
    "target_bound": ("target_bound=", "--target-bound"),
    "zero_out": ("adjacency=li.ZERO_OUT", "--adjacency zero-out"),
}


def warning(leak: Fact, options: bool = False) -> str:
    """A leak, and what to do about it; `options`: with the names that settings have on the command line."""
    made, what_to_do = _WARNINGS[leak.code]
    named = {name: ways[options] for name, ways in _SETTINGS.items()}
    return f"{made(**dict(leak.values))} {what_to_do.format(**named)}"


def _leak(code: str, what_to_do: str) -> Callable[[Sentence], Sentence]:
    """Register the sentence of a leak, and what to do about it: a text with names of `_SETTINGS`."""

    def register(made: Sentence) -> Sentence:
        _WARNINGS[code] = made, what_to_do
        _SENTENCES[code] = lambda **values: f"{_NOT_COUNTED}{made(**values)}"
        return made

    return register


@_leak(
    "called_by",
    "Use PrivateGridSearchCV, choose settings on public data, or compose the guarantees with li.compose and release scores "
    "with noise.",
)
def _called_by(callers: str) -> str:
    return (
        f"This fit was called by {callers}: it may be one of several on the same data, or on data that were changed by "
        "looking at them. epsilon covers one fit alone, and comparing scores is not private at all."
    )


@_leak(
    "learnt_before",
    "Use PrivatePreparation, or a step that treats each row alone, such as Normalizer or EachRow(function).",
)
def _learnt_before(steps: str) -> str:
    return (
        f"{steps} in this pipeline learnt from the same records without noise. This is released with the model, and epsilon "
        "does not cover it."
    )


@_leak("classes_read", "Set {classes} to all possible labels.")
def _classes_read(count: int) -> str:
    return f"classes was not given: the {count} labels were read from the data, which reveals that each occurs."


@_leak(
    "target_bound_read", "Set {target_bound} to a bound that you know without the data; targets beyond it are clipped."
)
def _target_bound_read(bound: float) -> str:
    return f"target_bound was not given: the largest |y|, {bound:.4g}, was read from the data."


@_leak(
    "feature_norm_read",
    "Set {feature_norm} to a bound that you know without the data; longer rows are scaled down to it.",
)
def _feature_norm_read(norm: float) -> str:
    return (
        f"feature_norm was not given: the norm of the longest row, {norm:.4g}, was read from the data, and the scale of the "
        "noise now reveals it."
    )


@_leak("random_state_set", "Leave {seed} out before you release a model.")
def _random_state_set() -> str:
    return "random_state is set: anyone who knows it can subtract the noise, so this model is not private."


@_leak("delta_from_records", "Set {delta}.")
def _delta_from_records(records: int, delta: float) -> str:
    return f"delta was not given: 1/(10·{records}) = {delta:.3g} was used, which reveals the number of records."


@_leak(
    "records_counted",
    "Use {zero_out}, which needs the same noise and keeps the number of records public.",
)
def _records_counted(records: int) -> str:
    return (
        f"the number of records, {records}, was treated as public: noise and step sizes depend on it, but it is "
        "not where records are added or removed."
    )


@_leak("best_of_trials", "Use guarantee_ of the search.")
def _best_of_trials() -> str:
    return (
        "this model is the best of a random number of trials. Its guarantee is guarantee_ of the search, not that of one "
        "trial."
    )
