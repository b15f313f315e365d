"""Exhibits by the names that people type: fig-1, figure-1, Fig. 1, table-3, tab-3."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lastiterate.errors import must_be
from lastiterate.reproduction.exhibit import Exhibit

_KINDS = {"figure": "fig", "fig": "fig", "table": "table", "tab": "table"}


def plain_name(typed: str) -> str:
    """The name of the catalogue: `Figure 1`, `fig.1` and `figure-1` are all `fig-1`."""
    found = re.fullmatch(r"([a-z]+)[\s.\-_]*(\d+)", typed.strip().lower())
    if found is None:
        return typed
    kind, number = found.groups()
    return f"{_KINDS.get(kind, kind)}-{number}"


def chosen(exhibits: Sequence[Exhibit], names: Sequence[str]) -> list[Exhibit]:
    """Those of these names, in the order of the catalogue; all of them if no name is given."""
    wanted = {plain_name(name) for name in names}
    known = [exhibit.name for exhibit in exhibits]
    if unknown := [name for name in names if plain_name(name) not in known]:
        raise must_be("exhibits", f"one of {', '.join(known)}", f"{unknown[0]}", called="EXHIBIT")
    return [exhibit for exhibit in exhibits if not wanted or exhibit.name in wanted]
