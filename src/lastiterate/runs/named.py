"""Arguments that a function or class does not have are refused with the name that was probably meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from lastiterate.errors import InvalidInput
from lastiterate.runs.hints import hint

Named = TypeVar("Named", bound=Callable[..., Any])


class UnknownArgument(InvalidInput, TypeError):
    """An argument that is not there: a `TypeError`, as Python raises, that says what to write instead."""


def names_arguments(made: Named, code: str = "unknown_argument") -> Named:
    """Decorates a function, or a class that has its `__init__` already; `code` of the refusal."""
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
