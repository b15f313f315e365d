"""What a theorem needs and a run does not have, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable


class Lacks(str):
    """The reason "needs `needed`; this run has none", with advice; several of them are told together."""

    needed: str
    advice: str

    def __new__(cls, needed: str, advice: str = "") -> Lacks:
        made = super().__new__(cls, _sentence([needed], [advice]))
        made.needed, made.advice = needed, advice
        return made


def together(reasons: Iterable[str]) -> tuple[str, ...]:
    """All that is lacking as the first reason, then the others."""
    given = list(reasons)
    lacking = [one for one in given if isinstance(one, Lacks)]
    others = [one for one in given if not isinstance(one, Lacks)]
    told = [_sentence([one.needed for one in lacking], [one.advice for one in lacking])] if lacking else []
    return (*told, *others)


def one_text(reasons: Iterable[str]) -> str:
    """Reasons as sentences, for the place after a colon: the first begins with a small letter; no full stop at the end."""
    first, *others = reasons
    return ". ".join([first, *(other[:1].upper() + other[1:] for other in others)])


def _sentence(needed: list[str], advice: list[str]) -> str:
    has = {1: "none", 2: "neither"}.get(len(needed), "none of these")
    return ". ".join([f"needs {_listed(needed)}; this run has {has}", *filter(None, advice)])


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
