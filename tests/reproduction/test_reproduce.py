"""Every exhibit is made, is what it should be, and is kept."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.cli import main
from lastiterate.reproduction.catalogue import EXHIBITS, exhibit_of
from lastiterate.reproduction.errata import ERRATA
from lastiterate.reproduction.exhibit import Outcome, Setting
from lastiterate.reproduction.pictures import Panel, Role
from lastiterate.reproduction.reproduce import PAPERS, Shown, reproduce
from raising import raises

CORRECTED = {
    "asoodeh2023-fig-2": ("E0.1", "E0.2"),
    "boninsegna2023-table-1": ("E1.1",),
    "kong2025-table-2": ("E2.1", "E2.5", "E2.8"),
    "kong2025-fig-1": ("E2.5", "E2.8"),
    "balle2019-fig-1": ("E3.3",),
    "balle2019-theorem-5": ("E3.1",),
    "balle2019-theorem-8": ("E3.7",),
    "bok2024-table-1": ("E4.1",),
    "bok2024-table-3": ("E4.1", "E4.7"),
    "bok2024-table-4": ("E4.1",),
    "bok2024-table-10": ("E4.9",),
    "bok2024-table-11": ("E4.9",),
    "bok2024-table-12": ("E4.9",),
    "bok2024-fig-9": ("E4.9",),
    "bok2024-fig-10": ("E4.7",),
}
NEEDS_MNIST = {"bok2024-table-2", "bok2024-table-5", "bok2024-table-6"}
SYMBOLS = {"boninsegna2023-table-2"}


def test_every_figure_and_table_is_listed() -> None:
    listed = {exhibit.key for exhibit in EXHIBITS}
    assert len(listed) == len(EXHIBITS)
    wanted = {f"asoodeh2023-fig-{n}" for n in range(1, 4)} | {f"boninsegna2023-table-{n}" for n in (1, 2)}
    wanted |= {"kong2025-table-1", "kong2025-table-2", "kong2025-fig-1", "balle2019-fig-1"}
    wanted |= {f"balle2019-example-{n}" for n in (1, 2, 3, 5)}
    wanted |= {f"bok2024-table-{n}" for n in range(1, 13)} | {f"bok2024-fig-{n}" for n in range(1, 11)}
    assert wanted <= listed
    assert set(PAPERS) == {"asoodeh2023", "boninsegna2023", "kong2025", "balle2019", "bok2024"}


def _expected(key: str) -> Outcome:
    if key in NEEDS_MNIST:
        return Outcome.NOT_MADE
    if key in SYMBOLS:
        return Outcome.NOTHING
    return Outcome.CORRECTED if key in CORRECTED else Outcome.REPRODUCED


@pytest.mark.parametrize("key", [exhibit.key for exhibit in EXHIBITS])
def test_every_verdict_is_what_it_should_be(shown: Sequence[Shown], key: str) -> None:
    verdict = next(one.verdict for one in shown if one.exhibit.key == key)
    assert verdict.outcome is _expected(key), str(verdict)
    assert verdict.errata == CORRECTED.get(key, ())
    assert set(verdict.errata) <= {one.name for one in ERRATA}


def test_every_exhibit_leaves_its_files(shown: Sequence[Shown], folder: Path) -> None:
    for one in shown:
        key = one.exhibit.key
        rows = list(csv.reader((folder / f"{key}.csv").read_text(encoding="utf-8").splitlines()))
        assert rows
        assert {len(row) for row in rows} == {len(rows[0])}, key
        if key not in NEEDS_MNIST:
            assert (folder / f"{key}.png").read_bytes()[:4] == b"\x89PNG"
            assert "<svg" in (folder / f"{key}.svg").read_text()
    assert (folder / "verdicts.txt").read_text().count("\n") == len(EXHIBITS)


def test_no_proved_number_lies_below_an_exact_instance(shown: Sequence[Shown]) -> None:
    numbers = [claim for one in shown for claim in one.claims if isinstance(claim.lower, float)]
    assert len(numbers) > 30
    wrong = [claim for claim in numbers if isinstance(claim.ours, float) and claim.ours < claim.lower * (1 - 1e-6)]  # type: ignore[operator]
    assert wrong == []


def test_no_proved_curve_lies_below_an_exact_instance() -> None:
    made = [
        exhibit_of(key).make(Setting(quick=True)) for key in ("bok2024-fig-1", "bok2024-fig-8", "balle2019-theorem-5")
    ]
    for panel in (panel for one in made for panel in one.panels if isinstance(panel, Panel)):
        ours = {
            x: y for curve in panel.curves if curve.role is Role.OURS for x, y in zip(curve.x, curve.y, strict=True)
        }
        lower = [
            point for curve in panel.curves if curve.role is Role.LOWER for point in zip(curve.x, curve.y, strict=True)
        ]
        assert [(x, y) for x, y in lower if x in ours and ours[x] < y * (1 - 1e-6)] == []


def test_what_is_there_is_kept_until_something_changes(shown: Sequence[Shown], folder: Path, tmp_path: Path) -> None:
    for path in folder.glob("balle2019-*"):
        shutil.copy(path, tmp_path)
    again = reproduce(["balle2019"], tmp_path, quick=True, workers=1)
    assert all(one.kept for one in again)
    assert [str(one) for one in again] == [str(one) for one in shown if one.exhibit.paper == "balle2019"]
    record = tmp_path / "balle2019-example-1.json"
    content = json.loads(record.read_text())
    content["stamp"]["library"] = "another"
    record.write_text(json.dumps(content))
    (tmp_path / "balle2019-example-3.svg").unlink()
    (tmp_path / "balle2019-example-5.json").write_text("{")
    again = reproduce(["balle2019"], tmp_path, quick=True, workers=1)
    made = {one.exhibit.name for one in again if not one.kept}
    assert made == {"example-1", "example-3", "example-5"}


def test_fresh_makes_everything_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastiterate.reproduction.reproduce.EXHIBITS", (exhibit_of("balle2019-example-1"),))
    kept = [
        reproduce(["balle2019"], tmp_path, quick=True, fresh=fresh, workers=1)[0].kept for fresh in (False, False, True)
    ]
    assert kept == [False, True, False]


def test_a_full_run_does_not_keep_quick_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastiterate.reproduction.reproduce.EXHIBITS", (exhibit_of("balle2019-example-1"),))
    reproduce(["balle2019"], tmp_path, quick=True, workers=1)
    assert not reproduce(["balle2019"], tmp_path, workers=1)[0].kept


def test_several_processes_find_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: Sequence[Shown], folder: Path
) -> None:
    chosen = tuple(exhibit_of(key) for key in ("balle2019-example-1", "balle2019-example-3"))
    monkeypatch.setattr("lastiterate.reproduction.reproduce.EXHIBITS", chosen)
    found = reproduce(["balle2019"], tmp_path, quick=True, workers=2)
    assert [one.exhibit.name for one in found] == ["example-1", "example-3"]
    assert (tmp_path / "balle2019-example-1.csv").read_text() == (folder / "balle2019-example-1.csv").read_text()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastiterate.reproduction.reproduce.EXHIBITS", (exhibit_of("balle2019-example-1"),))
    assert main(["reproduce", "balle2019", "--quick", "--out", str(tmp_path), "--workers", "1", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["exhibits"][0]["outcome"] == "reproduced"
    assert main(["reproduce", "balle2019", "--quick", "--out", str(tmp_path), "--workers", "1"]) == 0
    assert capsys.readouterr().out.startswith("balle2019 example-1: reproduced")


@pytest.mark.parametrize("wrong", [["--workers", "0"], ["--mnist", "nowhere"], ["--out", "/dev/null/x"]])
def test_bad_input_ends_in_one_sentence(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "balle2019", "--quick", *wrong]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("lastiterate: ")
    assert captured.err.count("\n") == 1


def test_unknown_papers_are_refused(tmp_path: Path) -> None:
    with raises(
        "must_be",
        "papers",
        kind=li.errors.InvalidInput,
        allowed="among asoodeh2023, boninsegna2023, kong2025, balle2019, bok2024",
    ):
        reproduce(["nobody1999"], tmp_path)


def test_a_table_of_symbols_is_nothing_to_reproduce(shown: Sequence[Shown]) -> None:
    verdict = next(one.verdict for one in shown if one.exhibit.key == "boninsegna2023-table-2")
    assert str(verdict) == "nothing to reproduce: a table of symbols"


@pytest.mark.parametrize(
    ("table", "first", "last"), [(10, (31, 41), (40, 41)), (11, (16, 21), (20, 21)), (12, (8, 11), (10, 11))]
)
def test_the_summary_has_the_right_number_of_epochs(
    shown: Sequence[Shown], table: int, first: tuple[int, int], last: tuple[int, int]
) -> None:
    """Errata E4.9: E* of Tables 10 to 12, as printed and by the criterion of the paper."""
    claims = next(one.claims for one in shown if one.exhibit.key == f"bok2024-table-{table}")
    crossings = [(one.printed, one.ours) for one in claims if one.text.startswith("E*")]
    assert (crossings[0], crossings[-1]) == (first, last)
    assert len(crossings) == 9
    assert all(printed < right for printed, right in crossings)  # type: ignore[operator]


def test_every_row_of_table_2_of_kong_2025_is_there(shown: Sequence[Shown]) -> None:
    claims = next(one.claims for one in shown if one.exhibit.key == "kong2025-table-2")
    texts = " ".join(claim.text for claim in claims)
    assert all(source in texts for source in ("[14,", "[25, Section 3.3]", "[25, Theorem 11]", "[17,", "[2,", "[11,"))
    assert all(isinstance(claim.ours, float) for claim in claims)
    by_formula = next(claim for claim in claims if "[2," in claim.text)
    assert by_formula.printed == pytest.approx(100 * min(1e5 / 1e3, 2e-5 / (10 * 1e-5 * 1e4)))
