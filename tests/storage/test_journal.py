"""The journal as a file: killed, damaged, full, of another age, shared between processes."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchrigor.errors import InvalidInput, StoreFailed
from benchrigor.model import Options, Round, RoundPlan, RunRecord
from benchrigor.storage import Journal, database, default_path

HEADER = RunRecord(
    name="sort", options=Options(), metrics=(), seed=1, rounds=(), analyses=(), subject={"a": 1}
)

# What the other processes of these tests run first.
PRELUDE = """
import os, sqlite3, sys
from benchrigor.errors import StoreFailed
from benchrigor.model import Round, RoundPlan
from benchrigor.storage import Journal
def a_round(index):
    return Round(plan=RoundPlan(index=index), elapsed_ns=1, unit_readings={"time": [index] * 1000})
store, run_id = Journal(sys.argv[1]), sys.argv[2]
"""


def a_round(index: int, size: int = 3) -> Round:
    plan = RoundPlan(index=index)
    return Round(plan=plan, elapsed_ns=1, unit_readings={"time": np.full(size, float(index))})


def other_process(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRELUDE + script, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "runs.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Journal]:
    with Journal(path) as opened:
        yield opened


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Return a list to which each connection is added that is opened from now on."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connect_and_list(*words: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*words, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", connect_and_list)
    return opened


@pytest.fixture
def other(store: Journal) -> Iterator[sqlite3.Connection]:
    """Return another program's connection to the file of a journal."""
    store.begin(HEADER)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        yield connection


@pytest.mark.slow
def test_a_kill_in_the_midst_of_appending_loses_no_finished_round(store: Journal) -> None:
    run_id = store.begin(HEADER)
    endless = """
for index in range(10**9):
    store.append(run_id, a_round(index))
    print(index, flush=True)
"""
    with other_process(endless, store.path, run_id) as process:
        assert process.stdout
        finished = [int(process.stdout.readline()) for _ in range(50)]
        process.send_signal(signal.SIGKILL)
        finished += map(int, process.stdout.read().split())
    kept = [each.plan.index for each in store.load(run_id).rounds]
    assert kept == list(range(len(kept)))
    # The round under way may have been committed without its number having been printed.
    assert len(kept) - len(finished) in {0, 1}
    store.append(run_id, a_round(len(kept)))
    assert len(store.load(run_id).rounds) == len(kept) + 1


