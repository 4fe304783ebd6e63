"""The journal as a file: killed, damaged, full, of another age, shared between processes."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from tests.storage.made_journals import HEADER, a_round, other_process

from benchrigor.errors import StoreFailed
from benchrigor.model import Round, RoundPlan
from benchrigor.storage import Journal, database, default_path


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


@pytest.mark.parametrize("kind", ["functions", "interpreters"])
def test_a_kill_between_the_rounds_of_a_turn_leaves_no_half_of_a_pair(
    store: Journal, kind: str
) -> None:
    measured = f"""
import os
import signal
import benchrigor as br

appended, append = [], Journal.append

def kept_or_killed(journal, run_id, finished):
    if len(appended) == 5:  # the second of its turn
        os.kill(os.getpid(), signal.SIGKILL)
    append(journal, run_id, finished)
    appended.append(run_id)

Journal.append = kept_or_killed
sides = {{
    "functions": [lambda: sum(range(1000))] * 2,
    "interpreters": [br.InterpreterWorkload("random:random") for _ in "ab"],
}}
br.measure_pair(*sides[{kind!r}], store=store, margin=0)
"""
    with other_process(measured, store.path, "") as process:
        assert process.wait() == -signal.SIGKILL
    kept = [store.load(each["run_id"]).rounds for each in store.runs()]
    assert [len(rounds) for rounds in kept] == [2, 2]


def test_two_processes_write_to_one_new_store_at_once(path: Path) -> None:
    script = """
print("ready", flush=True)
input()
run_id = store.begin(HEADER)
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


def test_a_journal_that_is_dropped_releases_its_file(path: Path) -> None:
    dropped = Journal(path)
    dropped.begin(HEADER)
    assert len(list(path.parent.iterdir())) > 1  # the write-ahead log beside the file
    del dropped
    gc.collect()
    assert list(path.parent.iterdir()) == [path]


def test_a_million_readings_come_back_bit_by_bit_whatever_their_names(store: Journal) -> None:
    values, odd = np.random.default_rng(1).lognormal(size=1_000_000), np.array([2.5, -0.0])
    given = {"float64-le": odd, "time": values}
    plan, readings = RoundPlan(index=0), {"float64-le": 3.0}
    run_id = store.begin(HEADER)
    store.append(run_id, Round(plan=plan, elapsed_ns=1, unit_readings=given, readings=readings))
    (back,) = store.load(run_id).rounds
    for name, before in given.items():
        assert back.unit_readings[name].tobytes() == before.tobytes()
        assert not back.unit_readings[name].flags.writeable
    assert back.readings == readings
    assert store.path.parent.stat().st_size < 20_000_000


def test_an_ambiguous_run_id_names_the_candidates(
    store: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = iter(["ab01", "ab02", "ab02", "cd03"])  # the third is taken and drawn again
    drawn = type("Drawn", (), {"hex": property(lambda _: next(ids))})
    monkeypatch.setattr("uuid.uuid4", drawn)
    assert [store.begin(HEADER) for _ in range(3)] == ["ab01", "ab02", "cd03"]
    with pytest.raises(StoreFailed, match="ab01, ab02"):
        store.load("ab")
    assert store.load("c").run_id == "cd03"


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
            with pytest.raises(sqlite3.IntegrityError, match="append"):
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
    with pytest.raises(StoreFailed, match="full"):
        store.append(run_id, a_round(1, size=100_000))
    with pytest.raises(StoreFailed, match="full") as caught:
        store.begin(replace(HEADER, name="x " * 20_000))
    assert "rounds" not in str(caught.value)  # there is no run that could have any
    store.close()
    assert len(store.load(run_id).rounds) == 1
    store.append(run_id, a_round(1))
    assert len(store.load(run_id).rounds) == 2


def test_a_file_that_may_only_be_read_takes_no_round(
    store: Journal, connections: list[sqlite3.Connection]
) -> None:
    run_id = store.begin(HEADER)
    (connection,) = connections
    connection.execute("PRAGMA query_only = 1")  # file modes do not bind root
    with pytest.raises(StoreFailed, match="readonly"):
        store.append(run_id, a_round(0))
    assert store.load(run_id).rounds == ()


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    text, theirs = tmp_path / "text.sqlite", tmp_path / "theirs.sqlite"
    text.write_text("time\n1.0\n" * 1000)
    with closing(sqlite3.connect(theirs)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    for path in (text, theirs):
        before = path.read_bytes()
        with pytest.raises(StoreFailed):
            Journal(path).begin(HEADER)
        assert path.read_bytes() == before


def test_a_store_that_stays_locked_is_named(store: Journal, other: sqlite3.Connection) -> None:
    other.execute("BEGIN IMMEDIATE")
    with Journal(store.path, timeout_s=0.01) as locked:
        assert len(locked.runs()) == 1  # reading goes on
        with pytest.raises(StoreFailed, match="locked"):
            locked.begin(HEADER)


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


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    store: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = store.begin(HEADER)
    store.close()
    script = ("ALTER TABLE run ADD COLUMN label TEXT", "CREATE nonsense")
    with monkeypatch.context() as patched:
        patched.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, script))
        for use in (Journal(store.path).runs, partial(Journal(store.path).begin, HEADER)):
            with pytest.raises(StoreFailed):
                use()
    with closing(sqlite3.connect(store.path)) as connection:
        (tables,) = connection.execute("SELECT group_concat(sql) FROM sqlite_master").fetchone()
    assert "label" not in tables
    assert store.load(run_id).name == "sort"
    assert len(store.runs()) == 1


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


def test_without_a_home_folder_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BENCHRIGOR_STORE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError))
    with pytest.raises(StoreFailed) as failed:
        default_path()
    assert "XDG_DATA_HOME" in str(failed.value)


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


@on_linux
def test_a_lock_of_code_in_this_process_is_not_waited_for(store: Journal) -> None:
    """Such code does not run while the journal waits."""
    store.begin(HEADER)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as measured:
        measured.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreFailed, match="locked"):
            store.begin(HEADER)
        measured.execute("COMMIT")
    store.begin(HEADER)


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


def test_a_lock_of_another_process_is_waited_for(store: Journal) -> None:
    run_id = store.begin(HEADER)
    script = """
import time
other = sqlite3.connect(store.path, isolation_level=None)
other.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(2)
"""
    with other_process(script, store.path, run_id) as process:
        assert process.stdout
        assert process.stdout.readline() == "locked\n"
        store.append(run_id, a_round(0))
    assert len(store.load(run_id).rounds) == 1


def test_closed_descriptors_are_told_at_once(store: Journal) -> None:
    run_id = store.begin(HEADER)
    script = """
import time
store.append(run_id, a_round(0))
os.closerange(3, 4096)
began_s = time.monotonic()
try:
    store.append(run_id, a_round(1))
except StoreFailed as error:
    print("descriptors" in str(error), time.monotonic() - began_s < 5.0)
"""
    assert other_process(script, store.path, run_id).communicate()[0] == "True True\n"
    assert len(store.load(run_id).rounds) == 1
