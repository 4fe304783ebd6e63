"""The journal: every run in one SQLite file, append only, one row per finished round.

A record becomes rows and is read back: JSON, and one BLOB for all readings. A million readings cost
most of a second as JSON, and a few milliseconds as little-endian float64.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from benchrigor.errors import InvalidInput, StoreFailed
from benchrigor.model import Round, RunRecord, codec
from benchrigor.model.series import Floats, short
from benchrigor.protocols import Store
from benchrigor.storage.database import (
    Connection,
    checksum,
    copy_of_outdated,
    open_to_read,
    open_to_write,
    wrong_in,
)
from benchrigor.storage.user_settings import data_folder

# Replaces an array in the JSON: {"float64-le": [start, stop]} counts items of 8 bytes in the BLOB,
# which are floats or whole numbers.
_MARKS = {"float64": "float64-le", "int64": "int64-le"}


def pack(record: object) -> tuple[str, memoryview]:
    """Turn a record, or a mapping with some of its fields, into JSON and a block of floats."""
    arrays: list[Floats] = []
    plain = {**codec.versions(), **codec.encode(_without_arrays(record, arrays))}
    floats = np.concatenate([np.empty(0), *arrays]).astype("<f8", copy=False)
    return json.dumps(plain, allow_nan=False), floats.data


def unpack(text: str, floats: bytes | memoryview) -> dict[str, Any]:
    """Rebuild the plain data that `pack` wrote, arrays in their places.

    Raises ValueError when the text is not JSON or the block does not hold whole floats.
    """
    numbers = np.frombuffer(floats, dtype="<f8")

    def restore(item: dict[str, Any]) -> object:
        for kind, mark in _MARKS.items():
            if isinstance(place := item.get(mark), list):
                return numbers[slice(*place)].view(f"<{kind[0]}8")
        return item

    plain: dict[str, Any] = json.loads(text, object_hook=restore)
    return plain


def _without_arrays(item: object, arrays: list[Floats]) -> object:
    """Move the arrays of ``item`` to ``arrays`` and leave marks in their places."""
    if isinstance(item, np.ndarray) and item.ndim == 1 and item.dtype.name in _MARKS:
        start = sum(array.size for array in arrays)
        arrays.append(item.view(np.float64))
        return {_MARKS[item.dtype.name]: [start, start + item.size]}
    if dataclasses.is_dataclass(item):
        item = {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    if isinstance(item, Mapping):
        return {key: _without_arrays(value, arrays) for key, value in item.items()}
    if isinstance(item, tuple | list):
        return [_without_arrays(part, arrays) for part in item]
    return item


_Connections = dict[tuple[int, int], Connection]
_Part = TypeVar("_Part")

_LOST = "its entry in the list of runs is lost"
_BARRED = ("SQLITE_READONLY", "SQLITE_CANTOPEN")  # to who may only read

# The entries of a list, without the records, and with the latest result. A damaged row may hold
# NULL instead of id and name: it is shown for any query.
_LISTED_RUNS = """SELECT run_id, name, started_at, content, checksum, record, floats FROM run
    WHERE ifnull(instr(run_id, :query) OR instr(name, :query), 1) ORDER BY sequence DESC"""
_IN_TABLE = "SELECT run_id FROM run NOT INDEXED"  # the index may be whole if the rows are not
_LISTED_RESULTS = """SELECT run_id, rounds, reason, headline, content, checksum
    FROM result NOT INDEXED ORDER BY rounds, sequence"""
_LISTED_TALLIES = """SELECT tally.run_id, tally.rounds, tally.results, checksum, held.rounds
    FROM tally LEFT JOIN (SELECT run_id, count(*) AS rounds FROM round GROUP BY run_id) AS held
        USING (run_id)"""

_RUN = (
    "SELECT run_id, name, started_at, content, checksum, record, floats FROM run WHERE run_id = ?"
)
_ROUNDS = """SELECT run_id, round_index, content, checksum, record, floats FROM round
    WHERE run_id = ? ORDER BY round_index"""
_RESULT = """SELECT run_id, rounds, reason, headline, content, checksum, record, floats FROM result
    WHERE run_id = :run_id AND +run_id = :run_id ORDER BY rounds DESC, sequence DESC LIMIT 1"""
_TALLY = "SELECT run_id, rounds, results, checksum FROM tally WHERE run_id = ?"
# An index that is damaged leads to rows of other runs, or several times to the same one.
_N_RESULTS = """SELECT count(DISTINCT sequence) FROM result WHERE +run_id = :run_id AND sequence IN
    (SELECT sequence FROM result WHERE run_id = :run_id)"""

# By table, the types of the columns that `wrong_in` checks.
_KINDS = {"run": "ttt", "round": "tn", "result": "tnot"}

_ADVICE = {
    "SQLITE_FULL": "free some disk space and try again",
    "SQLITE_READONLY": "make the file and its folder writable, or choose another path",
    "SQLITE_CANTOPEN": "expected a file in a writable folder; choose another path",
    "SQLITE_NOTADB": "expected a journal written by benchrigor; choose another path",
    "SQLITE_CORRUPT": "put the damaged file aside (`sqlite3 FILE .recover` saves the rest)",
    "SQLITE_BUSY": "another process kept it busy for longer than the timeout; try again",
    "SQLITE_IOERR": "check that the disk works and has space left",
}


def default_path() -> Path:
    """Return the path of the journal unless an option says otherwise.

    ``$BENCHRIGOR_STORE`` if set; else ``benchrigor/runs.sqlite`` in the user's data folder, see
    `data_folder`.

    Raises
    ------
    StoreFailed
        When the user has no home folder.
    """
    chosen = os.environ.get("BENCHRIGOR_STORE")
    return Path(chosen) if chosen else data_folder() / "runs.sqlite"


class Journal:
    """Keeps runs in one SQLite file; several processes and threads may write to it at once.

    Nothing is ever changed or deleted, which the file itself enforces, but for the count of a run's
    rows. Each row has a checksum; a run that is damaged is named, and others stay readable. A round
    is committed before `append` returns. The file is in WAL mode with ``synchronous=NORMAL``: a
    commit outlives a process that is killed at any moment. A crash of the whole machine can lose
    the last commits; it cannot damage the file.

    Parameters
    ----------
    path
        The file; it and its folder are created on first use.
    timeout_s
        Maximum wait for other processes that are writing, in seconds. A run waits once, before it
        measures or after a round; the rounds before are kept.

    Raises
    ------
    StoreFailed
        By every method: when the file cannot be opened, read or written, is damaged, is another
        program's database or of a newer schema. A file that may not be written can be read.

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

    def __init__(self, path: str | Path, *, timeout_s: float = 5.0) -> None:
        self.path = Path(path)
        self._timeout_s = timeout_s
        # By process and thread. A forked child leaves its parent's entries alone: using one, or
        # even closing it (so letting it be collected), would break the parent's locks.
        self._connections: _Connections = {}
        self._readers: _Connections = {}  # if the file cannot be written
        weakref.finalize(self, _close, self._connections, self._readers)

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file, as a dropped journal does by itself; the next use opens it again."""
        with self._explain_failures():
            _close(self._connections, self._readers)

    def check(self) -> None:
        """Raise StoreFailed unless the file can be written now."""
        with self._transaction("IMMEDIATE") as connection:
            connection.execute("DELETE FROM tally WHERE 0")  # a transaction alone may only read

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit at once what this thread writes inside, or nothing of it."""
        with self._transaction("IMMEDIATE"):
            yield

    def begin(self, header: RunRecord) -> str:
        """Open a run described by a record (its rounds are not stored) and return its id."""
        packed = pack(replace(header, rounds=()))
        started_at = (
            header.provenance.started_at
            if header.provenance
            else datetime.now(UTC).isoformat(timespec="seconds")
        )
        with self._transaction("IMMEDIATE") as connection:
            run_id = _unused_id(connection)
            columns = {"run_id": run_id, "name": _storable(header.name), "started_at": started_at}
            _insert(connection, "run", columns, packed)
            _count(connection, run_id, rounds=0, results=0)
        return run_id

    def append(self, run_id: str, finished: Round) -> None:
        """Commit a finished round; StoreFailed if the run holds a round of that index."""
        # A part of a record, so that its schema is checked like a record's.
        packed = pack({"rounds": (finished,)})
        index = int(finished.plan.index)
        with self._transaction("IMMEDIATE") as connection:
            full_id = self._resolve(connection, run_id)
            rounds, results = self._tally(connection, full_id)
            try:
                _insert(connection, "round", {"run_id": full_id, "round_index": index}, packed)
            except sqlite3.IntegrityError as error:
                raise StoreFailed(
                    f"round {index} of run {full_id} is in {self.path} already, expected a new "
                    "index: nothing was stored"
                ) from error
            _count(connection, full_id, rounds=rounds + 1, results=results)

    def finish(self, run_id: str, record: RunRecord) -> None:
        """Store the result of the rounds appended so far; of several results the latest counts."""
        packed = pack(replace(record, rounds=()))
        decision = record.decision
        with self._transaction("IMMEDIATE") as connection:
            full_id = self._resolve(connection, run_id)
            rounds, results = self._tally(connection, full_id)
            columns = {
                "run_id": full_id,
                "rounds": rounds,
                "reason": str(decision.reason) if decision and decision.reason else None,
                "headline": _storable(str(record)),
            }
            _insert(connection, "result", columns, packed)
            _count(connection, full_id, rounds=rounds, results=results + 1)

    def runs(self, query: str = "") -> list[dict[str, Any]]:
        """List the runs with ``query`` in their id or name, newest first, without their readings.

        Returns
        -------
        list of dict
            ``run_id``, ``name``, ``started_at`` (ISO 8601), ``commit`` (of the measured code, or
            None), ``rounds`` (how many are stored),
            ``finished`` (whether there is a result of all of them), ``reason`` (why the session
            stopped, or None) and ``headline`` (the result in one line, or empty). A run that is
            damaged has ``damage``, too, which says how; its other entries may be wrong.
        """
        query = _storable(query)
        with self._transaction("DEFERRED") as connection:
            runs = connection.execute(_LISTED_RUNS, {"query": query}).fetchall()
            tallies = {row[0]: row for row in connection.execute(_LISTED_TALLIES)}
            results: dict[str, list[Any]] = {}
            for row in connection.execute(_LISTED_RESULTS):
                results.setdefault(row[0], []).append(row)
            ids = {row[0] for row in connection.execute(_IN_TABLE)}
        lost = [(tally, "", "", None, None, "{}", b"") for tally in tallies if tally not in ids]
        return [
            _summary(row, tallies.get(row[0]), results.get(row[0], []), is_lost=row[0] not in ids)
            for row in [*runs, *(row for row in lost if query in str(row[0]))]
        ]

    def load(self, run_id: str) -> RunRecord:
        """Return the record of a run: its rounds, and its result if it is finished."""
        with self._transaction("DEFERRED") as connection:
            full_id = self._resolve(connection, run_id)
            try:
                record = self._load(connection, full_id)
            except sqlite3.DatabaseError as error:
                raise StoreFailed(
                    f"journal {self.path}: run {full_id} cannot be read: {error}{_advice(error)}; "
                    "other runs may be intact"
                ) from error
        return record

    def _load(self, connection: sqlite3.Connection, full_id: str) -> RunRecord:
        header = connection.execute(_RUN, (full_id,)).fetchone()
        record = self._check("run", f"run {full_id}", header, RunRecord.from_dict)
        n_rounds, n_results = self._tally(connection, full_id)
        (there,) = connection.execute(_N_RESULTS, {"run_id": full_id}).fetchone()
        if there != n_results:
            raise self._damage(f"run {full_id}", _missing(there, n_results, "results"))
        if n_results:
            row = connection.execute(_RESULT, {"run_id": full_id}).fetchone()
            name = f"the result of run {full_id}"
            result = self._check("result", name, row, RunRecord.from_dict)
            # One of fewer rounds than are stored is out of date: the run was taken up again.
            record = result if row[1] == n_rounds else record
        rounds = tuple(
            self._check("round", f"round {row[1]!r} of run {full_id}", row, _round_of)
            for row in connection.execute(_ROUNDS, (full_id,))
        )
        if len(rounds) != n_rounds:
            raise self._damage(f"run {full_id}", _missing(len(rounds), n_rounds, "rounds"))
        return replace(record, rounds=rounds, run_id=full_id)

    def _check(
        self, table: str, name: str, row: Sequence[Any], decode: Callable[[dict[str, Any]], _Part]
    ) -> _Part:
        """Return the contents of a row; StoreFailed when it is not as it was written."""
        *columns, content, total, text, floats = row
        why = wrong_in(columns, (content, total), (text, floats), kinds=_KINDS[table])
        if why is not None:
            raise self._damage(name, why)
        try:
            return decode(unpack(text, floats))
        except InvalidInput as error:  # such as the record of a newer version
            raise StoreFailed(f"journal {self.path}: {name} cannot be read: {error}") from error
        except Exception as error:  # an older row, without checksum, may hold anything
            raise self._damage(name, f"{type(error).__name__}: {error}") from error

    def _tally(self, connection: sqlite3.Connection, full_id: str) -> tuple[int, int]:
        """Return the number of rounds and results that a run has by its tally."""
        row = connection.execute(_TALLY, (full_id,)).fetchone()
        why = _wrong_tally(row)
        if why is not None:
            raise self._damage(f"run {full_id}", why)
        return row[1], row[2]

    def _damage(self, name: str, why: str) -> StoreFailed:
        return StoreFailed(
            f"journal {self.path}: {name} is damaged: {why}. Other runs stay readable; look for an "
            "earlier copy of the file, or measure this run again"
        )

    def _resolve(self, connection: sqlite3.Connection, run_id: str) -> str:
        """Complete a run id from its first characters."""
        first = _storable(run_id)
        span = (first, f"{first}g")  # ids are hexadecimal: "g" sorts after all their digits
        between = "SELECT run_id FROM {} WHERE run_id BETWEEN ? AND ? LIMIT 6"
        ids = [str(row[0]) for row in connection.execute(between.format("run"), span)]
        if not ids and (lost := connection.execute(between.format("tally"), span).fetchone()):
            raise self._damage(f"run {lost[0]}", _LOST)
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
        """Run a block in one transaction: committed at its end, undone by any exception.

        A block inside of another one is a part of it.
        """
        with self._explain_failures():
            connection = self._connection(is_reading=kind == "DEFERRED")
            if connection.in_transaction:
                yield connection
                return
            try:
                with connection:
                    connection.begin(kind)
                    yield connection
            finally:
                if connection not in {*self._connections.values(), *self._readers.values()}:
                    connection.close()  # a copy of an outdated file

    def _connection(self, *, is_reading: bool) -> Connection:
        """Return the connection of this thread; one that only reads if no other can be had."""
        key = (os.getpid(), threading.get_ident())
        if key in self._connections:
            return self._connections[key]
        try:
            if is_reading and (copy := copy_of_outdated(self.path, self._timeout_s)) is not None:
                return copy  # not kept: the file may be made, or brought up to date, by the next
            opened = self._connections[key] = open_to_write(self.path, self._timeout_s)
        except (sqlite3.OperationalError, OSError) as error:
            is_barred = getattr(error, "sqlite_errorname", _BARRED[0]).startswith(_BARRED)
            if not (is_reading and is_barred and self.path.is_file()):
                raise
            if key not in self._readers:
                self._readers[key] = open_to_read(self.path, self._timeout_s)
            return self._readers[key]
        return opened

    @contextmanager
    def _explain_failures(self) -> Iterator[None]:
        """Turn every failure of the file into `StoreFailed` with advice."""
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
            raise StoreFailed(f"journal {self.path}: {error}{_advice(error)}") from error


