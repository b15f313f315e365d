"""One ledger, several processes, accidents."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.cli import main
from raising import raises

DELTA = 1e-5
SPENDER = """
import sys, time
from pathlib import Path
import lastiterate as li
budget = li.Budget.open(sys.argv[1])
guarantee = li.notions.GaussianDP(0.2)
print("ready", flush=True)
while not Path(sys.argv[1] + ".go").exists():
    time.sleep(0.001)
spent = 0
for _ in range(5):
    try:
        budget.spend(guarantee, what="one of many")
        spent += 1
    except li.errors.BudgetExceeded:
        pass
print(spent)
"""
CRASHING = """
import os, sys
import lastiterate as li
from lastiterate.budget import budget as module
append = module.append
def die(connection, *arguments):
    append(connection, *arguments)
    connection.execute("PRAGMA cache_size = 1")  # so that half of it is in the file already
    connection.executemany("INSERT INTO entries VALUES (?, ?, '')", ((100 + i, "x" * 5000) for i in range(50)))
    os._exit(7)
module.append = die
li.Budget.open(sys.argv[1]).spend(li.notions.GaussianDP(0.2), what="never")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.sqlite"


def started(code: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)


def test_processes_that_spend_at_once_never_spend_too_much(path: Path) -> None:
    budget = li.Budget(3.0, DELTA, file=path)
    fits = int((budget.left.mu / 0.2) ** 2)
    assert fits == 12
    spenders = [started(SPENDER, path) for _ in range(3)]
    for one in spenders:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    path.with_name("team.sqlite.go").touch()
    counts = [int(one.communicate(timeout=60)[0]) for one in spenders]
    assert sum(counts) == fits == len(budget.history)
    assert budget.spent <= 3.0
    assert li.verify(budget.certificate).accepted


def test_threads_that_spend_at_once_never_spend_too_much(path: Path) -> None:
    for budget in (li.Budget(3.0, DELTA, file=path), li.Budget(3.0, DELTA)):
        done: list[int] = []

        def spend(budget: li.Budget = budget, done: list[int] = done) -> None:
            try:
                done.append(budget.spend(li.notions.GaussianDP(0.3), what="one of many").number)
            except li.errors.BudgetExceeded:
                done.append(0)

        threads = [threading.Thread(target=spend) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert sorted(done) == [0, 0, 0, 1, 2, 3, 4, 5]
        assert len(budget.history) == 5


def test_a_process_that_dies_while_it_writes_leaves_the_ledger_as_it_was(path: Path) -> None:
    budget = li.Budget(3.0, DELTA, file=path)
    budget.spend(li.notions.GaussianDP(0.2), what="before")
    digest = budget.digest
    crashed = started(CRASHING, path)
    crashed.communicate(timeout=60)
    assert crashed.returncode == 7
    assert path.with_name("team.sqlite-journal").exists()
    assert budget.digest == digest
    assert budget.spend(li.notions.GaussianDP(0.2), what="after").number == 2


def test_whoever_waits_too_long_is_told(path: Path) -> None:
    budget = li.Budget(3.0, DELTA, file=path, timeout=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert budget.history == ()
    with raises("budget_in_use", kind=li.errors.Unavailable, timeout=0.05):
        budget.spend(li.notions.GaussianDP(0.1), what="x")
    other.execute("ROLLBACK")
    other.close()
    assert budget.spend(li.notions.GaussianDP(0.1), what="x").number == 1


def test_a_file_is_the_owners_and_has_no_company(path: Path) -> None:
    budget = li.Budget(3.0, DELTA, file=path)
    budget.spend(li.notions.GaussianDP(0.1), what="x")
    assert [one.name for one in path.parent.iterdir()] == ["team.sqlite"]
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


def test_other_terms_are_refused(path: Path) -> None:
    li.Budget(3.0, DELTA, li.ZERO_OUT, path, dataset="patients")
    assert li.Budget(3.0, DELTA, li.ZERO_OUT, path, dataset="patients").history == ()
    for change, said in (
        ({"epsilon": 4.0}, "epsilon = 3.0, not 4.0"),
        ({"delta": 1e-6}, "delta = 1e-05, not 1e-06"),
        ({"adjacency": li.REPLACE_ONE}, "adjacency = li.ZERO_OUT, not li.REPLACE_ONE"),
        ({"dataset": "clients"}, "dataset = 'patients', not 'clients'"),
        ({"adaptive": False}, "adaptive = True, not False"),
        ({"reserve": 0.5}, "reserve = 0.1, not 0.5"),
    ):
        terms = {"epsilon": 3.0, "delta": DELTA, "adjacency": li.ZERO_OUT, "dataset": "patients", **change}
        with pytest.raises(li.errors.Incompatible, match=said):
            li.Budget(**terms, file=path)  # type: ignore[arg-type]


def test_read_only_is_read_only(path: Path) -> None:
    li.Budget(3.0, DELTA, file=path).spend(li.notions.GaussianDP(0.1), what="x")
    path.chmod(0o400)
    budget = li.Budget.open(path, read_only=True)
    assert (budget.epsilon, budget.delta, budget.adjacency) == (3.0, DELTA, li.REPLACE_ONE)
    assert len(budget.history) == 1
    with raises("budget_read_only", kind=li.errors.Unavailable):
        budget.spend(li.notions.GaussianDP(0.1), what="y")


def changed(path: Path, *statements: str) -> None:
    """By hand, past the triggers."""
    connection = sqlite3.connect(path)
    for statement in ("DROP TRIGGER unchanged", "DROP TRIGGER kept", *statements):
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET content = replace(content, '0.3', '0.1') WHERE number = 2",
        "UPDATE entries SET content = replace(content, 'second', 'other') WHERE number = 2",
        "DELETE FROM entries WHERE number = 2",
        "DELETE FROM entries WHERE number = 3",
        "DELETE FROM entries",
        "UPDATE entries SET number = 7 - number",
        "UPDATE terms SET content = replace(content, '3.0', '9.0')",
        "UPDATE terms SET entries = 2",
        "UPDATE terms SET digest = 'x'",
        "DELETE FROM terms",
        "UPDATE entries SET content = x'00' WHERE number = 1",
        "UPDATE entries SET content = '[]' WHERE number = 1",
        "INSERT INTO entries SELECT 4, content, digest FROM entries WHERE number = 1",
    ],
)
def test_what_is_changed_by_hand_is_noticed(path: Path, statement: str) -> None:
    budget = li.Budget(3.0, DELTA, file=path)
    for what, mu in (("first", 0.2), ("second", 0.3), ("third", 0.2)):
        budget.spend(li.notions.GaussianDP(mu), what=what)
    changed(path, statement)
    for use in (
        lambda: li.Budget.open(path),
        lambda: budget.spent,
        lambda: budget.spend(li.notions.GaussianDP(0.1), what="x"),
    ):
        with raises("budget_damaged", "file", kind=li.errors.InvalidInput) as caught:
            use()
        assert len(str(caught.value)) <= 300


