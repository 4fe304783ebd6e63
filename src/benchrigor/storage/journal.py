"""The journal: every run in one SQLite file, append only, one row per finished round."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from benchrigor.errors import InvalidInput, StoreFailed
from benchrigor.model import Round, RunRecord, codec
from benchrigor.model.series import short
from benchrigor.protocols import Store
from benchrigor.storage.packing import pack, unpack

_Connections = dict[tuple[int, int], sqlite3.Connection]

_APPLICATION_ID = 0x62726967  # "brig" in the file's header: this database is ours

# Schema n is reached by running script n on schema n - 1. A script that was released is never
# edited; a new schema is a new script at the end.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        f"PRAGMA application_id = {_APPLICATION_ID}",
        """CREATE TABLE run (
            sequence INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
            started_at TEXT NOT NULL, record TEXT NOT NULL, floats BLOB NOT NULL)""",
        """CREATE TABLE round (
            sequence INTEGER PRIMARY KEY, run_id TEXT NOT NULL REFERENCES run (run_id),
            round_index INTEGER NOT NULL, record TEXT NOT NULL, floats BLOB NOT NULL,
            UNIQUE (run_id, round_index))""",
        """CREATE TABLE result (
            sequence INTEGER PRIMARY KEY, run_id TEXT NOT NULL REFERENCES run (run_id),
            rounds INTEGER NOT NULL, reason TEXT, headline TEXT NOT NULL,
            record TEXT NOT NULL, floats BLOB NOT NULL)""",
        "CREATE INDEX result_of_run ON result (run_id)",
        *(
            f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} "
            "BEGIN SELECT RAISE(ABORT, 'the journal is append only'); END"
            for table in ("run", "round", "result")
            for verb in ("UPDATE", "DELETE")
        ),
    ),
)

# One statement sees one state of the file, whatever other processes are creating in it.
_STANDING = """SELECT (SELECT application_id FROM pragma_application_id),
    (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"""

_RUNS = """SELECT run.run_id, name, started_at, held.rounds, reason, headline
    FROM run JOIN (SELECT run.run_id, count(round.run_id) AS rounds
        FROM run LEFT JOIN round USING (run_id) GROUP BY run.run_id) AS held USING (run_id)
    LEFT JOIN result ON result.sequence = (SELECT max(sequence) FROM result
        WHERE result.run_id = run.run_id AND result.rounds = held.rounds)
    WHERE instr(run.run_id, :query) OR instr(name, :query) ORDER BY run.sequence DESC"""

# A result that speaks of fewer rounds than are stored is out of date: the run was taken up again.
_RESULT = """SELECT record, floats FROM result WHERE run_id = :run_id AND rounds =
    (SELECT count(*) FROM round WHERE run_id = :run_id) ORDER BY sequence DESC LIMIT 1"""

_ADVICE = {
    "SQLITE_FULL": "free some disk space and resume the run; finished rounds are kept",
    "SQLITE_READONLY": "make the file and its folder writable, or choose another path",
    "SQLITE_CANTOPEN": "expected a file in a writable folder; choose another path",
    "SQLITE_NOTADB": "expected a journal written by benchrigor; choose another path",
    "SQLITE_CORRUPT": "put the damaged file aside (`sqlite3 FILE .recover` saves what it can)",
    "SQLITE_BUSY": "another process kept it busy for longer than the timeout; try again",
    "SQLITE_IOERR": "check that the disk works and has space left",
}

# By platform: the variable that names the data folder, and its usual place below home.
_DATA_FOLDERS = {
    "win32": ("LOCALAPPDATA", "AppData/Local"),
    "darwin": ("XDG_DATA_HOME", "Library/Application Support"),
}


def default_path() -> Path:
    """Return the path of the journal unless an option says otherwise.

    ``$BENCHRIGOR_STORE`` if set; else ``benchrigor/runs.sqlite`` in the user's data folder:
    ``$XDG_DATA_HOME``, without it ``~/.local/share`` (``~/Library/Application Support`` on
    macOS); ``%LOCALAPPDATA%`` on Windows.

    Raises
    ------
    StoreFailed
        When the user has no home folder.
    """
    if chosen := os.environ.get("BENCHRIGOR_STORE"):
        return Path(chosen)
    variable, below_home = _DATA_FOLDERS.get(sys.platform, ("XDG_DATA_HOME", ".local/share"))
    folder = Path(os.environ.get(variable, ""))
    if not folder.is_absolute():  # the XDG specification has relative paths ignored
        try:
            folder = Path.home() / below_home
        except RuntimeError as error:
            raise StoreFailed(f"{error} Set BENCHRIGOR_STORE to the journal's path.") from error
    return folder / "benchrigor" / "runs.sqlite"


class Journal:
    """Keeps runs in one SQLite file; several processes and threads may write to it at once.

    Nothing is ever changed or deleted, which the file itself enforces. A round is committed
    before `append` returns. The file is in WAL mode with ``synchronous=NORMAL``: a commit
    outlives a process that is killed at any moment. A crash of the whole machine can lose the
    last commits; it cannot damage the file.

    Parameters
    ----------
    path
        The file; it and its folder are created on first use.
    timeout_s
        How long to wait for other processes that are writing, in seconds.

    Raises
    ------
    StoreFailed
        By every method: when the file cannot be opened, read or written, is damaged, is another
        program's database or of a newer schema.

    Examples
    --------
    >>> import tempfile
    >>> from benchrigor.model import Options
    >>> header = RunRecord(name="sort", options=Options(), metrics=(), seed=1, rounds=(),
    ...                    analyses=())
    >>> with tempfile.TemporaryDirectory() as folder, Journal(f"{folder}/runs.sqlite") as journal:
    ...     run_id = journal.begin(header)
    ...     journal.load(run_id[:6]).name
    'sort'
    """

    def __init__(self, path: str | Path, *, timeout_s: float = 30.0) -> None:
        self.path = Path(path)
        self._timeout_s = timeout_s
        # By process and thread. A forked child leaves its parent's entries alone: using one, or
        # even closing it (so letting it be collected), would break the parent's locks.
        self._connections: _Connections = {}
        weakref.finalize(self, _close, self._connections)

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file, as a dropped journal does by itself; the next use opens it again."""
        with self._explained():
            _close(self._connections)

    def check(self) -> None:
        """Raise StoreFailed unless the file can be written now."""
        with self._transaction("IMMEDIATE"):
            pass

    def begin(self, header: RunRecord) -> str:
        """Open a run described by a record (its rounds are not stored) and return its id."""
        record, floats = pack(replace(header, rounds=()))
        started_at = (
            header.provenance.started_at
            if header.provenance
            else datetime.now(UTC).isoformat(timespec="seconds")
        )
        with self._transaction("IMMEDIATE") as connection:
            run_id = _unused_id(connection)
            connection.execute(
                "INSERT INTO run (run_id, name, started_at, record, floats) VALUES (?, ?, ?, ?, ?)",
                (run_id, _storable(header.name), started_at, record, floats),
            )
        return run_id

    def append(self, run_id: str, finished: Round) -> None:
        """Commit a finished round; StoreFailed if the run holds a round of that index."""
        # A part of a record, so that its schema is checked as that of a record is.
        record, floats = pack({"rounds": (finished,)})
        index = finished.plan.index
        with self._transaction("IMMEDIATE") as connection:
            full_id = self._resolve(connection, run_id)
            try:
                connection.execute(
                    "INSERT INTO round (run_id, round_index, record, floats) VALUES (?, ?, ?, ?)",
                    (full_id, index, record, floats),
                )
            except sqlite3.IntegrityError as error:
                raise StoreFailed(
                    f"round {index} of run {full_id} is in {self.path} already, expected a new "
                    "index: nothing was stored"
                ) from error

    def finish(self, run_id: str, record: RunRecord) -> None:
        """Store the result of the rounds appended so far; of several results the latest counts."""
        text, floats = pack(replace(record, rounds=()))
        decision = record.decision
        reason = str(decision.reason) if decision and decision.reason else None
        with self._transaction("IMMEDIATE") as connection:
            full_id = self._resolve(connection, run_id)
            connection.execute(
                "INSERT INTO result (run_id, rounds, reason, headline, record, floats) VALUES "
                "(?, (SELECT count(*) FROM round WHERE run_id = ?), ?, ?, ?, ?)",
                (full_id, full_id, reason, str(record), text, floats),
            )

    def runs(self, query: str = "") -> list[dict[str, Any]]:
        """List the runs whose id or name holds ``query``, newest first, without their readings.

        Returns
        -------
        list of dict
            ``run_id``, ``name``, ``started_at`` (ISO 8601), ``rounds`` (how many are stored),
            ``finished`` (whether there is a result of all of them), ``reason`` (why the session
            stopped, or None) and ``headline`` (the result in one line, or empty).
        """
        with self._transaction("DEFERRED") as connection:
            rows = connection.execute(_RUNS, {"query": _storable(query)}).fetchall()
        names = ("run_id", "name", "started_at", "rounds", "reason", "headline")
        listed = [dict(zip(names, row, strict=True)) for row in rows]
        return [
            {**run, "finished": run["headline"] is not None, "headline": run["headline"] or ""}
            for run in listed
        ]

    def load(self, run_id: str) -> RunRecord:
        """Return the record of a run: its rounds, and its result if it is finished."""
        with self._transaction("DEFERRED") as connection:
            full_id = self._resolve(connection, run_id)
            header = "SELECT record, floats FROM run WHERE run_id = ?"
            row = connection.execute(_RESULT, {"run_id": full_id}).fetchone()
            row = row or connection.execute(header, (full_id,)).fetchone()
            record = RunRecord.from_dict(unpack(*row))
            return replace(record, rounds=_rounds(connection, full_id), run_id=full_id)

    def _resolve(self, connection: sqlite3.Connection, run_id: str) -> str:
        """Complete a run id from its first characters."""
        rows = connection.execute(  # ids are hexadecimal: "g" sorts behind all their digits
            "SELECT run_id FROM run WHERE run_id BETWEEN ? AND ? LIMIT 6",
            (_storable(run_id), _storable(f"{run_id}g")),
        ).fetchall()
        ids = [str(row[0]) for row in rows]
        if not ids:
            raise StoreFailed(f"no run {run_id!r} in {self.path}, expected the id of a stored run")
        if len(ids) > 1:
            raise StoreFailed(
                f"run id {run_id!r} is ambiguous in {self.path}: {', '.join(ids[:5])}"
                f"{', ...' if len(ids) > 5 else ''}; give more of its characters"
            )
        return ids[0]

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        """Run a block in one transaction: committed at its end, undone by any exception."""
        with self._explained():
            key = (os.getpid(), threading.get_ident())
            if key not in self._connections:
                self._connections[key] = self._opened()
            connection = self._connections[key]
            with connection:
                connection.execute(f"BEGIN {kind}")
                yield connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn every failure of the file into `StoreFailed` with advice."""
        try:
            yield
        except (sqlite3.Error, OSError, ValueError) as error:
            raise StoreFailed(f"journal {self.path}: {error}{_advice(error)}") from error

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            self.path, timeout=self._timeout_s, isolation_level=None, check_same_thread=False
        )
        try:
            if self._schema(connection) < len(MIGRATIONS):
                self._migrate(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _schema(self, connection: sqlite3.Connection) -> int:
        """Return the schema of the file, 0 for a new one."""
        owner, version, tables = connection.execute(_STANDING).fetchone()
        if tables and owner != _APPLICATION_ID:
            raise StoreFailed(f"{self.path} is another program's database: choose another path")
        if version > len(MIGRATIONS):
            raise StoreFailed(
                f"journal {self.path} has schema {version}, this version of benchrigor knows up "
                f"to {len(MIGRATIONS)}: install a newer one"
            )
        return int(version)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA page_size = 16384")  # halves the cost of large rounds, measured
        self._enter_wal(connection)
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for script in MIGRATIONS[self._schema(connection) :]:
                for statement in script:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _enter_wal(self, connection: sqlite3.Connection) -> None:
        """Switch the file to WAL mode, for good; SQLite itself does not wait for others here."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
            else:
                return


def _close(connections: _Connections) -> None:
    """Close what this process has opened."""
    for key in list(connections):
        if key[0] == os.getpid():
            connections.pop(key).close()


def _storable(text: str) -> str:
    """Escape halves of characters, which SQLite refuses: arguments need not be UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _advice(error: Exception) -> str:
    code = getattr(
        error, "sqlite_errorname", "SQLITE_CANTOPEN" if isinstance(error, OSError) else ""
    )
    return next((f": {text}" for name, text in _ADVICE.items() if code.startswith(name)), "")


def _rounds(connection: sqlite3.Connection, full_id: str) -> tuple[Round, ...]:
    rows = connection.execute(
        "SELECT record, floats FROM round WHERE run_id = ? ORDER BY round_index", (full_id,)
    )
    parts = (codec.without_versions(unpack(*row)) for row in rows)
    return tuple(codec.decode(Round, part["rounds"][0], where="round") for part in parts)


def _unused_id(connection: sqlite3.Connection) -> str:
    while True:
        run_id = uuid.uuid4().hex[:8]
        taken = connection.execute("SELECT 1 FROM run WHERE run_id = ?", (run_id,)).fetchone()
        if not taken:
            return run_id


def as_store(store: str | Path | Store) -> Store:
    """Open a path; return a Store unchanged."""
    if isinstance(store, str | Path):
        return Journal(store)
    if not isinstance(store, Store) or isinstance(store, type):
        raise InvalidInput(
            f"store is {short(store)}, expected a path or an object with the methods of "
            "protocols.Store"
        )
    return store
