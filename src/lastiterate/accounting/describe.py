"""A run in words, and the assumptions that its owner must guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lastiterate.accounting.groups import numbered
from lastiterate.algorithms.arithmetic import EXACT
from lastiterate.algorithms.per_step import extremes, per_step_shown
from lastiterate.algorithms.run import Run
from lastiterate.facts import Fact
from lastiterate.numerics.arrays import Floats
from lastiterate.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT

_NEIGHBOURS = {
    REPLACE_ONE: "Two data sets are neighbours if they differ in one record, replaced by another; their size is public.",
    ZERO_OUT: (
        "Two data sets are neighbours if one record of the first is zeroed out in the second: it contributes no gradient, "
        "and its slot stays. The number of records, the batch sizes and the divisor of gradient sums are public."
    ),
    ADD_OR_REMOVE_ONE: (
        "Two data sets are neighbours if the second has one record more or less. The divisor of gradient sums is public and "
        "does not depend on the number of records."
    ),
}
_OF_USERS = {
    REPLACE_ONE: "each may be replaced by another; the number of records is public.",
    ZERO_OUT: (
        "each may be zeroed out in the second: it contributes no gradient, and its slot stays; the number of records, the "
        "batch sizes and the divisor of gradient sums are public."
    ),
    ADD_OR_REMOVE_ONE: (
        "each may be added or removed; the divisor of gradient sums is public and does not depend on the number of records."
    ),
}
_SECRECY = (
    "Nothing else that was computed from the data is released: no other iterate, no metric or stopping time, no "
    "hyperparameter chosen by looking at the data."
)
_START = "The first iterate does not depend on the data, and lies in the domain."
_SECRECY_AFTERWARDS = (
    "Nothing else that was computed from the data is released: no other iterate, no metric or stopping time, no "
    "hyperparameter chosen by looking at the data, except what was released before training."
)
_START_AFTERWARDS = (
    "The first iterate depends on the data only through what was released before training, and lies in the domain."
)
_NOISE = (
    "The noise is Gaussian, independent at every step and coordinate, from a random generator that nobody can predict."
)

_SAME = "A record has the same features and target every time it is used: no augmentation changes them."


def described(run: Run) -> list[str]:
    """The run, line by line."""
    process = run.process
    lines = [
        f"{run.steps} steps{_epochs(run)}, {run.batches.described}",
        f"loss: {_loss(run)}",
        f"step size {per_step_shown(run.step_size)}, noise {run.noise.described}",
        f"domain: {run.domain.described}",
        f"per step, on the iterate: sensitivity {_range(process.sensitivity)}, noise {_range(process.noise)}"
        + (f", Lipschitz constant {_range(process.lipschitz)}" if process.update.plain else " (for a plain step)"),
    ]
    if not process.update.plain:
        lines.insert(3, f"optimiser: {process.update.described}")
    if run.prox is not None:
        lines.insert(3, f"proximal map of {run.prox}")
    if run.weight_decay:
        lines.insert(3, f"weight decay {run.weight_decay:g}")
    if run.arithmetic != EXACT:
        lines.append(
            f"floating-point rounding: the sensitivity is multiplied by up to {run.arithmetic.factor:.9g}, and rounding of "
            f"iterates adds {2 * run.arithmetic.displacement:.2g} to mu; both are included in epsilon"
        )
    if run.beforehand_mu:
        lines.append(
            f"released before training, about the same records: mu = {run.beforehand_mu:g} of Gaussian differential "
            "privacy, included in epsilon"
        )
    if run.user_records > 1:
        lines.append(f"privacy unit: one user with up to {run.user_records} records, all included in epsilon")
    return lines


def promises(run: Run, releases: tuple[int, ...], members: tuple[int, ...] = ()) -> list[str]:
    """The assumptions that no program can check. Certificates hold these very sentences.

    `members`: the records of the person whom the guarantee is for, if they were named.
    """
    released = _released_alone(run, releases)
    lines = [_neighbours(run, members), f"{released} {_SECRECY}", _START, run.batches.promise, _NOISE]
    if run.beforehand_mu:
        lines[1:3] = [_beforehand(run.beforehand_mu), f"{released} {_SECRECY_AFTERWARDS}", _START_AFTERWARDS]
    lines.extend(run.batches.also_promised(run.noise.on_sum))
    lines.extend(_optimizer_promises(run))
    lines.extend(_gradient_promises(run))
    lines.extend(run.loss.promises)
    lines.extend(_convexity_promise(run))
    if _pushes_see_features(run):
        lines.append(_SAME)
    if run.loss.l2 or run.weight_decay:
        lines.append(
            "The l2 term acts on the iterate in full at every step" + (", after clipping." if run.clip else ".")
        )
        at_most = f"The first iterate has norm at most {run.start_norm:g}."
        lines.append(at_most if run.start_norm else "Training starts at zero.")
    if math.isfinite(run.domain.diameter):
        lines.append("Every step ends with the projection on the domain.")
    return lines


def _neighbours(run: Run, members: tuple[int, ...]) -> str:
    if run.user_records == 1 and not members:
        return _NEIGHBOURS[run.adjacency]
    if members:
        whose = f"records {numbered(members)} of the data, counted from 0, which are all records of one person"
        return f"Two data sets are neighbours if they differ in {whose}: {_OF_USERS[run.adjacency]}"
    return (
        "Two data sets are neighbours if they differ in records of one user, anywhere in the data: "
        f"{_OF_USERS[run.adjacency]} No user has more than {run.user_records} records."
    )


def _beforehand(mu: float) -> str:
    return (
        f"What was released about these records before training is mu-GDP with mu at most {mu!r}, under the same "
        "neighbours, and includes every choice for training that depends on the data: feature preparation, "
        "hyperparameters, the first iterate. The assumptions on training hold for each of its possible outcomes."
    )


def _released_alone(run: Run, releases: tuple[int, ...]) -> str:
    if not run.released.plain:
        also = f", as it was after {_listed(releases)} and at the end," if releases else ""
        return f"Only {run.released.called}{also} is released."
    if not releases:
        return "Only the last iterate is released."
    return f"Only the iterates after {_listed(releases)} and the last are released."


def _optimizer_promises(run: Run) -> Iterator[str]:
    """What makes an optimiser post-processing of noisy gradients."""
    if run.process.update.plain:
        return
    optimizer = run.optimizer
    yield (
        f"The optimiser ({optimizer.described}) sees the data only through the noisy gradients, and its state starts from "
        "values that do not depend on the data."
    )
    yield "The bound on gradients holds at every point that the optimiser may reach."
    yield "Batches do not depend on earlier gradients or iterates."
    yield "The divisor of gradient sums, all schedules and the number of steps are public and do not depend on the data."
    yield "No statistics of a batch are used: no batch normalisation, no loss of a batch, no norm of a noiseless gradient."


def _pushes_see_features(run: Run) -> bool:
    """Whether noise before a turn may count, and the push sees the iterate through the record's features alone."""
    several = run.batches.passes and run.batches.per_epoch > 1 and run.optimizer.linear is not None
    return several and run.loss.linear and not isinstance(run.process.smooth, Fact)


