"""What somebody probably meant who wrote a name that a run, or a part of one, has not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_OPTIMIZER = "; write optimizer=li.SGD(momentum=0.9), optimizer=li.Adam() or optimizer='the name of another'"
_WORDS = {
    "epochs": "; write steps = { epochs = … }, or steps=li.epochs(…) in Python",
    "ema": "; write released=li.EMA(decay=0.999)",
    "average": "; write released=li.AVERAGE(last=100)",
}
_OF_OPTIMISERS = ("momentum", "nesterov", "dampening", "optimiser", "adam", "betas", "beta1", "beta2")
# Words of PyTorch, Opacus and dp-accounting, and ours.
_MEANING = {
    "lr": "step_size",
    "learning_rate": "step_size",
    "eps": "floor",
    "noise_multiplier": "multiplier",
    "max_grad_norm": "clip",
    "l2_norm_clip": "clip",
    "sample_rate": "rate",
    "sampling_probability": "rate",
    "dataset_size": "records",
    "target_delta": "delta",
    "target_epsilon": "epsilon",
}
_OF_RUNS = ("step_size", "weight_decay", "steps", "released", "adjacency", "domain")


def hint(name: str, known: Iterable[str]) -> str:
    """A clause for the end of a refusal; empty where nothing comes to mind."""
    names, word = list(known), str(name).lower()
    if "beta1" in names and word == "betas":
        return "; write beta1=0.9, beta2=0.999"
    if "rate" in names and word == "batch_size":
        return "; write rate=batch_size/records"
    if "optimizer" in names and word in _OF_OPTIMISERS:
        return _OPTIMIZER
    if "steps" in names and word in _WORDS:
        return _WORDS[word]
    meant = _MEANING.get(word, word)
    if meant in names:
        return f"; did you mean {meant}"
    if meant in _OF_RUNS:
        return f"; use {meant} of the run: li.Run({meant}=…)"
    return closest(name, names)


def closest(name: str, known: Iterable[str]) -> str:
    found = get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {found[0]}" if found else ""
