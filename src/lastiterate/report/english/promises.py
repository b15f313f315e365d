"""Sentences of what a run assumes: its execution, its loss, and what other libraries or a loop of one's own do."""

from __future__ import annotations

from lastiterate.report.english.words import SHORT, always, counted, says

# How a run is executed.


@says("start_independent", "the start does not depend on the data")
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


@says("batches", "batches are drawn as described, and secret where they are random")
def _batches(kind: str) -> str:
    return _BATCHES.get(kind, f"Batches are drawn as those of the kind {kind}, without looking at the data.")


@says("smaller_batch_divisor", "the smaller batch is divided as described")
def _smaller_batch_divisor(divided_by: int, own_size: bool) -> str:
    by = f"its own size, {divided_by}" if own_size else f"{divided_by}, as that of all others"
    return f"The gradient sum of the smaller batch at the end of each epoch is divided by {by}."


always(
    "noise",
    "The noise is Gaussian, independent at every step and coordinate, from a random generator that nobody can predict.",
    "nobody can predict the noise",
)
always("projected", "Every step ends with the projection on the domain.", "every step ends with the projection")
always(
    "record_unchanged",
    "A record has the same features and target every time it is used: no augmentation changes them.",
    "no augmentation",
)
always(
    "optimizer_sees_noisy_gradients",
    "The optimiser sees the data only through the noisy gradients, and its state starts from values that do not depend on "
    "the data.",
    "the optimiser sees only noisy gradients",
)
always(
    "gradients_bounded_everywhere",
    "The bound on gradients holds at every point that the optimiser may reach.",
    "the gradient bound holds everywhere",
)
always(
    "batches_not_adaptive",
    "Batches do not depend on earlier gradients or iterates.",
    "batches do not depend on iterates",
)
always(
    "schedules_public",
    "The divisor of gradient sums, all schedules and the number of steps are public and do not depend on the data.",
    "schedules do not depend on the data",
)
always(
    "no_batch_statistics",
    "No statistics of a batch are used: no batch normalisation, no loss of a batch, no norm of a noiseless gradient.",
    "no batch statistics",
)


@says("l2_in_full", "L2 regularisation applies to every weight")
def _l2_in_full(after_clipping: bool) -> str:
    return f"L2 regularisation applies to every weight at every step{', after clipping' if after_clipping else ''}."


@says("start_norm")
def _start_norm(at_most: float) -> str:
    return f"The first iterate has norm at most {at_most:g}." if at_most else "Training starts at zero."


SHORT["start_norm"] = lambda at_most: (
    f"the start has norm at most {at_most:g}" if at_most else "training starts at zero"
)


# The loss of a record.


def _range(least: float, most: float) -> str:
    return f"{least:.6g}" if least == most else f"{least:.6g} to {most:.6g}"


@says("clipped", "gradients are clipped per {per}")
def _clipped(least: float, most: float, per: str, classes: int) -> str:
    if per == "record":
        return f"Each record's gradient is clipped to norm {_range(least, most)} before anything else is done with it."
    return (
        f"Each record's gradient is clipped class by class, before anything else is done with it: in each of the {classes} "
        f"one-against-the-rest problems to norm {_range(least, most)}/√{classes}. One clip of all classes together is not "
        "covered, because it does not keep the loss convex."
    )


@says("gradient_change", "replacing a record changes its gradient by at most {at_most:.4g}")
def _gradient_change(at_most: float) -> str:
    return f"Replacing a record changes its gradient by at most {at_most:.6g}, at every point of the domain."


@says("gradient_norm", "each gradient has norm at most {at_most:.4g}")
def _gradient_norm(at_most: float, before_clipping: bool) -> str:
    before = ", before clipping" if before_clipping else ""
    return f"Each record's gradient has norm at most {at_most:.6g}{before}, at every point of the domain."


@says("feature_norm", "feature vectors have norm at most {at_most:g}")
def _feature_norm(at_most: float, intercept: bool) -> str:
    also = ", the constant feature of an intercept included" if intercept else ""
    return f"Every feature vector has norm at most {at_most:g}{also}."


@says("residual", "residuals are at most {at_most:g}")
def _residual(at_most: float) -> str:
    return f"Every residual |prediction − target| is at most {at_most:g} on the domain."


