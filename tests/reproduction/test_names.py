"""One figure or table of a paper, by the names that people type."""

from __future__ import annotations

from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.cli import main
from lastiterate.reproduction.catalogue import EXHIBITS
from lastiterate.reproduction.names import chosen, plain_name
from lastiterate.reproduction.reproduce import reproduce
from raising import raises

BOK = [one for one in EXHIBITS if one.paper == "bok2024"]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("fig-1", "fig-1"),
        ("figure-1", "fig-1"),
        ("Figure 1", "fig-1"),
        ("fig.10", "fig-10"),
        ("fig1", "fig-1"),
        ("table-3", "table-3"),
        ("tab-3", "table-3"),
        ("Table_12", "table-12"),
        ("example-2", "example-2"),
    ],
)
def test_the_forms_that_are_understood(typed: str, name: str) -> None:
    assert plain_name(typed) == name


def test_several_are_taken_in_the_order_of_the_paper() -> None:
    assert [one.name for one in chosen(BOK, ["fig-2", "tab-7", "figure-2"])] == ["table-7", "fig-2"]
    assert chosen(BOK, []) == BOK


def test_an_unknown_name_lists_what_there_is() -> None:
    with raises("must_be", "exhibits", kind=li.errors.InvalidInput, called="EXHIBIT", got="fig-11") as caught:
        chosen(BOK, ["fig-1", "fig-11"])
    assert caught.value.field == "exhibits"


def test_one_figure_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "bok2024", "fig-1", "--out", str(tmp_path), "--workers", "1", "--quick"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("bok2024 fig-1: reproduced: 20 of 20 numbers of the authors' script agree")
    assert {path.name for path in tmp_path.iterdir() if path.suffix == ".svg"} == {"bok2024-fig-1.svg"}
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    title = "Bok, Su and Altschuler 2024: Shifted Interpolation for Differential Privacy, reproduced"
    assert f"<title>{title}</title>" in page
    assert f"<h1>{title}</h1>" in page
    assert "Figure 1, reproduced by lastiterate" in page


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["kong2025", "fig-2"], "EXHIBIT must be one of table-1, table-2, fig-1. Got fig-2."),
        (["all", "fig-1"], "EXHIBIT needs one paper. Got all. Use, for example, reproduce bok2024 fig-1."),
    ],
)
def test_wrong_names_end_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: list[str], said: str
) -> None:
    assert main(["reproduce", *typed, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"lastiterate: {said}\n"
    assert not (tmp_path / "out").exists()


def test_exhibits_of_several_papers_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(li.errors.InvalidInput, match="exhibits are those of one paper"):
        reproduce(["bok2024", "kong2025"], tmp_path, exhibits=["fig-1"])
