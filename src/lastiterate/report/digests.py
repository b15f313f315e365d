"""Digests that tie a report to a run, to the released model and to the data.

A plain digest of private data would be one more release: whoever can guess the data, all but one record say, can compute it
and see. So it is made with a secret key that stays with the owner, or of data that are public.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lastiterate.errors import InvalidInput, must_be, shown
from lastiterate.runs.files import read_text

PLAIN, KEYED = "sha256", "hmac-sha256"
_AT_ONCE = 1 << 20
_KEY = re.compile(r"[0-9a-f]{64}")


class _Digest(Protocol):
    def update(self, part: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


def digest_of(plain: Any) -> str:
    """SHA-256 of a run or certificate: its JSON with sorted names and without spaces."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def model_digest(model: Any) -> str:
    """“sha256:…” of what is released: a file, bytes, or arrays as numpy.save writes them."""
    return _ended(PLAIN, hashlib.sha256(), "model", model)


def data_digest(data: Any, key: str | Path | None, public: bool) -> str:
    """“hmac-sha256:…” by the key in a file, which is made if it is not there; of public data “sha256:…”."""
    if public:
        return _ended(PLAIN, hashlib.sha256(), "data", data)
    if key is None:
        raise InvalidInput(
            "data needs data_key, the name of a file with a secret key: a plain digest of private data lets anybody test "
            "guesses of the data. Give data_is_public=True if the data are public.",
            field="data_key",
        )
    return _ended(KEYED, hmac.new(_key_in(key), digestmod="sha256"), "data", data)


def _ended(kind: str, digest: _Digest, name: str, value: Any) -> str:
    for part in _parts(name, value):
        digest.update(part)
    return f"{kind}:{digest.hexdigest()}"


def _parts(name: str, value: Any) -> Iterator[bytes]:
    match value:
        case bytes():
            yield value
        case str() | Path():
            yield from _file(value)
        case tuple() | list():
            for one in value:
                yield _saved(name, one)
        case _:
            yield _saved(name, value)


def _file(path: str | Path) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while part := file.read(_AT_ONCE):
                yield part
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _saved(name: str, value: Any) -> bytes:
    file = io.BytesIO()
    try:
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise ValueError
        np.save(file, array, allow_pickle=False)
    except (TypeError, ValueError, RuntimeError) as error:
        raise must_be(name, "the name of a file, bytes, or arrays of numbers", f"{shown(value):.60}") from error
    return file.getvalue()


def _key_in(path: str | Path) -> bytes:
    """Return the 32 bytes of a key; a new file for them is readable by its owner alone."""
    try:
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        text = read_text(path).strip()
        if not _KEY.fullmatch(text):
            raise InvalidInput(
                f"{path} must hold a key of lastiterate: 64 hexadecimal digits.", field="data_key"
            ) from None
        return bytes.fromhex(text)
    except (OSError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{shown(path):.60} cannot be written: {getattr(error, 'strerror', None) or error}.", field="data_key"
        ) from error
    key = secrets.token_bytes(32)
    try:
        with open(made, "w", encoding="ascii") as file:
            file.write(key.hex() + "\n")
    except OSError as error:
        Path(path).unlink(missing_ok=True)  # half a key would be taken for a wrong one
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.", field="data_key") from error
    return key


def digests_in(content: Any) -> dict[str, str]:
    """Digests in a report that was saved as JSON; none in a certificate."""
    written = content.get("written")
    found = written.get("digests") if isinstance(written, dict) else None
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def disagreement(digests: dict[str, str], model: Any = None, data: Any = None, key: str | Path | None = None) -> str:
    """Describe which of these files differs from the one that the report was written with; empty if none does."""
    for name, value in (("model", model), ("data", data)):
        if value is None:
            continue
        if name not in digests:
            return f"it holds no digest of the {name}"
        plain = digests[name].startswith(f"{PLAIN}:")
        found = model_digest(value) if name == "model" else data_digest(value, _existing(key), plain)
        if not hmac.compare_digest(found, digests[name]):
            return f"the {name} is a different one: its digest is {found}, the report has {digests[name]}"
    return ""


def _existing(key: str | Path | None) -> str | Path | None:
    """Return the file of a key, which must exist: a new key says nothing about an old report."""
    if key is not None and not Path(key).is_file():
        raise InvalidInput(f"{key} cannot be read: there is no such file.", field="data_key")
    return key
