"""What somebody probably meant who wrote a name that a run, or a part of one, has not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

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
    """What a refusal adds: the name that was `meant`, one `of_run`, or what to `write` instead; `meant` may be empty."""
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
    """The known name that is most like this one; empty where none is."""
    return next(iter(get_close_matches(str(name), list(known), n=1)), "")
