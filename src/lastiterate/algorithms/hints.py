"""What somebody probably meant who wrote an entry that a run has not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_OPTIMIZER = "; write optimizer=li.SGD(momentum=0.9), optimizer=li.Adam() or optimizer='the name of another'"
_WORDS = {
    "epochs": "; write steps = { epochs = … }",
    "lr": "; did you mean step_size",
    "learning_rate": "; did you mean step_size",
    "ema": "; write released=li.EMA(decay=0.999)",
    "average": "; write released=li.AVERAGE(last=100)",
}
_OF_OPTIMISERS = ("momentum", "nesterov", "dampening", "optimiser", "adam", "betas", "beta1", "beta2")


def hint(name: str, known: Iterable[str]) -> str:
    """A clause for the end of a refusal; empty where nothing comes to mind."""
    if str(name).lower() in _OF_OPTIMISERS:
        return _OPTIMIZER
    return _WORDS.get(name) or closest(name, known)


def closest(name: str, known: Iterable[str]) -> str:
    found = get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {found[0]}" if found else ""
