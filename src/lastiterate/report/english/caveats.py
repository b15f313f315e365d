"""Sentences of caveats, which void a guarantee, and of what was learnt outside the mechanism, with advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lastiterate.report.english.claims import releases
from lastiterate.report.english.words import SENTENCES, Sentence, always, says

if TYPE_CHECKING:
    from lastiterate.facts import Fact

_DO_NOT = "DO NOT RELEASE: "


@says("noise_seeded")
def _noise_seeded(generator: str) -> str:
    whose, advice = (
        ("a seeded PyTorch generator", "; call torch.seed() before training")
        if generator == "torch"
        else ("a seed", "")
    )
    return f"{_DO_NOT}the noise came from {whose}, and anyone who knows the seed can subtract it{advice}"


always(
    "order_seeded",
    f"{_DO_NOT}batches came from a seeded PyTorch generator, and anyone who knows the seed knows the records of each step; "
    "call torch.seed() before training, or use a loader without generator=",
)


@says("leaked")
def _leaked(what: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    return f"{_DO_NOT}{releases(what)} came from the records without noise, and no theorem covers that"


@says("stopped_early")
def _stopped_early(taken: int, planned: int) -> str:
    when = f"after {taken} of {planned} steps"
    return f"{_DO_NOT}the training stopped {when}, and the decision to stop may depend on the records"


always("trace_kept", f"{_DO_NOT}the trace of the iterates was kept, and epsilon covers the last iterate only")
always("of_one_person", "it is for the records of one person alone")
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
        SENTENCES[code] = lambda **values: f"{_NOT_COUNTED}{made(**values)}"
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
