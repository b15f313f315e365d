"""Ledgers in SQLite: one file, many processes. Whatever is written is on the disk before `spend` returns, or not at all.

A rollback journal, not a write-ahead log: the file is then all there is to copy, to back up and to open read-only, and
network drives have no shared memory. Writes are rare. `synchronous = EXTRA` also waits for the folder: an ε that was spent
and is forgotten after a power failure would be the worst.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lastiterate.budget.entries import BudgetEntry, Terms, chained, entries_of, first_digest
from lastiterate.errors import InvalidInput, Unavailable

_SCHEMA = """
CREATE TABLE terms (
    one INTEGER PRIMARY KEY CHECK (one = 1), content TEXT NOT NULL, entries INTEGER NOT NULL, digest TEXT NOT NULL
);
CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TRIGGER unchanged BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries of a ledger stay as they are'); END;
CREATE TRIGGER kept BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries of a ledger stay'); END;
"""


@dataclass(frozen=True)
class Written:
    """The texts and digests of a ledger, word for word."""

    terms: str
    texts: tuple[str, ...]
    digests: tuple[str, ...]
    count: int
    digest: str


class Ledger(ABC):
    """A place where a budget is kept."""

    @abstractmethod
    def transaction(self, *, writing: bool) -> AbstractContextManager[sqlite3.Connection]:
        """Run a transaction, all or nothing; when writing, nobody else writes meanwhile."""


@dataclass(frozen=True)
class FileLedger(Ledger):
    """A ledger in a file. Each transaction has a connection of its own, so that threads and forked processes are safe."""

    path: Path
    timeout: float
    read_only: bool = False

    @contextmanager
    def transaction(self, *, writing: bool) -> Iterator[sqlite3.Connection]:
        if writing and self.read_only:
            raise Unavailable("budget_read_only", file=self.path)
        with self._explained(), closing(self._connected()) as connection, _all_or_nothing(connection, writing):
            yield connection

    def _connected(self) -> sqlite3.Connection:
        """Connect to a file that exists: a misspelt name is no new budget."""
        uri = f"{self.path.as_uri()}?mode={'ro' if self.read_only else 'rw'}"
        connection = sqlite3.connect(uri, uri=True, timeout=self.timeout, isolation_level=None)
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise Unavailable("budget_in_use", file=self.path, timeout=self.timeout) from error
            raise InvalidInput("budget_not_readable", field="file", file=self.path, error=str(error)) from error


@dataclass(frozen=True, eq=False)
class MemoryLedger(Ledger):
    """A ledger in the memory of one process: a copy in another one would not know what is spent here."""

    connection: sqlite3.Connection
    process: int = field(default_factory=os.getpid)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def transaction(self, *, writing: bool) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self.process:
            raise Unavailable("budget_of_another_process")
        with self.lock, _all_or_nothing(self.connection, writing):
            yield self.connection

    def __reduce__(self) -> str:
        raise Unavailable("budget_copied")


@contextmanager
def _all_or_nothing(connection: sqlite3.Connection, writing: bool) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def in_memory(terms: str, digest: str) -> MemoryLedger:
    """Make a new ledger that ends with the process."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _filled(connection, terms, digest)
    return MemoryLedger(connection)


def create(path: Path, terms: str, digest: str) -> bool:
    """Make a new file with these terms, for its owner alone; return False if there is one. Nobody sees half a file."""
    import tempfile

    try:
        handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from error
    try:
        os.close(handle)
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            _filled(connection, terms, digest)
        os.link(draft, path)
    except FileExistsError:
        return False
    except (OSError, sqlite3.Error) as error:
        raise _not_written(path, error) from error
    finally:
        os.unlink(draft)
    return True


def _not_written(path: Path, error: Exception) -> InvalidInput:
    why = getattr(error, "strerror", None) or str(error)
    return InvalidInput("budget_not_written", field="file", file=path, error=why)


def _filled(connection: sqlite3.Connection, terms: str, digest: str) -> None:
    connection.executescript(f"PRAGMA synchronous = EXTRA; BEGIN; {_SCHEMA}")
    connection.execute("INSERT INTO terms VALUES (1, ?, 0, ?)", (terms, digest))
    connection.execute("COMMIT")


def written(connection: sqlite3.Connection) -> Written:
    """Read all that a ledger holds."""
    rows: Sequence[tuple[str, str]] = connection.execute(
        "SELECT content, digest FROM entries ORDER BY number"
    ).fetchall()
    found = connection.execute("SELECT content, entries, digest FROM terms").fetchone() or ("null", 0, "")
    return Written(found[0], tuple(row[0] for row in rows), tuple(row[1] for row in rows), found[1], found[2])


def append(connection: sqlite3.Connection, number: int, text: str, digest: str) -> None:
    """Write one more entry, with the digest of the ledger after it."""
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (number, text, digest))
    connection.execute("UPDATE terms SET entries = ?, digest = ?", (number, digest))


@dataclass(frozen=True, eq=False)
class History:
    """A ledger as it was read: terms and entries that belong together, word for word; `digest` covers all of them."""

    terms: Terms
    entries: tuple[BudgetEntry, ...]
    texts: tuple[str, ...]
    digest: str


def history_of(path: Path | None, found: Written) -> History:
    """Read a ledger, or refuse it if an entry was edited, removed or put in, as far as the ledger itself can tell."""
    try:
        if (content := json.loads(found.terms)) is None:
            raise InvalidInput("budget_without_terms")
        terms = Terms.from_dict(content)
        digests = chained(terms, found.texts)
        _check_chain([first_digest(terms), *digests], found)
        return History(terms, entries_of(found.texts), found.texts, found.digest)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput("budget_damaged", field="file", file=path or "the budget", error=str(error)) from error


def _check_chain(digests: list[str], found: Written) -> None:
    for number, (now, then) in enumerate(zip(digests[1:], found.digests, strict=True), 1):
        if now != then:
            raise InvalidInput("entry_changed", number=number)
    if (len(found.texts), digests[-1]) != (found.count, found.digest):
        raise InvalidInput("entries_missing", count=found.count)
