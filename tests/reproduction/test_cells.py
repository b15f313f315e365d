"""Printed numbers are compared to the last of their digits."""

from __future__ import annotations

import pytest

from lastiterate.reproduction import bok2024_printed as printed
from lastiterate.reproduction import bok2024_reference as reference
from lastiterate.reproduction.errata import ERRATA
from lastiterate.reproduction.exhibit import Cell, Outcome, judged, judged_curves
from lastiterate.reproduction.pictures import Panel, Role, line


@pytest.mark.parametrize(
    ("text", "value", "agrees"),
    [
        ("0.534", 0.53359, True),
        ("0.534", 0.5345, True),
        ("0.534", 0.53451, False),
        ("31", 41.0, False),
        ("30.51", 30.50628, True),
        ("1", float("nan"), False),
        ("1", float("inf"), False),
    ],
)
def test_a_number_agrees_within_the_rounding_of_its_digits(text: str, value: float, agrees: bool) -> None:
    assert Cell("a cell", text, value).agrees is agrees


def test_a_number_that_is_not_met_makes_an_exhibit_not_reproducible() -> None:
    verdict = judged([Cell("one", "1.0", 1.04), Cell("two", "2.0", 2.3)])
    assert verdict.outcome is Outcome.NOT
    assert "two: printed 2.0, computed 2.3" in str(verdict)


def test_a_known_mistake_has_to_give_what_is_printed() -> None:
    assert judged([Cell("E*", "31", 41, slip=31)], slips=("E4.9",)).errata == ("E4.9",)
    assert judged([Cell("E*", "31", 41, slip=32)], slips=("E4.9",)).outcome is Outcome.NOT
    assert judged([Cell("E*", "31", 31, slip=31)], slips=("E4.9",)).outcome is Outcome.REPRODUCED


def test_a_curve_below_an_exact_instance_needs_an_erratum() -> None:
    def panel(paper: float) -> Panel:
        curves = (line("p", [1, 2], [paper, 3], Role.PAPER), line("l", [1, 2], [1, 2], Role.LOWER))
        return Panel("a panel", "", "", curves)

    assert judged_curves([panel(1.5)], ("E0.1",)).outcome is Outcome.REPRODUCED
    assert judged_curves([panel(0.5)], ("E0.1",)).errata == ("E0.1",)
    assert judged_curves([panel(0.5)]).outcome is Outcome.NOT


def test_what_is_printed_is_what_the_authors_scripts_compute() -> None:
    pairs = [(printed.TABLE_1[n][2], reference.TABLE_1_EPSILON[0.002, n]) for n in printed.TABLE_1]
    pairs += [(printed.TABLE_3[n][0], reference.TABLE_3_MU["composition", n]) for n in printed.TABLE_3]
    pairs += [
        (text, reference.TABLE_7_MU[factor, n])
        for n, line_ in printed.TABLE_7.items()
        for factor, text in zip(("composition", *printed.TABLE_7_FACTORS), line_, strict=True)
    ]
    pairs += [(printed.TABLE_8[place][k], reference.TABLE_8[place][k]) for place in printed.TABLE_8 for k in (0, 1)]
    pairs += [
        (text, reference.TABLE_9_MU[(*place, n)])
        for n, line_ in printed.TABLE_9.items()
        for place, text in zip(printed.TABLE_9_PLACES, line_[1:], strict=True)
    ]
    for batches, table in printed.TABLES_10_TO_12.items():
        for place, (crossing, mu) in table.items():
            pairs += [(mu, reference.TABLES_10_TO_12[(batches, *place)][0])]
            pairs += [(crossing, reference.TABLES_10_TO_12[(batches, *place)][1])]
    assert [pair for pair in pairs if not Cell("", pair[0], float(pair[1])).agrees] == []


def test_the_errata_that_verdicts_name_exist() -> None:
    assert {"E0.1", "E0.2", "E1.1", "E2.1", "E2.5", "E2.8", "E3.1", "E3.3", "E3.7", "E4.1", "E4.7", "E4.9"} <= {
        one.name for one in ERRATA
    }
