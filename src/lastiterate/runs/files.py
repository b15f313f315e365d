"""Runs in TOML and JSON files; what is wrong is named with its line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.errors import InvalidInput, must_be, shown
from lastiterate.runs.kinds import SCHEDULES, SECTIONS, Kind, kind_named
from lastiterate.runs.losses import Loss
from lastiterate.runs.named import closest, hint
from lastiterate.runs.noise import EXACT, Arithmetic
from lastiterate.runs.optimizers import LAST, PLAIN
from lastiterate.runs.per_step import Epochs
from lastiterate.runs.run import Run, checked_run
from lastiterate.runs.schedules import Scheduled
from lastiterate.writing import write_bytes

_MOST_BYTES = 64 << 20  # certificates of long runs have some megabytes


def read_run(path: str | Path) -> Run:
    """Return the run described in a .toml or .json file."""
    file = checked_path(path)
    text = read_text(file)
    return run_from_text(text, str(file), toml=_is_toml(file))


def write_run(run: Run, path: str | Path) -> None:
    """Write the run to a .toml or .json file, from which `read_run` gets it back."""
    checked_run(run)
    file = checked_path(path)
    write_text(file, run_to_toml(run) if _is_toml(file) else run_to_json(run))


def read_text(path: str | Path) -> str:
    """Return the text of a file, or raise an error of one sentence that says why it cannot be read."""
    file = checked_path(path)
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) <= _MOST_BYTES:
            return content.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # ValueError: a name with NUL, or a text that is not UTF-8
        raise InvalidInput("file_unreadable", field="path", file=str(path), error=_system_message(error)) from error
    raise InvalidInput("file_too_long", field="path", file=str(path), megabytes=_MOST_BYTES >> 20)


def write_text(path: str | Path, text: str) -> None:
    """Write a file, in a new folder if need be; if that fails, an older file stays as it is."""
    file = checked_path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, text.encode("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput("file_unwritable", field="path", file=str(path), error=_system_message(error)) from error


def _system_message(error: Exception) -> str:
    """Return the operating system's message for an error."""
    return getattr(error, "strerror", None) or str(error)


def read_plain(path: str | Path) -> Any:
    """Return the contents of a .toml or .json file as plain values."""
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
    """Return the run described by a string of TOML or JSON, as `read_run` does for a file."""
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
    """Return `path` as a Path, or raise an error if it cannot be the name of a file."""
    if not isinstance(path, str | Path):
        raise must_be("path", "the name of a file", f"{shown(path):.60}")
    return Path(path)


def check_ending(path: str | Path) -> None:
    """Raise an error if a run cannot be written to a file with this ending."""
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
    """Return the line of an entry, or the first line if it is not found."""
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


# Runs as plain dictionaries, and back, with the names of Python.


_REQUIRED = ("loss", "batches", "step_size", "noise", "steps")
_OPTIONAL = ("domain", "prox", "weight_decay", "arithmetic", "start_norm", "adjacency", "optimizer", "released")
_KNOWN = (*_REQUIRED, *_OPTIONAL, "prior_mu", "user_records")


class BadEntry(InvalidInput):
    """A wrong entry of a dictionary; `path` is its place."""

    def __init__(self, code: str, *, path: tuple[str, ...] = (), **values: Any) -> None:
        super().__init__(code, **values)
        self.path, self.field = path, self.field or (path[-1] if path else None)

    @classmethod
    def of(cls, error: InvalidInput, path: tuple[str, ...]) -> BadEntry:
        """Return the error with the place of the entry in the file added."""
        return cls(error.code, path=path, **error._given)


def run_to_dict(run: Run) -> dict[str, Any]:
    """Return everything that describes the run as numbers, strings, lists and dictionaries."""
    plain: dict[str, Any] = {
        "steps": run.steps,
        "step_size": _plain(run.step_size),
        "weight_decay": run.weight_decay,
        "loss": _loss_to_dict(run.loss),
    }
    for section in ("batches", "noise", "domain", "prox"):
        value = getattr(run, section)
        if value is not None:
            plain[section] = _section_to_dict(section, value)
    if run.arithmetic != EXACT:
        plain["arithmetic"] = vars(run.arithmetic)
    for name in ("start_norm", "prior_mu"):
        if getattr(run, name):
            plain[name] = getattr(run, name)
    if run.user_records != 1:
        plain["user_records"] = run.user_records
    for section, usual in (("optimizer", PLAIN), ("released", LAST)):
        if getattr(run, section) != usual:
            plain[section] = _section_to_dict(section, getattr(run, section))
    if run.adjacency is not REPLACE_ONE:
        plain["adjacency"] = run.adjacency.name.lower()
    return plain


def run_from_dict(plain: Any) -> Run:
    """Return the run described by a dictionary; a wrong entry raises `BadEntry` with its path."""
    if not isinstance(plain, dict):
        raise BadEntry("run_not_table", got=type(plain).__name__)
    for name in plain:
        if name not in _KNOWN:
            raise BadEntry(
                "unknown_entry", path=(name,), field=name, of="a run", known=", ".join(_KNOWN), **hint(name, _KNOWN)
            )
    for name in _REQUIRED:
        if name not in plain:
            raise BadEntry("run_entry_missing", field=name, needed=", ".join(_REQUIRED))
    names = {name for name in plain if name in SECTIONS}
    if isinstance(plain.get("optimizer"), str):  # it may be given by its name alone
        names -= {"optimizer"}
    values = {name: _section(name, value) if name in names else value for name, value in plain.items()}
    values["steps"] = _steps(values["steps"])
    values["step_size"] = _per_step(("step_size",), values["step_size"])
    if "arithmetic" in values:
        values["arithmetic"] = _arithmetic(values["arithmetic"])
    if "adjacency" in values:
        values["adjacency"] = _adjacency(values["adjacency"])
    try:
        return Run(**values)
    except InvalidInput as error:
        raise BadEntry.of(error, _blamed(error, plain)) from error


