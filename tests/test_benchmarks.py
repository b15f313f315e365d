"""Benchmarks are not run by the tests, but what they import is there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from benchmarks.peers import as_people_train
from benchmarks.peers.training_setups import FULL, POISSON, SETUPS
from benchmarks.tightness import earlier_noise, sandwich

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


@pytest.fixture(scope="module")
def beside_poisson() -> list[earlier_noise.Row]:
    return earlier_noise.poisson_table((1.0, 2.0, 4.0))


def of_multiplier(rows: list[earlier_noise.Row], multiplier: float, column: str) -> list[float]:
    return [float(row[column] or 0.0) for row in rows if row["multiplier"] == multiplier]


def test_the_readme_says_what_shuffled_and_poisson_batches_cost(beside_poisson: list[earlier_noise.Row]) -> None:
    page = (ROOT / "README.md").read_text()
    said = [
        [float(one) for one in found.split(", ")] for found in re.findall(r"ε = ((?:\d+\.\d\d, ){3}\d+\.\d\d)", page)
    ]
    columns = [of_multiplier(beside_poisson, 1.0, name) for name in ("prepaid", "Poisson")]
    assert said == [[round(epsilon, 2) for epsilon in column] for column in columns]


def test_the_readme_says_where_shuffling_is_not_better(beside_poisson: list[earlier_noise.Row]) -> None:
    page = (ROOT / "README.md").read_text()
    better = max(of_multiplier(beside_poisson, 2.0, "Poisson/ours"))
    worse = min(of_multiplier(beside_poisson, 4.0, "Poisson/ours"))
    assert f"at multiplier 2 shuffling is better by {100 * (better - 1):.0f} % at most" in page
    assert f"multiplier 4 Poisson sampling is better by up to {100 * (1 / worse - 1):.0f} %" in page
    assert float(earlier_noise.poisson_row(1.0, 1, step_size=0.4)["Poisson/ours"] or 0.0) < 1


def test_zero_out_is_one_gradient_instead_of_the_difference_of_two() -> None:
    process = earlier_noise.logistic(earlier_noise.ORDERS["reshuffled"], 0.08, 1).process
    changed = earlier_noise.zero_out(process)
    assert (changed.sensitivity == process.sensitivity / 2).all()
    assert changed.smooth.turning == 2 * process.smooth.turning == pytest.approx(1 / 4)  # type: ignore[union-attr]
    assert (process.smooth.rank, changed.smooth.rank) == (2, 1)  # type: ignore[union-attr]


def test_zero_out_costs_no_less_than_losses_that_are_linear(beside_poisson: list[earlier_noise.Row]) -> None:
    """There the last iterate is a sum: an epoch adds a gradient, and the noise of all steps hides it."""
    for row in beside_poisson:
        epochs, multiplier = int(row["epochs"] or 0), float(row["multiplier"] or 0.0)
        mu = epochs / multiplier / (earlier_noise.PER_EPOCH * epochs) ** 0.5
        assert float(row["prepaid"] or 0.0) > li.GaussianDP(mu).epsilon(earlier_noise.DELTA)


def test_the_page_of_what_is_new_has_the_tables_that_its_command_prints(
    beside_poisson: list[earlier_noise.Row],
) -> None:
    printed = (ROOT / "docs" / "new.md").read_text().splitlines()
    tables = [
        beside_poisson,
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
