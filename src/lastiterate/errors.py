"""The exceptions, and the one-line checks that raise them: name, requirement, what was got, what to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["BudgetExceeded", "Incompatible", "InvalidInput", "LastIterateError", "PrivacyLeak", "Unavailable"]

_LONGEST = 300  # characters of a message
_ENDING = 120  # of them kept from the end, where it says what to do


class LastIterateError(Exception):
    """The base class of the errors of this library. Messages have one line of at most 300 characters.

    `code` says what went wrong, and `values` with which names and numbers; `report/messages` makes the sentence. `field`:
    the name of the wrong argument or entry, if there is one. `allowed` and `got`: what it must be, and what it was.
    """

    def __init__(
        self, code: str, *, field: str | None = None, allowed: str | None = None, got: str | None = None, **values: Any
    ) -> None:
        self.code, self.field, self.allowed, self.got, self.values = code, field, allowed, got, values
        super().__init__(one_line(worded(code, **self._given)))

    @property
    def _given(self) -> dict[str, Any]:
        """The values that the sentence is made of."""
        named = {"field": self.field, "allowed": self.allowed, "got": self.got}
        return {name: value for name, value in named.items() if value is not None} | self.values

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self.code, self._given)


def _made_again(kind: type[LastIterateError], code: str, given: dict[str, Any]) -> LastIterateError:
    return kind(code, **given)


def worded(code: str, **values: Any) -> str:
    """The text that `report/messages` has for a code and its values."""
    from lastiterate.report.messages import message

    return message(code, values)


def one_line(message: str) -> str:
    """Return the message on one printable line, escaped and with its middle left out if it is long."""
    text = message if isinstance(message, str) else shown(message)
    line = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - _ENDING - 3]} … {line[-_ENDING:]}"


class InvalidInput(LastIterateError, ValueError):
    """An argument is outside the range that the function accepts."""


def must_be(field: str, allowed: str, got: str, advice: str = "", *, called: str = "") -> InvalidInput:
    """The error of a value that is not what it must be, with advice; `called`: the name of the field in its sentence."""
    return InvalidInput("must_be", field=field, allowed=allowed, got=got, advice=advice, called=called)


class Incompatible(LastIterateError, ValueError):
    """Two guarantees cannot be combined, because they have different adjacencies."""


class Unavailable(LastIterateError, ValueError):
    """The requested quantity does not exist for this guarantee or run."""


class BudgetExceeded(LastIterateError, ValueError):
    """A release does not fit into what is left of a budget; nothing was recorded."""


class PrivacyLeak(UserWarning):
    """Something was learnt from the data outside the mechanism, or its noise can be reproduced.

    `leak` is the fact, where the report has it as a caveat.
    """

    def __init__(self, text: str, leak: Any = None) -> None:
        super().__init__(text)
        self.leak = leak


@dataclass(frozen=True)
class Interval:
    """A real interval; its text is the one that error messages show."""

    low: float
    high: float
    low_included: bool = False
    high_included: bool = False

    def holds(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        above = values >= self.low if self.low_included else values > self.low
        below = values <= self.high if self.high_included else values < self.high
        return above & below

    def __str__(self) -> str:
        return f"{'[' if self.low_included else '('}{self.low:g}, {self.high:g}{']' if self.high_included else ')'}"


class PublicEnum(Enum):
    """An enumeration whose members are public names of the library and are shown as such."""

    def __repr__(self) -> str:
        return f"li.{self.name}"


Choice = TypeVar("Choice", bound=Enum)

FINITE = Interval(-math.inf, math.inf)
POSITIVE = Interval(0.0, math.inf)
NEGATIVE = Interval(-math.inf, 0.0)
NON_NEGATIVE = Interval(0.0, math.inf, low_included=True)
INSIDE_UNIT = Interval(0.0, 1.0)
UNIT = Interval(0.0, 1.0, low_included=True, high_included=True)
RATE = Interval(0.0, 1.0, high_included=True)
ABOVE_ONE = Interval(1.0, math.inf)
MU = Interval(0.0, 1e150, low_included=True, high_included=True)  # its square is a float
POSITIVE_MU = Interval(0.0, 1e150, high_included=True)


def checked_array(name: str, values: ArrayLike, within: Interval) -> NDArray[np.float64]:
    """`values` as float64, every entry inside `within` (NaN never is)."""
    array = _as_floats(name, values, f"a float, or floats, in {within}")
    outside = ~within.holds(array)
    if outside.any():
        raise must_be(name, f"in {within}", _shown(array[outside].flat[0]))
    return array


def checked_lists(
    first: tuple[str, Any, Interval], second: tuple[str, Any, Interval]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two equally long lists with at least one entry, each given as (name, values, interval)."""
    one, two = np.atleast_1d(checked_array(*first)), np.atleast_1d(checked_array(*second))
    if one.ndim != 1 or one.shape != two.shape or one.size == 0:
        raise must_be(
            second[0],
            "two equally long lists",
            f"shapes {one.shape} and {two.shape}",
            called=f"{first[0]} and {second[0]}",
        )
    return one, two


def checked_number(name: str, value: Any, within: Interval) -> float:
    """`value` as a Python float inside `within`."""
    array = _as_floats(name, value, f"a float in {within}")
    if array.ndim != 0:
        raise must_be(name, f"a float in {within}", f"an array of shape {array.shape}")
    if not within.holds(array):
        raise must_be(name, f"a float in {within}", _shown(array))
    return float(array)


def check_fields(value: Any, within: Interval, *names: str) -> None:
    """Replace these fields of a frozen value by floats, each checked to be inside `within`."""
    for name in names:
        object.__setattr__(value, name, checked_number(name, getattr(value, name), within))


def checked_count(name: str, value: Any, least: int = 1) -> int:
    """`value` as a Python int, at least `least`; 3.0 is accepted, 3.5, True and "3" are not."""
    number = _as_floats(name, value, f"an integer >= {least}")
    if number.ndim != 0 or not math.isfinite(number) or number != int(number) or number < least:
        raise must_be(name, f"an integer >= {least}", shown(value))
    return int(value)


def checked_choice(name: str, value: Any, kind: type[Choice]) -> Choice:
    """A member of the enumeration `kind`, given as such or by its name in small letters."""
    named = {member.name.lower(): member for member in kind}
    found = named.get(value) if isinstance(value, str) else value
    if not isinstance(found, kind):
        raise must_be(name, f"one of {', '.join(map(repr, named))}", shown(value))
    return found


def _as_floats(name: str, values: Any, requirement: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise must_be(name, requirement, f"a {type(values).__name__}") from error
    if array.dtype.kind not in "iuf":
        raise must_be(name, requirement, shown(values))
    return array.astype(np.float64)


def _shown(value: Any) -> str:
    return f"{float(value):.6g}"


def shown(value: Any) -> str:
    """Return the repr of a value, or its type where Python refuses, as for integers of thousands of digits."""
    try:
        return repr(value)
    except Exception:
        return f"a {type(value).__name__}"


def __dir__() -> list[str]:
    return __all__