def _section(section: str, entries: Any) -> Any:
    listed = [kind.name for kind in SECTIONS[section]]
    names = ", ".join(listed)
    if not isinstance(entries, dict) or not isinstance(entries.get("kind"), str):
        raise BadEntry("no_kind", path=(section,), field=section, known=names, got=f"{shown(entries):.60}")
    kind = entries["kind"]
    found = kind_named(section, kind)
    if found is None:
        path = (section, "kind")
        raise BadEntry("unknown_kind", path=path, of=section, known=names, got=shown(kind), meant=closest(kind, listed))
    arguments = {name: value for name, value in entries.items() if name != "kind"}
    _check_entries((section,), kind, arguments, _arguments_of(found.make))
    arguments = {name: _per_step((section, name), value) for name, value in arguments.items()}
    try:
        return found.make(**arguments)
    except InvalidInput as error:
        raise BadEntry.of(error, (section, *_blamed(error, arguments))) from error
    except TypeError as error:
        raise _lacking((section,), kind, error) from error


def _check_entries(path: tuple[str, ...], kind: str, entries: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in entries:
        if name not in known:
            named = {"of": f"{path[-1]} of kind {kind}", "known": ", ".join(known), "meant": closest(name, known)}
            raise BadEntry("unknown_entry", path=(*path, name), field=name, **named)


def _lacking(path: tuple[str, ...], kind: str, error: TypeError) -> BadEntry:
    """Return the error for missing arguments, which Python's own error names."""
    missing = str(error).split("argument")[-1].lstrip("s: ")
    return BadEntry("entries_lacking", path=path, of=path[-1], kind=kind, missing=missing)


def _per_step(path: tuple[str, ...], value: Any) -> Any:
    """Return `value`, with a table that has a kind made into the schedule that it describes."""
    if not isinstance(value, dict):
        return value
    kind = next((one for one in SCHEDULES if one.name == value.get("kind")), None)
    if kind is None:
        listed = ", ".join(one.name for one in SCHEDULES)
        raise BadEntry("no_schedule_kind", path=path, field=path[-1], known=listed, got=f"{shown(value):.60}")
    entries = {name: entry for name, entry in value.items() if name != "kind"}
    _check_entries(path, kind.name, entries, _arguments_of(kind.make))
    try:
        return kind.make(**entries)
    except InvalidInput as error:
        raise BadEntry.of(error, (*path, *_blamed(error, entries))) from error
    except TypeError as error:
        raise _lacking(path, kind.name, error) from error


def _steps(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) != {"epochs"}:
        raise BadEntry("steps_entry", path=("steps",), field="steps", got=f"{shown(value):.60}")
    try:
        return Epochs(value["epochs"])
    except InvalidInput as error:
        raise BadEntry.of(error, ("steps", "epochs")) from error


def _adjacency(value: Any) -> Adjacency:
    named = {one.name.lower(): one for one in Adjacency}
    if not isinstance(value, str) or value not in named:
        raise BadEntry.of(must_be("adjacency", f"one of {', '.join(named)}", f"{shown(value):.60}"), ("adjacency",))
    return named[value]


def _arithmetic(entries: Any) -> Arithmetic:
    known = _arguments_of(Arithmetic)
    if not isinstance(entries, dict) or set(entries) - set(known):
        wrong = must_be("arithmetic", f"a table with {' and '.join(known)}", f"{shown(entries):.60}")
        raise BadEntry.of(wrong, ("arithmetic",))
    try:
        return Arithmetic(**entries)
    except InvalidInput as error:
        raise BadEntry.of(error, ("arithmetic", *_blamed(error, entries))) from error


def _blamed(error: InvalidInput, entries: dict[str, Any]) -> tuple[str, ...]:
    """Return the place in the file of the field that the error names, or () if it has none."""
    if error.field in entries:
        return (error.field,)
    inside = [name for name, value in entries.items() if isinstance(value, dict) and error.field in value]
    return (inside[-1], str(error.field)) if inside else ()


def _loss_to_dict(loss: Loss) -> dict[str, Any]:
    """Return the arguments that the loss was made from; raise an error if they do not make it again."""
    given = loss.arguments if loss.clip is None else {**loss.arguments, "clip": loss.clip}
    listed = kind_named("loss", loss.kind)
    if listed is None or not set(given) <= set(_arguments_of(listed.make)) or _made(listed, given) != loss:
        raise InvalidInput("kind_not_listed", field="loss", kind=loss.kind)
    return {"kind": loss.kind, **{name: _plain(value) for name, value in given.items()}}


def _made(kind: Kind, given: dict[str, Any]) -> Any:
    try:
        return kind.make(**given)
    except (InvalidInput, TypeError):
        return None


def _section_to_dict(section: str, value: Any) -> dict[str, Any]:
    kind = getattr(type(value), "kind", None)
    if kind is None or (listed := kind_named(section, kind)) is None or listed.make is not type(value):
        raise InvalidInput("kind_not_listed", field=section, kind=type(value).__name__)
    given = {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return {"kind": kind, **{name: entry for name, entry in given.items() if entry is not None}}


@lru_cache(maxsize=64)
def _arguments_of(kind: Callable[..., Any]) -> tuple[str, ...]:
    import inspect

    return tuple(inspect.signature(kind).parameters)


def _plain(value: Any) -> Any:
    if isinstance(value, Scheduled):
        return value.schedule.plain
    return list(value) if isinstance(value, tuple) else value