def _close(*opened: _Connections) -> None:
    """Close what this process has opened."""
    for connections in opened:
        for key in list(connections):
            if key[0] == os.getpid():
                connections.pop(key).close()


def _advice(error: Exception) -> str:
    code = getattr(
        error, "sqlite_errorname", "SQLITE_CANTOPEN" if isinstance(error, OSError) else ""
    )
    return next((f": {text}" for name, text in _ADVICE.items() if code.startswith(name)), "")


def _storable(text: str) -> str:
    """Escape text outside of UTF-8, such as bytes of an argument: SQLite takes no such text."""
    if not isinstance(text, str):
        raise InvalidInput(f"a name, id or query is {short(text)}, expected text")
    return text.encode(errors="backslashreplace").decode()


def _insert(
    connection: sqlite3.Connection,
    table: str,
    columns: Mapping[str, object],
    packed: tuple[str, memoryview],
) -> None:
    """Append a row with its checksums."""
    content = checksum(*packed)
    total = checksum(*columns.values(), content)
    names = (*columns, "record", "floats", "content", "checksum")
    places = ", ".join("?" * len(names))
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"  # noqa: S608  # ours
    connection.execute(statement, (*columns.values(), *packed, content, total))


def _count(connection: sqlite3.Connection, run_id: str, *, rounds: int, results: int) -> None:
    """Put down how many rounds and results a run has."""
    total = checksum(run_id, rounds, results)
    connection.execute(
        "INSERT OR REPLACE INTO tally VALUES (?, ?, ?, ?)", (run_id, rounds, results, total)
    )