def test_entries_are_not_changed_by_accident(path: Path) -> None:
    li.Budget(3.0, DELTA, file=path).spend(li.notions.GaussianDP(0.1), what="x")
    connection = sqlite3.connect(path)
    for statement in ("UPDATE entries SET content = ''", "DELETE FROM entries"):
        with pytest.raises(sqlite3.IntegrityError, match="entries of a ledger stay"):
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "content", [b"", b"no database", b"SQLite format 3\0" + bytes(84)], ids=["empty", "text", "torn"]
)
def test_other_files_are_no_budgets(path: Path, content: bytes) -> None:
    """An empty file neither: it may have been a ledger."""
    path.write_bytes(content)
    for use in (lambda: li.Budget.open(path), lambda: li.Budget(3.0, DELTA, file=path)):
        with raises("budget_not_readable", "file", kind=li.errors.InvalidInput) as caught:
            use()
        assert caught.value.field == "file"
    assert path.read_bytes() == content


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_copy_of_a_budget_in_memory_is_not_spent() -> None:
    budget = li.Budget(3.0, DELTA)
    if (child := os.fork()) == 0:
        code = 0
        try:
            budget.spend(li.notions.GaussianDP(0.1), what="x")
        except li.errors.Unavailable as error:
            code = 3 if "belongs to the process that made it" in str(error) else 4
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert budget.history == ()


def test_the_command_asks_what_is_released(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = str(tmp_path / "team.sqlite"), str(tmp_path / "run.toml")
    loss = li.losses.logistic(feature_norm=1.0)
    li.write_run(li.Run(loss, li.FullBatch(100), 0.1, li.OnMeanGradient(1.0), steps=3), run)
    assert main(["budget", file, "--create", "--epsilon", "3", "--delta", "1e-5"]) == 0
    assert main(["budget", file, "--spend", run]) == 2
    assert "--spend needs --what, one line that describes the release" in capsys.readouterr().err
    assert li.Budget.open(file).history == ()
