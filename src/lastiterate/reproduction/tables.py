"""Tables as rows of named entries, and pictures of them: a mark for each number, a column for each row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lastiterate.reproduction.exhibit import Agreement, Cell, Claim, Entry, Made
from lastiterate.reproduction.pictures import Curve, Panel, Picture, Role

Row = Mapping[str, Entry]
Mark = tuple[str, str, Role]


def dots(
    title: str, y_label: str, ticks: Sequence[str], rows: Sequence[Row], marks: Sequence[Mark], log_y: bool = False
) -> Panel:
    """`marks` are a label, the name of the entries, and a role each; entries without a number are left out."""
    curves = []
    for label, name, role in marks:
        found = [(float(place), value) for place, row in enumerate(rows) if math.isfinite(value := number(row[name]))]
        curves.append(Curve(label, tuple(x for x, _ in found), tuple(y for _, y in found), role, dots=True))
    return Panel(title, "", y_label, tuple(curves), log_y=log_y, ticks=tuple(ticks))


def number(entry: Entry) -> float:
    return math.nan if entry is None else float(entry)


def cells_of(where: str, row: Row, names: Sequence[str]) -> list[Cell]:
    """The entries “…, printed” and “…, computed” of these names, to be compared."""
    return [Cell(f"{where}, {name}", str(row[f"{name}, printed"]), number(row[f"{name}, computed"])) for name in names]


def beside(names: Sequence[str], printed: Sequence[str], computed: Sequence[float]) -> dict[str, Entry]:
    """Both, under the names that `cells_of` looks for."""
    given: dict[str, Entry] = {f"{name}, printed": text for name, text in zip(names, printed, strict=True)}
    return given | {f"{name}, computed": value for name, value in zip(names, computed, strict=True)}


def tabled(rows: Sequence[Row], panels: Sequence[Picture], verdict: Agreement, claims: Sequence[Claim] = ()) -> Made:
    """An exhibit whose numbers are these rows, all with the same names."""
    return Made(tuple(rows[0]), tuple(tuple(row.values()) for row in rows), tuple(panels), verdict, tuple(claims))
