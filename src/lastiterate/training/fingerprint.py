"""Fingerprints of functions and arrays: equal in every process, different for different values.

A function is its name, its code, and the values that it closes over or looks up in its module, as far as they are data or
functions themselves. Of an object that says nothing about itself, only the type is known.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from lastiterate.errors import InvalidInput

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_BYTES_AT_ONCE = 1 << 22
_NAMED = (type, types.BuiltinFunctionType, types.ModuleType, np.ufunc)


def fingerprint(value: Any) -> str:
    """Return a fingerprint that is equal for equal values, as far as they can be told apart."""
    return hashlib.sha256(json.dumps(_Fingerprints().of(value)).encode()).hexdigest()


def array_fingerprint(array: np.ndarray) -> list[Any]:
    """Type, shape and a digest of the content, of which no more than a few rows are copied."""
    digest, rows = ArrayDigest(array.dtype, array.shape), np.atleast_1d(array)
    at_once = max(1, _BYTES_AT_ONCE // max(1, rows.nbytes // max(1, len(rows))))
    for first in range(0, len(rows), at_once):
        digest.add(rows[first : first + at_once])
    return digest.fingerprint()


class ArrayDigest:
    """The fingerprint of an array that is shown row by row, from the first to the last."""

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        if dtype.hasobject:
            raise InvalidInput("checkpoint_of_objects", got=f"{dtype}")
        self._dtype, self._shape, self._digest = dtype, shape, hashlib.sha256()

    def add(self, rows: np.ndarray) -> None:
        """Add the next rows to the digest."""
        if self._dtype.itemsize:
            whole = np.ascontiguousarray(rows, self._dtype).reshape(-1)
            self._digest.update(whole.view(np.uint8).data)  # dates have no buffer of their own

    def fingerprint(self) -> list[Any]:
        """Return the fingerprint after all rows have been added."""
        return ["array", str(self._dtype.descr), list(self._shape), self._digest.hexdigest()]


class _Fingerprints:
    """Fingerprints of nested values; what was seen before is named again, so that cycles end."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[int, Any]] = {}

    def of(self, value: Any) -> Any:
        """Return a fingerprint of the value that JSON can hold."""
        if isinstance(value, _PLAIN):
            return [type(value).__name__, repr(value)]
        if isinstance(value, os.PathLike):
            return ["path", os.fspath(value)]
        if isinstance(value, _NAMED):
            return [getattr(value, "__module__", None), getattr(value, "__qualname__", getattr(value, "__name__", ""))]
        if id(value) in self._before:
            return ["again", self._before[id(value)][0]]
        self._before[id(value)] = (len(self._before), value)
        return [type(value).__name__, *self._parts(value)]

    def _parts(self, value: Any) -> Iterator[Any]:
        match value:
            case np.ndarray() | np.generic():
                yield array_fingerprint(np.asarray(value)) if not value.dtype.hasobject else str(value.dtype)
            case tuple() | list():
                yield from map(self.of, value)
            case set() | frozenset():
                yield sorted(json.dumps(_Fingerprints().of(one)) for one in value)
            case Mapping():
                yield sorted(
                    ([json.dumps(_Fingerprints().of(key)), self.of(one)] for key, one in value.items()), key=repr
                )
            case types.CodeType():
                yield from (value.co_code.hex(), value.co_names, value.co_varnames, value.co_freevars)
                yield from map(self.of, value.co_consts)
            case types.FunctionType():
                yield from self._function(value)
            case types.MethodType():
                yield from (self.of(value.__func__), self.of(value.__self__))
            case functools.partial():
                yield from (self.of(value.func), self.of(value.args), self.of(value.keywords))
            case _:
                yield from self._object(value)

    def _function(self, function: types.FunctionType) -> Iterator[Any]:
        yield from (function.__module__, function.__qualname__, self.of(function.__code__))
        yield from (self.of(function.__defaults__), self.of(function.__kwdefaults__))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            yield [name, self._content(cell)]
        for name in sorted(_names_in(function.__code__)):
            if _matters(found := function.__globals__.get(name, types), function.__module__):
                yield [name, self.of(found)]

    def _content(self, cell: Any) -> Any:
        try:
            return self.of(cell.cell_contents)
        except ValueError:  # not bound yet
            return None

    def _object(self, value: Any) -> Iterator[Any]:
        yield from (type(value).__module__, type(value).__qualname__)
        if callable(describe := getattr(value, "checkpoint_identity", None)):
            yield self.of(describe())
        elif hasattr(value, "__array__"):
            yield _as_array(value)
        elif isinstance(value, Enum):
            yield value.name
        elif hasattr(value, "__wrapped__"):
            yield self.of(value.__wrapped__)
        elif is_dataclass(value):
            yield from (self.of(getattr(value, one.name, None)) for one in fields(value))
        elif callable(value):
            yield self.of(getattr(value, "__dict__", None))
        if isinstance(call := vars(type(value)).get("__call__"), types.FunctionType):
            yield self.of(call)


def _as_array(value: Any) -> Any:
    try:
        return array_fingerprint(np.asarray(value))
    except (TypeError, ValueError, RuntimeError):  # such as tensors that are being trained
        return None


def _names_in(code: types.CodeType) -> set[str]:
    inner = (_names_in(one) for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*inner)


def _matters(value: Any, module: str) -> bool:
    """Whether a global value belongs in a fingerprint: data, and functions of the same module."""
    if isinstance(value, types.FunctionType):
        return value.__module__ == module
    return isinstance(value, (*_PLAIN, np.ndarray, np.generic, tuple, list, dict, functools.partial))
