"""What somebody probably meant who wrote an entry that a run has not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_NOT_COVERED = (
    "; momentum and Adam are not covered by the theorems on hidden states: use plain gradient steps, "
    "or account by composition with li.notions.subsampled_gaussian"
)
_WORDS = {
    "epochs": "; write steps = { epochs = … }",
    "lr": "; did you mean step_size",
    "learning_rate": "; did you mean step_size",
}
_OF_OTHER_OPTIMISERS = (
    "momentum",
    "nesterov",
    "dampening",
    "optimizer",
    "optimiser",
    "adam",
    "betas",
    "beta1",
    "beta2",
)


def hint(name: str, known: Iterable[str]) -> str:
    """A clause for the end of a refusal; empty where nothing comes to mind."""
    if str(name).lower() in _OF_OTHER_OPTIMISERS:
        return _NOT_COVERED
    return _WORDS.get(name) or closest(name, known)


def closest(name: str, known: Iterable[str]) -> str:
    found = get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {found[0]}" if found else ""
