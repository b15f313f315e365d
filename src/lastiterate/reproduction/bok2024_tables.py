"""Bok et al. 2024, Tables 7 to 12: μ of NoisyGD and NoisyCGD, on strongly convex losses and on bounded domains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lastiterate.curves.gaussian import GaussianDP
from lastiterate.reproduction.bok2024_printed import (
    TABLE_7,
    TABLE_7_FACTORS,
    TABLE_8,
    TABLE_9,
    TABLE_9_PLACES,
    TABLES_10_TO_12,
)
from lastiterate.reproduction.bok2024_runs import constrained, contracting, cyclic, full
from lastiterate.reproduction.bounds import best_epsilon, lower_epsilon, lower_mu, mu_of
from lastiterate.reproduction.exhibit import Cell, Claim, Entry, Exhibit, Made, Setting, judged
from lastiterate.reproduction.pictures import Panel, Role
from lastiterate.reproduction.tables import Row, beside, cells_of, dots, number, tabled
from lastiterate.runs.run import Run
from lastiterate.theorems.composition import FULL_COMPOSITION, PASSES_COMPOSITION
from lastiterate.theorems.papers.bok2024 import BOUNDED_CYCLIC, BOUNDED_FULL, CONTRACTING_CYCLIC, CONTRACTING_FULL
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from lastiterate.theorems.theorem import Theorem

_DELTA = 1e-5
_LONG = 20  # times D/s: after so many steps or epochs, the bounds no longer grow


def _table_7(setting: Setting) -> Made:
    def run(place: float, steps: int) -> Run:
        return contracting(full(), place, 0.1, steps)

    return _strongly_convex(TABLE_7, TABLE_7_FACTORS, run, FULL_COMPOSITION, CONTRACTING_FULL, "steps")


def _table_9(setting: Setting) -> Made:
    def run(place: tuple[int, float], epochs: int) -> Run:
        return contracting(cyclic(place[0]), place[1], 0.2, epochs * place[0])

    return _strongly_convex(TABLE_9, TABLE_9_PLACES, run, PASSES_COMPOSITION, CONTRACTING_CYCLIC, "epochs")


def _strongly_convex(
    printed: Mapping[int, Sequence[str]],
    places: Sequence[object],
    run_of: Callable[..., Run],
    composition: Theorem,
    theorem: Theorem,
    unit: str,
) -> Made:
    """A row for each cell, a panel for each length. The first of a printed line is composition, the others the theorem."""
    rows: list[Row] = []
    for length, line in printed.items():
        alone = mu_of(composition, run_of(places[0], length))
        rows.append({**_place(unit, length, "composition"), **beside(("μ",), line[:1], (alone,)), "ours": alone})
        for place, text in zip(places, line[1:], strict=True):
            run, named = run_of(place, length), _place(unit, length, _named(place))
            rows.append({**named, **beside(("μ",), (text,), (mu_of(theorem, run),)), "ours": mu_of(SHIFT_ENGINE, run)})
            rows[-1] = {**rows[-1], "lower bound": lower_mu(run)}
    rows = [{**row, "lower bound": row.get("lower bound")} for row in rows]
    cells = [cell for row in rows for cell in cells_of(f"{row[unit]} {unit}, {row['contraction']}", row, ("μ",))]
    panels = [_panel_of(length, unit, [row for row in rows if row[unit] == length]) for length in printed]
    claims = [
        Claim(f"μ after {row[unit]} {unit}, {row['contraction']}", row["μ, printed"], row["ours"], row["lower bound"])
        for row in rows[-len(places) :]
    ]
    return tabled(rows, panels, judged(cells), claims)


def _panel_of(length: int, unit: str, rows: Sequence[Row]) -> Panel:
    marks = (
        ("paper", "μ, printed", Role.PAPER),
        ("ours", "ours", Role.OURS),
        ("lower bound: quadratic losses", "lower bound", Role.LOWER),
    )
    return dots(f"{length} {unit}", "μ", [str(row["contraction"]) for row in rows], rows, marks, log_y=True)


def _place(unit: str, length: int, what: str) -> dict[str, Entry]:
    return {unit: length, "contraction": what}


def _named(place: object) -> str:
    return f"l = {place[0]}, c = {place[1]}" if isinstance(place, tuple) else f"c = {place}"


def _table_8(setting: Setting) -> Made:
    rows = [_row_of_table_8(*place, setting) for place in TABLE_8]
    cells = [cell for row in rows for cell in cells_of(_where(row), row, ("t*", "μ*"))]
    return tabled(
        rows,
        _panels(rows, "of any length"),
        judged(cells, note="Theorem 4.3 holds from t = D/s"),
        _claims(rows, "of any length"),
    )


def _row_of_table_8(push: float, eta: float, setting: Setting) -> Row:
    run = constrained(full(), push, eta, 8.0, _LONG * _holds_from(push, eta))
    mu = mu_of(BOUNDED_FULL, run)
    return {
        "L/n or L/b": push,
        "η": eta,
        **beside(("t*", "μ*"), TABLE_8[push, eta], (_crossing(mu, push / 8), mu)),
        "μ ours, any length": mu_of(SHIFT_ENGINE, run),
        **_epsilons(run, mu, setting, first=(push, eta) == (0.25, 0.2)),
    }


def _epsilons(run: Run, mu: float, setting: Setting, first: bool) -> Row:
    """By μ*, the best one, and of an exact instance; the last two only for the first cell when it has to be quick."""
    wanted = first or not setting.quick
    return {
        "ε of μ*": float(GaussianDP(mu).epsilon(_DELTA)),
        "ε ours": best_epsilon(run, _DELTA) if wanted else None,
        "ε of an instance": (lower_epsilon(run, _DELTA) or None) if wanted else None,
    }


def _holds_from(push: float, eta: float) -> int:
    """D/s: the number of steps or epochs from which Theorems 4.3 and 4.6 hold."""
    return math.ceil(1 / (eta * push) - 1e-9)


def _crossing(mu: float, one: float) -> int:
    """The number of steps or epochs from which composition is at least μ, which is rounded up a little."""
    return math.ceil((mu / one) ** 2 * (1 - 1e-9))


def _where(row: Row) -> str:
    return f"{row['L/n or L/b']}, η = {row['η']}"


def _place_of(row: Row) -> str:
    return f"{'L/b' if 'E*, printed' in row else 'L/n'} = {_where(row)}"


def _claims(rows: Sequence[Row], when: str) -> list[Claim]:
    return [
        Claim(
            f"ε at δ = 1e-5, runs {when}, {_place_of(row)}",
            row["ε of μ*"],
            row["ε ours"],
            row["ε of an instance"],
        )
        for row in rows
        if row["ε ours"] is not None
    ]


def _panels(rows: Sequence[Row], when: str) -> tuple[Panel, Panel]:
    ticks = [_where(row) for row in rows]
    mus = (("paper", "μ*, printed", Role.PAPER), ("ours", "μ ours, any length", Role.OURS))
    epsilons = (
        ("paper", "ε of μ*", Role.PAPER),
        ("ours", "ε ours", Role.OURS),
        ("lower bound: an exact instance", "ε of an instance", Role.LOWER),
    )
    return (
        dots("μ* of runs of any length", "μ", ticks, rows, mus),
        dots(f"ε at δ = 1e-5, runs {when}", "ε", ticks, rows, epsilons, log_y=True),
    )


def _table_of_batches(batches: int) -> Callable[[Setting], Made]:
    def make(setting: Setting) -> Made:
        rows = [_row_of_batches(batches, *place, setting) for place in TABLES_10_TO_12[batches]]
        cells = [cell for row in rows for cell in (*cells_of(_where(row), row, ("μ*",)), _crossing_cell(batches, row))]
        note = "every printed E* is too small: the authors' script has μ²·μ²/l for μ² + μ²/l; “ours” is the right E*"
        verdict = judged(cells, slips=("E4.9",), note=note)
        claims = [*_crossings(rows), *_claims(rows, "of E* epochs")]
        return tabled(rows, _panels(rows, "of E* epochs"), verdict, claims)

    return make


def _crossings(rows: Sequence[Row]) -> list[Claim]:
    """E* as printed and as the criterion of the paper gives it."""
    return [
        Claim(f"E*, {_place_of(row)}", int(number(row["E*, printed"])), int(number(row["E*, computed"])))
        for row in rows
    ]


def _row_of_batches(batches: int, push: float, eta: float, setting: Setting) -> Row:
    printed = TABLES_10_TO_12[batches][push, eta]
    run = constrained(cyclic(batches), push, eta, 3.0, _LONG * _holds_from(push, eta) * batches)
    mu = mu_of(BOUNDED_CYCLIC, run)
    crossing = _crossing(mu, push / 3)
    short = constrained(cyclic(batches), push, eta, 3.0, crossing * batches)
    return {
        "L/n or L/b": push,
        "η": eta,
        **beside(("E*", "μ*"), printed, (crossing, mu)),
        "4.6 holds from E": _holds_from(push, eta),
        "μ ours, at E*": mu_of(SHIFT_ENGINE, short),
        "μ ours, any length": mu_of(SHIFT_ENGINE, run),
        **_epsilons(short, mu, setting, first=(push, eta) == (0.25, 0.04)),
    }


def _crossing_cell(batches: int, row: Row) -> Cell:
    slip = _slipped(number(row["L/n or L/b"]), number(row["η"]), batches)
    return Cell(f"{_where(row)}, E*", str(row["E*, printed"]), number(row["E*, computed"]), slip=slip)


def _slipped(push: float, eta: float, batches: int) -> int:
    """E* with μ²·μ²/l for μ² + μ²/l: what the published script computes (E4.9)."""
    epochs = _holds_from(push, eta)
    return math.ceil((3 * push / (eta * batches) + push**4 / batches * epochs) / push**2 - 1e-9)


_CONSTRAINED = (("D", 1), ("σ", 3), ("δ, of ε", _DELTA))
EXHIBITS_OF_TABLES = (
    Exhibit("bok2024", "table-7", "μ of NoisyGD on strongly convex losses (Theorem 4.2)", (("L/(nσ)", 0.1),), _table_7),
    Exhibit(
        "bok2024",
        "table-8",
        "(t*, μ*) of NoisyGD on a bounded domain (Theorem 4.3): from t* steps on, composition gives at least μ*",
        (("D", 1), ("σ", 8), ("δ, of ε", _DELTA)),
        _table_8,
        cost=40,
    ),
    Exhibit(
        "bok2024", "table-9", "μ of NoisyCGD on strongly convex losses (Theorem 4.5)", (("L/(bσ)", 0.2),), _table_9
    ),
    *(
        Exhibit(
            "bok2024",
            f"table-{number}",
            f"(E*, μ*) of NoisyCGD on a bounded domain (Theorem 4.6), {batches} batches per epoch: from E* epochs on, "
            "composition gives at least μ*",
            (("l", batches), *_CONSTRAINED),
            _table_of_batches(batches),
            cost=60,
        )
        for number, batches in ((10, 10), (11, 20), (12, 40))
    ),
)
