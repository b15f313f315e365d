"""Runs as plain dictionaries, and back. The names in a file are the names in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import Any

from lastiterate.curves.adjacency import REPLACE_ONE, Adjacency
from lastiterate.errors import InvalidInput, must_be, shown
from lastiterate.runs.arithmetic import EXACT, Arithmetic
from lastiterate.runs.hints import closest, hint
from lastiterate.runs.kinds import SCHEDULES, SECTIONS, Kind, kind_named
from lastiterate.runs.length import Epochs
from lastiterate.runs.losses import Loss
from lastiterate.runs.optimizers import PLAIN
from lastiterate.runs.released import LAST
from lastiterate.runs.run import Run
from lastiterate.runs.schedules import Scheduled

_REQUIRED = ("loss", "batches", "step_size", "noise", "steps")
_OPTIONAL = ("domain", "prox", "weight_decay", "arithmetic", "start_norm", "adjacency", "optimizer", "released")
_KNOWN = (*_REQUIRED, *_OPTIONAL, "prior_mu", "user_records")


class BadEntry(InvalidInput):
    """An entry of a dictionary is wrong; `path` says which."""

    def __init__(self, code: str, *, path: tuple[str, ...] = (), **values: Any) -> None:
        super().__init__(code, **values)
        self.path, self.field = path, self.field or (path[-1] if path else None)

    @classmethod
    def of(cls, error: InvalidInput, path: tuple[str, ...]) -> BadEntry:
        """The same error, with the place of its entry."""
        return cls(error.code, path=path, **error._given)


def run_to_dict(run: Run) -> dict[str, Any]:
    """Everything that describes the run, as numbers, strings, lists and dictionaries."""
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
    """The run that such a dictionary describes; an unknown, missing or wrong entry raises `BadEntry` with its path."""
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
    values = {name: _section(name, value) if _is_section(name, value) else value for name, value in plain.items()}
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


def _is_section(name: str, value: Any) -> bool:
    """An optimiser may be given by its name alone."""
    return name in SECTIONS and not (name == "optimizer" and isinstance(value, str))


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
    """Python's own error names the arguments that are missing."""
    missing = str(error).split("argument")[-1].lstrip("s: ")
    return BadEntry("entries_lacking", path=path, of=path[-1], kind=kind, missing=missing)


def _per_step(path: tuple[str, ...], value: Any) -> Any:
    """What may be a schedule: a table with a kind."""
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
    """Where the field that the error names stands in the file, if it does."""
    if error.field in entries:
        return (error.field,)
    inside = [name for name, value in entries.items() if isinstance(value, dict) and error.field in value]
    return (inside[-1], str(error.field)) if inside else ()


def _loss_to_dict(loss: Loss) -> dict[str, Any]:
    """What it was made from, if that makes it again."""
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
