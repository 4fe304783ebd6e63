"""The file of the journal: its tables, and how it is opened to write and to read.

Checksums of rows show damage that SQLite does not see.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
import weakref
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchrigor.errors import StoreFailed
from benchrigor.files import make_private_folder

_Values = Sequence[object]

_TYPES: Mapping[str, Any] = {"t": str, "n": int, "b": bytes, "o": str | None}
_NAMES = {"t": "text", "n": "a whole number", "b": "bytes", "o": "text or nothing"}


def checksum(*values: object) -> int:
    """Return the CRC-32 of the values of a row: texts, bytes, whole numbers and None."""
    total = 0
    for value in values:
        if isinstance(value, bytes | memoryview):
            data: bytes | memoryview = value
            kind, size = "bytes", memoryview(value).nbytes
        else:
            data = str(value).encode(errors="surrogateescape")
            kind, size = type(value).__name__, len(data)
        total = zlib.crc32(data, zlib.crc32(f"{kind}{size}:".encode(), total))
    return total


def wrong_in(columns: _Values, marks: _Values, record: _Values, *, kinds: str) -> str | None:
    """Return the problem with a row, or None.

    Parameters
    ----------
    columns
        All columns but the record and its floats.
    marks
        Checksum of record and floats, and one of columns and this; both None in older rows.
    record
        The record and its floats; empty if they were not read.
    kinds
        Letters for the columns: "t" (text), "n" (a whole number) or "o" (text or None).
    """
    for value, kind in zip((*columns, *record), f"{kinds}tb", strict=False):
        if not isinstance(value, _TYPES[kind]):
            return f"it holds {type(value).__name__}, expected {_NAMES[kind]}"
    content, total = marks
    if content is None and total is None:
        return None
    if total != checksum(*columns, content) or (record and content != checksum(*record)):
        return "its checksum differs"
    return None


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
    # `content` is the checksum of record and floats, `checksum` covers it and all other columns: a
    # list of runs checks its entries without reading the readings. Older rows have no checksums.
    # The tally of a run counts its rows, so that lost rows are noticed.
    (
        *(
            f"ALTER TABLE {table} ADD COLUMN {column} INTEGER"
            for table in ("run", "round", "result")
            for column in ("content", "checksum")
        ),
        """CREATE TABLE tally (
            run_id TEXT NOT NULL PRIMARY KEY, rounds INTEGER NOT NULL, results INTEGER NOT NULL,
            checksum INTEGER NOT NULL) WITHOUT ROWID""",
        """INSERT INTO tally SELECT run_id, rounds, results, checksum(run_id, rounds, results)
            FROM (SELECT run_id,
                (SELECT count(*) FROM round WHERE round.run_id = run.run_id) AS rounds,
                (SELECT count(*) FROM result WHERE result.run_id = run.run_id) AS results
                FROM run)""",
    ),
)

# One statement sees one state of the file, even while other processes write to it.
_STANDING = """SELECT (SELECT application_id FROM pragma_application_id),
    (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"""


_WAL_WRITE_LOCK = 120  # the byte of the -shm file that a writer locks, by SQLite's file format
_LOOK_MS = 200
_FUTILE_S = 1.0  # of a lock that code of this process holds, which does not run while we wait


class Connection(sqlite3.Connection):
    """A connection that fails soon if code of this process closed its descriptors or locked it.

    SQLite would try again for ten seconds, and for the whole timeout. Locks of other processes, and
    of other journals in this one, are waited for as ever.
    """

    def __init__(self, place: Path | str, **given: Any) -> None:
        super().__init__(place, **given)
        self._place, self._timeout_s = place, given["timeout"]
        self._was_busy = False  # when a transaction was to begin last
        self._witness, unused = os.pipe()  # what closes all descriptors closes this one, too
        os.close(unused)
        self._before = os.fstat(self._witness)
        self._release = weakref.finalize(self, _close_same, self._witness, self._before)
        _connections.add(self)

    def close(self) -> None:
        """Close the file."""
        self._release()
        super().close()

    def begin(self, kind: str) -> None:
        """Begin a transaction, when other writers have ended theirs; else StoreFailed."""
        if not self._is_whole():
            raise StoreFailed(
                f"journal {self._place}: its descriptors were closed by code of this process, such "
                "as the measured code: let it close only its own descriptors"
            )
        timeout_ms = int(min(1000 * self._timeout_s, 2**31 - 1))
        self.execute(f"PRAGMA busy_timeout = {min(_LOOK_MS, timeout_ms)}")
        try:
            self._wait_to_begin(kind)
        finally:
            self.execute(f"PRAGMA busy_timeout = {timeout_ms}")

    def _wait_to_begin(self, kind: str) -> None:
        began_s = free_s = time.monotonic()
        # Several sessions may share a journal: they do not all wait for the same lock.
        timeout_s = min(self._timeout_s, _LOOK_MS / 1000) if self._was_busy else self._timeout_s
        self._was_busy = True
        while True:
            try:
                self.execute(f"BEGIN {kind}")
            except sqlite3.OperationalError as error:
                now_s = time.monotonic()
                is_busy = error.sqlite_errorcode == sqlite3.SQLITE_BUSY
                if not is_busy or now_s - began_s >= timeout_s:
                    raise
                if not self._is_locked_here():
                    free_s = now_s
                elif now_s - free_s > _FUTILE_S:
                    raise StoreFailed(
                        f"journal {self._place} is locked by code of this process, such as the "
                        "measured code: let it end its transaction"
                    ) from error
            else:
                self._was_busy = False
                return

    def _is_whole(self) -> bool:
        """Whether the witness is still the file that was opened."""
        return _is_same(self._witness, self._before)

    def _is_locked_here(self) -> bool:
        """Whether this process, but no journal of it, holds the lock of a writer; for Linux."""
        if any(_is_writing(other) for other in [*_connections]):
            return False
        try:
            number = os.stat(f"{os.path.realpath(self._place)}-shm").st_ino  # noqa: PTH116
            lines = Path("/proc/locks").read_text().splitlines()
        except OSError:
            return False
        ours = f" WRITE {os.getpid()} "
        place = f":{number} {_WAL_WRITE_LOCK} {_WAL_WRITE_LOCK}"
        return any(ours in line and line.endswith(place) for line in lines)


def _is_writing(connection: Connection) -> bool:
    with suppress(sqlite3.ProgrammingError):  # it was closed
        return connection.in_transaction
    return False


def _is_same(descriptor: int, before: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), before)
    except OSError:
        return False


def _close_same(descriptor: int, before: os.stat_result) -> None:
    if _is_same(descriptor, before):
        os.close(descriptor)


_connections = weakref.WeakSet[Connection]()


def open_to_write(path: Path, timeout_s: float) -> Connection:
    """Open a journal, or make one that only its owner can read, and bring it up to date."""
    make_private_folder(path.parent)
    # Only a new file: closing one that is there would take the locks of other connections away.
    with suppress(OSError):  # SQLite names the problem better
        os.close(os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    connection = _connect(path, timeout_s)
    try:
        if _schema(connection, path) < len(MIGRATIONS):
            connection.execute("PRAGMA page_size = 16384")  # halves the cost of large rounds
            _enter_wal(connection, timeout_s)
            _migrate(connection, path)
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def copy_of_outdated(path: Path, timeout_s: float) -> Connection | None:
    """Return an updated copy in memory of an older journal; an empty one without a file.

    None for a journal that is up to date. The file stays as it is: reading never changes it.
    """
    with suppress(FileNotFoundError):
        if path.stat().st_size:
            with closing(_connect(path, timeout_s)) as connection:
                is_outdated = _schema(connection, path) < len(MIGRATIONS)
                return _in_memory(connection, path) if is_outdated else None
    with closing(_connect(":memory:", 0.0)) as empty:
        return _in_memory(empty, path)


def open_to_read(path: Path, timeout_s: float) -> Connection:
    """Open a journal if it, or its folder, may not be written.

    If its schema is older, or SQLite cannot read it without writing, this is a copy in memory.
    """
    with suppress(sqlite3.OperationalError):
        uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
        connection = _connect(uri, timeout_s)
        try:
            if _schema(connection, path) < len(MIGRATIONS):
                with closing(connection):
                    return _in_memory(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "runs.sqlite")
        for suffix in ("", "-wal"):  # of a writer that was killed: commits that are not yet in it
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        with closing(_connect(copy, timeout_s)) as copied:
            return _in_memory(copied, path)


def _in_memory(source: sqlite3.Connection, path: Path) -> Connection:
    """Copy a database into memory, and bring the copy up to date."""
    memory = _connect(":memory:", 0.0)
    try:
        source.backup(memory)
        if _schema(memory, path) < len(MIGRATIONS):
            _migrate(memory, path)
    except BaseException:
        memory.close()
        raise
    return memory


def _connect(place: Path | str, timeout_s: float) -> Connection:
    connection = sqlite3.connect(
        place,
        factory=Connection,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        uri=isinstance(place, str),
    )
    # Text that is damaged is to fail by its checksum, which names the row.
    connection.text_factory = lambda text: text.decode(errors="surrogateescape")
    connection.create_function("checksum", -1, checksum, deterministic=True)
    return connection


def _schema(connection: sqlite3.Connection, path: Path) -> int:
    """Return the schema of the file, 0 for a new one."""
    owner, version, tables = connection.execute(_STANDING).fetchone()
    if tables and owner != _APPLICATION_ID:
        raise StoreFailed(f"{path} is another program's database: choose another path")
    if version > len(MIGRATIONS):
        raise StoreFailed(
            f"journal {path} has schema {version}, this version of benchrigor knows up "
            f"to {len(MIGRATIONS)}: install a newer one"
        )
    return int(version)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for script in MIGRATIONS[_schema(connection, path) :]:
            for statement in script:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _enter_wal(connection: sqlite3.Connection, timeout_s: float) -> None:
    """Switch the file to WAL mode, for good; SQLite itself does not wait for others here."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return
