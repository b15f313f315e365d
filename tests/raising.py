"""Errors by what they say as data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lastiterate.errors import LastIterateError


@contextmanager
def raises(
    code: str, field: str | None = None, *, kind: type[LastIterateError] = LastIterateError, **values: Any
) -> Iterator[pytest.ExceptionInfo[LastIterateError]]:
    """An error of the library with this code and, where they are given, this field and these values is raised inside."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.code == code, str(error)
    assert field is None or error.field == field, str(error)
    held = error.values | {"got": error.got, "allowed": error.allowed}
    assert {name: held.get(name) for name in values} == values, str(error)
