"""Benchmarks are not run by the tests, but what they import is there."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.peers import as_people_train, ours
from benchmarks.peers.training_setups import FULL, POISSON, SETUPS
from benchmarks.speed import random_batches
from benchmarks.tightness import earlier_noise, sandwich
from benchmarks.timing import measured

import lastiterate as li

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if not path.stem.startswith("__") and path.name != "training_peers.py"  # which needs Opacus
)


@pytest.mark.parametrize("module", MODULES)
def test_it_can_be_imported(module: str) -> None:
    assert importlib.import_module(module).__doc__


def test_make_names_modules_that_are_there() -> None:
    lines = [line for line in (ROOT / "Makefile").read_text().splitlines() if "-m benchmarks." in line]
    named = [ROOT / line.split("-m ")[1].split()[0].replace(".", "/") for line in lines]
    assert len(named) > 10
    assert [
        path for path in named if not path.with_suffix(".py").exists() and not (path / "__main__.py").exists()
    ] == []


def test_no_repetition_has_the_arguments_of_another() -> None:
    """A cache would answer it: that is not what a user waits for."""
    for warm, calls in ((True, 4), (False, 3)):
        given: list[float] = []
        found = measured(lambda factor: given.append(factor) or len(given), repeats=3, warm=warm)  # noqa: B023
        assert found["value"] == 1
        assert given[0] == 1.0
        assert len(set(given)) == len(given) == calls
        assert max(given) < 1 + 1e-5


def test_every_row_of_a_benchmark_depends_on_the_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(work: Callable[[float], float], repeats: int, warm: bool = True) -> dict[str, float]:
        return {"value": work(1.0), "seconds": work(1 + 1e-6)}

    monkeypatch.setattr(ours, "measured", compared)
    rows = ours.results(different=3)
    assert len(rows) == 7
    for row in rows.values():
        assert row["value"] != row["seconds"]
        assert row["value"] == pytest.approx(row["seconds"], rel=1e-4)
    for _, run, *_ in random_batches.ROWS:
        assert run(100).with_noise(1 + 1e-6) != run(100)


@pytest.fixture(scope="module")
def of_each_kind() -> list[earlier_noise.Row]:
    return earlier_noise.kinds_table((1.0,))


def of_multiplier(rows: list[earlier_noise.Row], multiplier: float, column: str) -> list[float]:
    return [float(row[column] or 0.0) for row in rows if row["multiplier"] == multiplier]


def test_the_home_page_says_what_each_kind_of_batches_costs(of_each_kind: list[earlier_noise.Row]) -> None:
    page = (ROOT / "docs" / "index.md").read_text()
    cells = re.findall(
        r"^\| [^|]+ \| [^|]+ \| (\d+\.\d\d) \| (\d+\.\d\d) \| (\d+\.\d\d) \| (\d+\.\d\d) \|$", page, re.M
    )
    columns = ("Poisson, all", "Poisson, last", "bins, all", "bins, last", "shuffled, all", "shuffled, last")
    found = [[f"{epsilon:.2f}" for epsilon in of_multiplier(of_each_kind, 1.0, name)] for name in columns]
    assert [list(row) for row in cells] == found


def test_the_home_page_says_where_poisson_is_better() -> None:
    page = " ".join((ROOT / "docs" / "index.md").read_text().split())
    rows = earlier_noise.kinds_table((4.0,), (1, 3))
    shuffled, sampled = (of_multiplier(rows, 4.0, f"{name}, last") for name in ("shuffled", "Poisson"))
    better = max(one / other for one, other in zip(shuffled, sampled, strict=True))
    assert f"at multiplier 4 Poisson batches need up to {100 * (1 - 1 / better):.0f} % less than shuffled ones" in page


def test_zero_out_costs_no_less_than_losses_that_are_linear(of_each_kind: list[earlier_noise.Row]) -> None:
    """There the last iterate is a sum: an epoch adds a gradient, and the noise of all steps hides it."""
    for row in of_each_kind:
        epochs, multiplier = int(row["epochs"] or 0), float(row["multiplier"] or 0.0)
        mu = epochs / multiplier / (earlier_noise.PER_EPOCH * epochs) ** 0.5
        for kind in ("shuffled", "bins"):
            assert float(row[f"{kind}, last"] or 0.0) > li.notions.GaussianDP(mu).epsilon(earlier_noise.DELTA)


def test_the_page_of_what_is_new_has_the_tables_that_its_command_prints(
    of_each_kind: list[earlier_noise.Row],
) -> None:
    printed = (ROOT / "docs" / "new.md").read_text().splitlines()
    tables = [
        of_each_kind,
        earlier_noise.orders_table((0.4,), (1, 3)),
        earlier_noise.mnist_table(),
        earlier_noise.hard_losses_table(),
        earlier_noise.network_table(),
    ]
    assert [line for rows in tables for line in earlier_noise.lines(rows) if line not in printed] == []
    assert [title for title in earlier_noise.TABLES if title not in printed] == []


def test_the_sandwich_has_24_settings_and_sentences_about_none_else() -> None:
    names = [setting.name for setting in sandwich.SETTINGS]
    assert len(set(names)) == 24
    assert set(sandwich.BLAME) <= set(names)


def test_trainings_as_people_run_them() -> None:
    """Sixteen of them, each with a source and a sentence, and each a run under every adjacency that its batches have."""
    assert len({setup.name for setup in SETUPS}) == 16
    for setup in SETUPS:
        assert setup.source
        assert setup.sentence.endswith(".")
        assert (setup.noise is None) != (setup.target is None)
        run = as_people_train.run_of(setup, li.ZERO_OUT)
        assert run.batches.per_epoch == setup.per_epoch or setup.last is not None
        assert run.steps == setup.count or setup.last is not None
        assert not setup.covers or setup.drawn in (POISSON, FULL)


def test_the_page_of_comparisons_has_the_trainings_that_its_command_prints() -> None:
    """Our numbers of the quick ones; the peers' are theirs."""
    page = (ROOT / "docs" / "comparison.md").read_text()
    quick = [setup for setup in SETUPS if setup.loss is None and setup.target is None]
    assert len(quick) > 8
    for setup in SETUPS:
        assert f"| {setup.name} | {setup.drawn} |" in page
    for setup in quick[::3]:
        row = as_people_train.row_of(setup)
        line = next(line for line in page.splitlines() if line.startswith(f"| {setup.name} |"))
        made = as_people_train.table([{**row, "printed": 0.0}]).splitlines()[-1]
        assert line.split(" | ")[:7] == made.split(" | ")[:7]