@says("pull_limit", "the pull limit of the softmax is applied")
def _pull_limit(together: float, each: float) -> str:
    return (
        "The gradient is that of the softmax loss with its pull limit applied: the wrong classes get a probability of at "
        f"most {together:g} together and {each:g} each, and of all such probabilities those of the largest likelihood. The "
        "gradient without this limit is not covered."
    )


@says("hessian", "Hessians lie between {low:g} and {high:g}")
def _hessian(low: float, high: float) -> str:
    return f"The Hessian of each record's loss lies between {low:g} and {high:g} on a neighbourhood of the domain."


always(
    "differentiable",
    "Each record's loss is differentiable; nothing is known of its second derivatives.",
    "each record's loss is differentiable",
)


@says("convex", "the loss of each {of} is convex as declared")
def _convex(modulus: float, of: str, before_clipping: bool) -> str:
    which = "The potential" if of == "potential" else "Each record's loss"
    shape = f"strongly convex with modulus {modulus:g}" if modulus else "convex"
    return f"{which} is {shape}{', before clipping' if before_clipping else ''}: this is assumed, not checked."


# An execution by other libraries, or by a loop of one's own.

always(
    "record_gradients_separate",
    "The gradient that PyTorch computes for a record does not depend on the other records of its batch. Some gradients were "
    "compared with those of single records, at the first step and after 1, 2, 4, 8, … steps.",
    "gradients of records are separate",
)


@says("collate_separate", "the collate function treats records separately")
def _collate_separate(compared: str) -> str:
    how = {
        "once": " A few records were compared with the same ones alone, once.",
        "impossible": " This was not compared, because the function uses random numbers, or fails on single records.",
        "never": "",
    }[compared]
    return f"What the collate function makes of a record does not depend on the rest of its batch.{how}"


always(
    "loader_to_model",
    "Between the loader and the model, no record is exchanged for another.",
    "no record is exchanged between loader and model",
)


@says("generator_unpredictable", "nobody can predict PyTorch's generator")
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


@says("exact_arithmetic", "the rounding of Opacus and PyTorch is negligible")
def _exact_arithmetic(precision: str, hidden: str) -> str:
    return (
        f"The arithmetic of Opacus and PyTorch is treated as exact: epsilon does not include the {precision} rounding of "
        f"gradients, their sums and the noise.{_HIDDEN_WEIGHTS[hidden]}"
    )


always(
    "criterion_reduction",
    "The criterion reduces the loss as loss_reduction says, so each record's gradient is clipped separately.",
    "the criterion reduces as declared",
)
always(
    "resumed_as_saved",
    "Weights and optimiser were those saved with the accountant's state when the training was resumed from it.",
    "the training was resumed from what was saved",
)
always(
    "loader_unseen",
    "The loader, which the accountant could not check, draws the batches of the run.",
    "the loader draws the batches of the run",
)


@says("steps_unseen", "{count} steps that were not seen are those of the run")
def _steps_unseen(count: int) -> str:
    return (
        f"For {counted(count, 'step')} the accountant could not check the optimiser: its update, learning rate and clip are "
        "those of the run."
    )


@says("trainer_seed_unused", "noise and batches do not come from the trainer's seed")
def _trainer_seed_unused(seed: str) -> str:
    return f"Neither noise nor batches come from the seed {seed} of the trainer, which others may know."


always(
    "durations_tell_nothing",
    "The duration of the training and its evaluations reveals nothing about the records.",
    "durations reveal nothing",
)
always(
    "statistics_public",
    "The running statistics of the batch normalisation come from public data, not from these records.",
    "running statistics are public",
)
always(
    "loop_follows_run",
    "The loop clips gradients, adds noise and draws batches as the run says; a callback cannot check this.",
    "the loop does as the run says",
)
always(
    "nothing_outside_logs",
    "Nothing that depends on the records was printed, written or sent outside the trainer's logs and checkpoints.",
    "nothing is sent outside the trainer's logs",
)
always(
    "metrics_public",
    "Everything named in public= was computed from public data and the parameters of the step at which it was logged.",
    "public= names public metrics only",
)