@pytest.mark.slow
def test_two_processes_write_to_one_new_store_at_once(path: Path) -> None:
    script = """
from benchrigor.model import Options, RunRecord
header = RunRecord(name="x", options=Options(), metrics=(), seed=1, rounds=(), analyses=())
print("ready", flush=True)
input()
run_id = store.begin(header)
for index in range(40):
    store.append(run_id, a_round(index))
print(run_id)
"""
    writers = [other_process(script, path, "") for _ in range(2)]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    run_ids = [writer.communicate()[0].strip() for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    with Journal(path) as store:
        for run_id in run_ids:
            assert [each.plan.index for each in store.load(run_id).rounds] == list(range(40))


@pytest.mark.slow
def test_a_round_told_by_two_processes_is_stored_once(store: Journal) -> None:
    run_id = store.begin(HEADER)
    script = """
stored = 0
for index in range(40):
    try:
        store.append(run_id, a_round(index))
        stored += 1
    except StoreFailed:
        pass
print(stored)
"""
    writers = [other_process(script, store.path, run_id) for _ in range(2)]
    stored = [int(writer.communicate()[0]) for writer in writers]
    assert sum(stored) == 40
    assert [each.plan.index for each in store.load(run_id).rounds] == list(range(40))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_child_does_not_use_its_parents_connection(store: Journal) -> None:
    run_id = store.begin(HEADER)
    script = """
store.append(run_id, a_round(0))
child = os.fork()
if not child:
    opened, connect = [], sqlite3.connect
    sqlite3.connect = lambda *words, **options: opened.append(1) or connect(*words, **options)
    store.append(run_id, a_round(1))
    store.close()
    os._exit(0 if len(opened) == 1 else 1)
_, status = os.waitpid(child, 0)
store.append(run_id, a_round(2))
print(status)
"""
    process = other_process(script, store.path, run_id)
    assert process.communicate()[0].strip() == "0"
    assert [each.plan.index for each in store.load(run_id).rounds] == [0, 1, 2]


def test_threads_share_a_journal(store: Journal) -> None:
    run_id = store.begin(HEADER)

    def append(start: int) -> None:
        for index in range(start, start + 10):
            store.append(run_id, a_round(index))

    threads = [threading.Thread(target=append, args=(10 * n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.plan.index for each in store.load(run_id).rounds] == list(range(40))


def test_a_closed_journal_opens_again_when_used(store: Journal) -> None:
    run_id = store.begin(HEADER)
    store.close()
    assert store.load(run_id).name == "sort"


def test_a_journal_that_is_dropped_releases_its_file(path: Path) -> None:
    dropped = Journal(path)
    dropped.begin(HEADER)
    assert len(list(path.parent.iterdir())) > 1  # the write-ahead log beside the file
    del dropped
    gc.collect()
    assert list(path.parent.iterdir()) == [path]


def test_a_million_readings_come_back_bit_by_bit(store: Journal) -> None:
    readings = np.random.default_rng(1).lognormal(size=1_000_000)
    run_id = store.begin(HEADER)
    store.append(
        run_id, Round(plan=RoundPlan(index=0), elapsed_ns=1, unit_readings={"time": readings})
    )
    back = store.load(run_id).rounds[0].unit_readings["time"]
    assert back.tobytes() == readings.tobytes()
    assert not back.flags.writeable
    assert store.path.parent.stat().st_size < 20_000_000


def test_the_first_characters_of_a_run_id_are_enough(store: Journal) -> None:
    run_id = store.begin(HEADER)
    store.append(run_id[:5], a_round(0))
    store.finish(run_id[:5], HEADER)
    assert len(store.load(run_id[:5]).rounds) == 1
    assert store.load(run_id[:5]).run_id == run_id
    with pytest.raises(StoreFailed, match="expected the id of a stored run"):
        store.load(run_id + "0")


def test_an_ambiguous_run_id_names_the_candidates(
    store: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = iter(["ab01", "ab02", "ab02", "cd03"])  # the third is taken and drawn again
    drawn = type("Drawn", (), {"hex": property(lambda _: next(ids))})
    monkeypatch.setattr("uuid.uuid4", drawn)
    assert [store.begin(HEADER) for _ in range(3)] == ["ab01", "ab02", "cd03"]
    with pytest.raises(StoreFailed, match=r"'ab' is ambiguous in .*: ab01, ab02; give more"):
        store.load("ab")
    assert store.load("c").run_id == "cd03"


def test_what_is_no_text_or_no_number_of_sqlite_is_refused(store: Journal) -> None:
    run_id = store.begin(HEADER)
    for no_text in (3, None, b"x", datetime(2024, 1, 1, tzinfo=UTC)):
        with pytest.raises(StoreFailed, match="expected text"):
            store.load(no_text)  # type: ignore[arg-type]  # bad on purpose
        with pytest.raises(InvalidInput, match="expected text"):
            store.runs(no_text)  # type: ignore[arg-type]  # bad on purpose
    with pytest.raises(StoreFailed, match="too large"):
        store.append(run_id, Round(plan=RoundPlan(index=2**70), elapsed_ns=1))


@pytest.mark.slow
def test_a_journal_that_is_opened_again_keeps_the_locks_of_others(store: Journal) -> None:
    run_id = store.begin(HEADER)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        Journal(store.path).load(run_id)  # in the same process
        script = """
store = Journal(sys.argv[1], timeout_s=0.01)
try:
    store.append(run_id, a_round(0))
except StoreFailed as error:
    print("locked" in str(error))
"""
        assert other_process(script, store.path, run_id).communicate()[0] == "True\n"


def test_the_file_itself_refuses_changes(store: Journal) -> None:
    run_id = store.begin(HEADER)
    store.append(run_id, a_round(0))
    with sqlite3.connect(store.path) as other:
        for statement in ("DELETE FROM round", "UPDATE run SET name = 'x'"):
            with pytest.raises(sqlite3.IntegrityError, match="append only"):
                other.execute(statement)
    other.close()


def test_a_full_disk_keeps_the_finished_rounds(
    store: Journal, connections: list[sqlite3.Connection]
) -> None:
    run_id = store.begin(HEADER)
    store.append(run_id, a_round(0))
    (connection,) = connections
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFailed, match=r"runs\.sqlite: .*full.*: free some disk space"):
        store.append(run_id, a_round(1, size=100_000))
    with pytest.raises(StoreFailed, match="full") as caught:
        store.begin(replace(HEADER, name="x " * 20_000))
    assert "rounds" not in str(caught.value)  # there is no run that could have any
    store.close()
    assert len(store.load(run_id).rounds) == 1
    store.append(run_id, a_round(1))
    assert len(store.load(run_id).rounds) == 2


@pytest.mark.parametrize("place", ["below a file", "a folder"])
def test_a_place_that_takes_no_file_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "runs.sqlite" if place == "below a file" else tmp_path
    with pytest.raises(StoreFailed, match="choose another path") as caught:
        Journal(path).begin(HEADER)
    assert str(path) in str(caught.value)


def test_a_file_that_may_only_be_read_is_named(
    store: Journal, connections: list[sqlite3.Connection]
) -> None:
    run_id = store.begin(HEADER)
    (connection,) = connections
    connection.execute("PRAGMA query_only = 1")  # file modes do not bind root
    with pytest.raises(StoreFailed, match="readonly database: make the file and its folder writ"):
        store.append(run_id, a_round(0))
    assert store.load(run_id).rounds == ()


def test_a_file_of_another_kind_is_named(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("time\n1.0\n" * 1000)
    with pytest.raises(StoreFailed, match=r"runs\.sqlite: file is not a database: expected a jou"):
        Journal(path).runs()
    assert path.read_text() == "time\n1.0\n" * 1000


def test_a_damaged_journal_is_named(store: Journal) -> None:
    run_id = store.begin(HEADER)
    store.append(run_id, a_round(0, size=100_000))
    store.close()
    content = bytearray(store.path.read_bytes())
    content[16384:] = os.urandom(len(content) - 16384)
    store.path.write_bytes(content)
    with pytest.raises(StoreFailed, match=r"runs\.sqlite: .*malformed: put the damaged file aside"):
        store.load(run_id)


def test_a_row_that_is_no_record_is_named(store: Journal, other: sqlite3.Connection) -> None:
    other.execute(
        "INSERT INTO run (run_id, name, started_at, record, floats) "
        "VALUES ('bad', 'name', 'when', '{', x'')"
    )
    with pytest.raises(StoreFailed, match=r"run bad is damaged: JSONDecodeError: Expecting prop"):
        store.load("bad")


def test_another_programs_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreFailed, match="another program's database"):
        Journal(path).begin(HEADER)
    assert path.read_bytes() == before


def test_a_store_that_stays_locked_is_named(store: Journal, other: sqlite3.Connection) -> None:
    other.execute("BEGIN IMMEDIATE")
    with Journal(store.path, timeout_s=0.01) as locked:
        assert len(locked.runs()) == 1  # reading goes on
        with pytest.raises(StoreFailed, match="locked: another process kept it busy"):
            locked.begin(HEADER)


@pytest.mark.slow
def test_a_store_that_stays_locked_is_waited_for_for_a_few_seconds(
    store: Journal, other: sqlite3.Connection
) -> None:
    run_id = store.begin(HEADER)
    other.execute("BEGIN IMMEDIATE")
    script = """
import time
before = time.monotonic()
for _ in range(5):  # sessions that share a store do not wait one after the other
    try:
        store.append(run_id, a_round(0))
    except StoreFailed:
        print(time.monotonic() - before)
"""
    told, _ = other_process(script, store.path, run_id).communicate()
    first_s, *_, last_s = map(float, told.split())
    assert 3.0 < first_s <= last_s < 12.0


def test_a_newer_schema_is_refused_by_its_number(store: Journal, other: sqlite3.Connection) -> None:
    other.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreFailed, match=r"has schema 99, this version .* knows up to 2: install"):
        Journal(store.path).runs()


def test_an_older_schema_is_lifted_with_its_runs(
    store: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = store.begin(HEADER)
    store.close()
    script = ("ALTER TABLE run ADD COLUMN label TEXT", "CREATE INDEX by_label ON run (label)")
    monkeypatch.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, script))
    with Journal(store.path) as lifted:
        before = store.path.read_bytes()
        assert lifted.load(run_id).name == "sort"
        assert store.path.read_bytes() == before  # who only reads changes nothing
        lifted.begin(HEADER)
        assert lifted.load(run_id).name == "sort"
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        assert connection.execute("SELECT label FROM run").fetchall() == [(None,)] * 2


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    store: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = store.begin(HEADER)
    store.close()
    script = ("ALTER TABLE run ADD COLUMN label TEXT", "CREATE nonsense")
    with monkeypatch.context() as patched:
        patched.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, script))
        with pytest.raises(StoreFailed, match="syntax error"):
            Journal(store.path).runs()
    assert store.load(run_id).name == "sort"


