"""Runs in TOML and JSON files; what is wrong is named with its line."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from lastiterate.errors import InvalidInput, must_be, shown
from lastiterate.runs.encode import BadEntry, run_from_dict, run_to_dict
from lastiterate.runs.run import Run, checked_run
from lastiterate.writing import write_bytes

_MOST_BYTES = 64 << 20  # certificates of long runs have some megabytes


def read_run(path: str | Path) -> Run:
    """The run described in a .toml or .json file."""
    file = checked_path(path)
    text = read_text(file)
    return run_from_text(text, str(file), toml=_is_toml(file))


def write_run(run: Run, path: str | Path) -> None:
    """Write the run to a .toml or .json file, from which `read_run` gets it back."""
    checked_run(run)
    file = checked_path(path)
    write_text(file, run_to_toml(run) if _is_toml(file) else run_to_json(run))


def read_text(path: str | Path) -> str:
    """The text of a file, or one sentence that says why not."""
    file = checked_path(path)
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) <= _MOST_BYTES:
            return content.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # ValueError: a name with NUL, or a text that is not UTF-8
        raise InvalidInput("file_unreadable", field="path", file=str(path), error=_said(error)) from error
    raise InvalidInput("file_too_long", field="path", file=str(path), megabytes=_MOST_BYTES >> 20)


def write_text(path: str | Path, text: str) -> None:
    """Write a file, in a new folder if need be; if that fails, an older file stays as it is."""
    file = checked_path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, text.encode("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput("file_unwritable", field="path", file=str(path), error=_said(error)) from error


def _said(error: Exception) -> str:
    """What the system says."""
    return getattr(error, "strerror", None) or str(error)


def read_plain(path: str | Path) -> Any:
    """What stands in a .toml or .json file."""
    file = checked_path(path)
    return _plain_in(read_text(file), str(file), toml=_is_toml(file))


def _plain_in(text: str, name: str, *, toml: bool) -> Any:
    try:
        return tomllib.loads(text) if toml else json.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput("file_not_toml", file=name, error=str(error)) from error
    except json.JSONDecodeError as error:
        raise InvalidInput("file_not_json", file=name, line=error.lineno, error=error.msg) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput("file_unreadable", file=name, error=str(error)) from error


def run_from_text(text: str, name: str = "run", *, toml: bool) -> Run:
    """As `read_run`, from a string."""
    try:
        return run_from_dict(_plain_in(text, name, toml=toml))
    except BadEntry as error:
        line = _line_of(text, error.path, toml)
        raise InvalidInput("wrong_at_line", field=error.field, file=name, line=line, error=error) from error


def run_to_json(run: Run) -> str:
    return json.dumps(run_to_dict(run), indent=2) + "\n"


def run_to_toml(run: Run) -> str:
    plain = run_to_dict(run)
    tables = [name for name, value in plain.items() if isinstance(value, dict) and name != "step_size"]
    lines = [f"{name} = {_toml(value)}" for name, value in plain.items() if name not in tables]
    for section, entries in plain.items():
        if section in tables:
            lines += ["", f"[{section}]", *(f"{name} = {_toml(value)}" for name, value in entries.items())]
    return "\n".join(lines) + "\n"


def checked_path(path: str | Path) -> Path:
    """What may be the name of a file."""
    if not isinstance(path, str | Path):
        raise must_be("path", "the name of a file", f"{shown(path):.60}")
    return Path(path)


def check_ending(path: str | Path) -> None:
    """That a run can be written so: before somebody waits for it."""
    _is_toml(checked_path(path))


def _is_toml(file: Path) -> bool:
    if file.suffix not in (".toml", ".json"):
        raise InvalidInput("file_ending", field="path", file=str(file), got=repr(file.suffix or "no ending"))
    return file.suffix == ".toml"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(entry)}" for name, entry in value.items()) + " }"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _line_of(text: str, path: tuple[str, ...], toml: bool) -> int:
    """The line on which the entry stands; the first one if it stands nowhere."""
    lines = text.splitlines()
    found = 0
    for depth, name in enumerate(path):
        entry = re.escape(name)
        pattern = rf'(^|[\s{{,.])"?{entry}"?\s*[=.:]|^\s*\[{entry}\]' if toml else rf'"{entry}"\s*:'
        # An entry of a table stands after the table's own line, or on it.
        places = [index for index in range(found, len(lines)) if re.search(pattern, lines[index])]
        if depth == 0 and toml:
            places = [index for index in places if not _inside_table(lines, index)] or places
        if places:
            found = places[0]
    return found + 1


def _inside_table(lines: list[str], index: int) -> bool:
    """Whether the line is an entry of some [table], rather than of the file or a table's own line."""
    return not lines[index].lstrip().startswith("[") and any(line.lstrip().startswith("[") for line in lines[:index])