def _wrong_tally(row: Sequence[Any] | None) -> str | None:
    """Return the problem with the tally of a run, or None."""
    if row is None:
        return "the count of its rounds is lost"
    *counts, total = row
    return None if total == checksum(*counts) else "the count of its rounds is wrong"


def _missing(there: int, expected: int, what: str) -> str:
    return f"{there} of its {expected} {what} are there"


def _summary(
    run: Sequence[Any], tally: Sequence[Any] | None, results: Sequence[Any], *, is_lost: bool
) -> dict[str, Any]:
    """Return the entry of a run in a list, with its problem, if there is one."""
    run_id, name, started_at, content, total, *record = run
    n_rounds = (tally[4] or 0) if tally else 0
    result = results[-1] if results else None
    damage = _LOST if is_lost else wrong_in(run[:3], (content, total), record, kinds=_KINDS["run"])
    damage = damage or _wrong_tally(tally and tally[:4])
    if damage is None and tally and n_rounds != tally[1]:
        damage = _missing(n_rounds, tally[1], "rounds")
    if damage is None and tally and len(results) != tally[2]:
        damage = _missing(len(results), tally[2], "results")
    if damage is None and result is not None:
        damage = wrong_in(result[:4], result[4:], (), kinds=_KINDS["result"])
    _, finished_rounds, reason, headline = result[:4] if result else (None, None, None, "")
    is_finished = damage is None and finished_rounds == n_rounds
    return {
        "run_id": run_id,
        "name": name,
        "started_at": started_at,
        "commit": None if damage else _commit_in(record[0]),
        "rounds": n_rounds,
        "finished": is_finished,
        "reason": reason if is_finished else None,
        "headline": headline if is_finished else "",
        **({} if damage is None else {"damage": damage}),
    }


def _commit_in(record: str) -> str | None:
    """Return the commit of a run, from its record; None also if an older row is not JSON."""
    try:
        commit = json.loads(record)["provenance"]["commit"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return commit if isinstance(commit, str) else None


def _round_of(plain: dict[str, Any]) -> Round:
    (part,) = codec.without_versions(plain)["rounds"]
    return codec.decode(Round, part, where="round")


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