def test_the_file_is_in_wal_mode(other: sqlite3.Connection) -> None:
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"BENCHRIGOR_STORE": "here/x.db", "XDG_DATA_HOME": "/data"}, "here/x.db"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/benchrigor/runs.sqlite"),
        ("linux", {"XDG_DATA_HOME": "data"}, "/home/me/.local/share/benchrigor/runs.sqlite"),
        ("linux", {}, "/home/me/.local/share/benchrigor/runs.sqlite"),
        ("darwin", {}, "/home/me/Library/Application Support/benchrigor/runs.sqlite"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/benchrigor/runs.sqlite"),
    ],
)
def test_the_default_file_lies_in_the_users_data_folder(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    for name in ("BENCHRIGOR_STORE", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert default_path() == Path(expected)


@pytest.mark.parametrize("is_there", [False, True])
def test_reading_makes_no_store(tmp_path: Path, is_there: bool) -> None:
    path = tmp_path / "folder" / "empty.sqlite"
    if is_there:
        path.parent.mkdir()
        path.touch()
    with Journal(path) as journal:
        assert journal.runs() == []
        assert path.exists() is is_there
        assert not is_there or path.stat().st_size == 0
        run_id = journal.begin(HEADER)
        assert journal.load(run_id).name == "sort"


on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc/locks")


@pytest.mark.slow
@on_linux
def test_a_lock_of_code_in_this_process_is_not_waited_for(store: Journal) -> None:
    """Such code does not run while the journal waits."""
    store.begin(HEADER)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as measured:
        measured.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreFailed, match="is locked by code of this process"):
            store.begin(HEADER)
        measured.execute("COMMIT")
    store.begin(HEADER)


@pytest.mark.slow
def test_a_lock_of_another_journal_in_this_process_is_waited_for(store: Journal) -> None:
    store.begin(HEADER)
    writer = database.open_to_write(store.path, 30.0)
    writer.begin("IMMEDIATE")
    ending = threading.Timer(2.0, writer.rollback)
    ending.start()
    began = time.monotonic()
    run_id = store.begin(HEADER)
    assert time.monotonic() - began > 1.0  # it was locked
    ending.join()
    writer.close()
    assert store.load(run_id).name == "sort"


@pytest.mark.slow
def test_a_lock_of_another_process_is_waited_for(store: Journal) -> None:
    store.begin(HEADER)
    code = (
        "import sqlite3, sys, time\nother = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "other.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); time.sleep(2)"
    )
    argv = [sys.executable, "-c", code, str(store.path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        run_id = store.begin(HEADER)
    assert store.load(run_id).name == "sort"


@pytest.mark.slow
def test_closed_descriptors_are_told_at_once(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nfrom benchrigor.model import Options, RunRecord\n"
        "from benchrigor.storage import Journal\njournal = Journal(sys.argv[1])\n"
        "header = RunRecord(name='f', options=Options(), metrics=(), seed=1, rounds=(),"
        " analyses=())\njournal.begin(header)\nos.closerange(3, 4096)\nbegan = time.monotonic()\n"
        "try: journal.begin(header)\nfinally: print(time.monotonic() - began)"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "runs.sqlite")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "its descriptors were closed by code of this process" in done.stderr
    assert float(done.stdout) < 5.0
    assert len(Journal(tmp_path / "runs.sqlite").runs()) == 1
