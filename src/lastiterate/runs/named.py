"""Arguments that a function or class does not have are refused with the name that was probably meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, TypeVar

from lastiterate.errors import InvalidInput

Named = TypeVar("Named", bound=Callable[..., Any])


class UnknownArgument(InvalidInput, TypeError):
    """Error for an unknown argument: a `TypeError`, as Python raises, that says what to write instead."""


def names_arguments(made: Named, code: str = "unknown_argument") -> Named:
    """Make a function, or a class with its own `__init__`, refuse unknown arguments with this `code`."""
    inner = made.__init__ if inspect.isclass(made) else made
    names = [name for name in inspect.signature(inner).parameters if name != "self"]
    by_name = all(one.kind is one.KEYWORD_ONLY for one in inspect.signature(made).parameters.values())
    first = 1 if inspect.isclass(made) else 0

    @functools.wraps(inner)
    def checked(*given: Any, **named: Any) -> Any:
        for name in named:
            if name not in names:
                raise UnknownArgument(code, field=name, of=made.__name__, known=", ".join(names), **hint(name, names))
        if by_name and len(given) > first:
            raise UnknownArgument(
                "argument_unnamed", of=made.__name__, known=", ".join(names), got=f"{given[first]!r:.60}"
            )
        return inner(*given, **named)

    if not inspect.isclass(made):
        return checked  # type: ignore[return-value]
    made.__init__ = checked  # type: ignore[method-assign]
    return made


# Names that were probably meant.


_OF_OPTIMISERS = ("momentum", "nesterov", "dampening", "optimiser", "adam", "betas", "beta1", "beta2")
# Words of PyTorch, Opacus and dp-accounting, and ours.
_MEANING = {
    "lr": "step_size",
    "learning_rate": "step_size",
    "noise_multiplier": "multiplier",
    "max_grad_norm": "clip",
    "l2_norm_clip": "clip",
    "sample_rate": "rate",
    "sampling_probability": "rate",
    "dataset_size": "records",
    "target_delta": "delta",
    "target_epsilon": "epsilon",
}
_OTHERWISE = ("epochs", "ema", "average")
_OF_RUNS = ("step_size", "weight_decay", "steps", "released", "adjacency", "domain")


def hint(name: str, known: Iterable[str]) -> dict[str, str]:
    """Return what a refusal adds: the name `meant` (may be empty), one `of_run`, or what to `write` instead."""
    names, word = list(known), str(name).lower()
    if "betas" in names and word in ("beta1", "beta2"):
        return {"write": "betas"}
    if "rate" in names and word == "batch_size":
        return {"write": "rate"}
    if "optimizer" in names and word in _OF_OPTIMISERS:
        return {"write": "optimizer"}
    if "steps" in names and word in _OTHERWISE:
        return {"write": word}
    meant = _MEANING.get(word, word)
    if meant not in names and meant in _OF_RUNS:
        return {"of_run": meant}
    return {"meant": meant if meant in names else closest(name, names)}


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name most like this one, or an empty string."""
    return next(iter(get_close_matches(str(name), list(known), n=1)), "")
