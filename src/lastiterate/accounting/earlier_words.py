"""Assumptions in the words of earlier versions: certificates that were written in them are still accepted.

Each pair has the same meaning. What a verdict shows are always the words of this version.
"""

from __future__ import annotations

from typing import Any

_CHANGED = (
    (
        "one record of the first contributes nothing in the second: no gradient, and its slot stays.",
        "one record of the first is zeroed out in the second: it contributes no gradient, and its slot stays.",
    ),
    (
        "each may contribute nothing in the second, no gradient, and its slot stays;",
        "each may be zeroed out in the second: it contributes no gradient, and its slot stays;",
    ),
    (
        "the sizes of batches and what sums are divided by are public.",
        "the batch sizes and the divisor of gradient sums are public.",
    ),
    (
        "What sums are divided by is public and does not depend",
        "The divisor of gradient sums is public and does not depend",
    ),
    (
        "what sums are divided by is public and does not depend",
        "the divisor of gradient sums is public and does not depend",
    ),
    ("What sums are divided by, all schedules", "The divisor of gradient sums, all schedules"),
    (
        "no choice of hyperparameters by looking at it, but for what was released beforehand.",
        "no hyperparameter chosen by looking at the data, except what was released before training.",
    ),
    ("no choice of hyperparameters by looking at it.", "no hyperparameter chosen by looking at the data."),
    (
        "depends on the data through what was released beforehand alone, and lies in the domain.",
        "depends on the data only through what was released before training, and lies in the domain.",
    ),
    (
        "The noise is Gaussian, fresh at every step and coordinate, from a generator nobody can predict.",
        "The noise is Gaussian, independent at every step and coordinate, from a random generator that nobody can predict.",
    ),
    ("at each of its turns: no augmentation changes them.", "every time it is used: no augmentation changes them."),
    (
        "What was released beforehand about these records is mu-GDP",
        "What was released about these records before training is mu-GDP",
    ),
    (
        "everything that training was chosen by: how features were prepared,",
        "every choice for training that depends on the data: feature preparation,",
    ),
    (
        "Whatever came out of it, all that is assumed of training holds.",
        "The assumptions on training hold for each of its possible outcomes.",
    ),
    ("The update (", "The optimiser ("),
    ("sees the data through the noisy gradients alone,", "sees the data only through the noisy gradients,"),
    ("and whatever it remembers starts from values", "and its state starts from values"),
    (
        "The bound on gradients holds wherever the optimiser may go, also where earlier noisy gradients have led it.",
        "The bound on gradients holds at every point that the optimiser may reach.",
    ),
    (
        "Batches do not depend on what was computed before: which records are drawn next, no gradient decides.",
        "Batches do not depend on earlier gradients or iterates.",
    ),
    ("an empty batch moves nothing but its noise;", "an empty batch contributes only noise;"),
)

_WHOLE = {
    "The first iterate has norm at most 0.": "Training starts at zero."
}  # the beginning of others, such as of 0.5


def in_todays_words(sentences: Any) -> Any:
    """The same list of sentences; anything else is returned as it is."""
    if not isinstance(sentences, list):
        return sentences
    return [_today(one) if isinstance(one, str) else one for one in sentences]


def _today(sentence: str) -> str:
    for earlier, today in _CHANGED:
        sentence = sentence.replace(earlier, today)
    return _WHOLE.get(sentence, sentence)