def _gradient_promises(run: Run) -> Iterator[str]:
    if run.clip is not None:
        yield run.loss.clip_promise(run.clip)
    elif math.isfinite(extremes(run.process.sensitivity)[1]):
        loss, everywhere = run.loss, "at every point of the domain"
        if run.adjacency.replaces:
            yield f"Replacing a record changes its gradient by at most {loss.gradient_sensitivity:.6g}, {everywhere}."
        else:
            yield f"Each record's gradient has norm at most {loss.gradient_bound:.6g}, {everywhere}."


def _convexity_promise(run: Run) -> Iterator[str]:
    """The modulus of a loss that only its owner knows; that of the others is a fact."""
    loss = run.loss
    if not loss.declared or loss.curvature < 0 or not math.isfinite(loss.smoothness):
        return
    which = "The potential" if run.noise.of_a_potential and run.batches.records == 1 else "Each record's loss"
    shape = f"strongly convex with modulus {loss.curvature:g}" if loss.curvature else "convex"
    yield f"{which} is {shape}{', before clipping' if run.clip else ''}: this is assumed, not checked."


def _epochs(run: Run) -> str:
    per_epoch = run.batches.per_epoch
    if per_epoch == 1:
        return ""
    whole, rest = divmod(run.steps, per_epoch)
    return f" ({whole} epochs of {per_epoch}{f' and {rest} more' if rest else ''})"


def _loss(run: Run) -> str:
    loss = run.loss
    strongly = run.convex and (loss.l2 > 0 or (loss.curvature > 0 and run.clip is None))
    shape = "strongly convex" if strongly else "convex" if run.convex else "not convex"
    clip = "" if run.clip is None else f", clipped at {per_step_shown(run.clip)}"
    l2 = f", l2 {loss.l2:g}" if loss.l2 else ""
    return f"{loss.described}{clip}{l2}: {shape}"


def _range(values: Floats) -> str:
    low, high = extremes(values)
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


def _listed(releases: tuple[int, ...]) -> str:
    return f"{numbered(releases)} steps"
