"""Arguments that a function or class does not have are refused with the name that was probably meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from lastiterate.algorithms.hints import hint
from lastiterate.errors import InvalidInput

Named = TypeVar("Named", bound=Callable[..., Any])


class UnknownArgument(InvalidInput, TypeError):
    """An argument that is not there: a `TypeError`, as Python raises, that says what to write instead."""


def names_arguments(made: Named, what: str | None = None) -> Named:
    """Decorates a function, or a class that has its `__init__` already; `what` its arguments are called."""
    inner = made.__init__ if inspect.isclass(made) else made
    names = [name for name in inspect.signature(inner).parameters if name != "self"]
    by_name = all(one.kind is one.KEYWORD_ONLY for one in inspect.signature(made).parameters.values())
    known = what or f"an argument of {made.__name__}, which takes {', '.join(names)}"
    first = 1 if inspect.isclass(made) else 0

    @functools.wraps(inner)
    def checked(*given: Any, **named: Any) -> Any:
        for name in named:
            if name not in names:
                raise UnknownArgument(f"{name} is not {known}{hint(name, names)}.", field=name)
        if by_name and len(given) > first:
            raise UnknownArgument(
                f"{made.__name__} takes {', '.join(names)}, each by its name. Got {given[first]!r:.60} without one."
            )
        return inner(*given, **named)

    if not inspect.isclass(made):
        return checked  # type: ignore[return-value]
    made.__init__ = checked  # type: ignore[method-assign]
    return made
