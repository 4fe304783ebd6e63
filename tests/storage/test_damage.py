"""Damage to the file of a journal is seen: what is loaded or listed is never silently different."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchrigor.errors import StoreFailed
from benchrigor.model import Decision, Options, Round, RoundPlan, RunRecord, StopReason
from benchrigor.storage import Journal, database

HEADER = RunRecord(name="sort", options=Options(), metrics=(), seed=1, rounds=(), analyses=())
RESULT = replace(HEADER, decision=Decision(stop=True, reason=StopReason.SATISFIED))
PAGE = 16384


def a_round(index: int, size: int = 3) -> Round:
    values = np.random.default_rng(index).random(size)
    return Round(plan=RoundPlan(index=index), elapsed_ns=1, unit_readings={"time": values})


def fill(path: Path) -> list[str]:
    """Store two runs that are finished and one that is not, and return their ids."""
    with Journal(path) as journal:
        run_ids = [journal.begin(HEADER) for _ in range(3)]
        for run_id in run_ids:
            for index in range(4):
                journal.append(run_id, a_round(index, size=3000 if index == 2 else 3))
        for run_id in run_ids[:2]:
            journal.finish(run_id, RESULT)
    return run_ids


def change(path: Path, *statements: str) -> None:
    """Change a journal behind its back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table in ("run", "round", "result"):
            for verb in ("UPDATE", "DELETE"):
                connection.execute(f"DROP TRIGGER IF EXISTS {table}_{verb}")
        for statement in statements:
            connection.execute(statement)


def as_of_schema_1(path: Path) -> None:
    columns = [
        f"ALTER TABLE {table} DROP COLUMN {column}"
        for table in ("run", "round", "result")
        for column in ("content", "checksum")
    ]
    change(path, "DROP TABLE tally", *columns, "PRAGMA user_version = 1")


def shown(run_id: str, journal: Journal) -> str | None:
    """Return all that a journal tells of a run; None if it says that it cannot."""
    try:
        return json.dumps(journal.load(run_id).to_dict())
    except StoreFailed:
        return None


def listed(journal: Journal) -> dict[str, Any] | None:
    try:
        return {run["run_id"]: run for run in journal.runs()}
    except StoreFailed:
        return None


def damaged(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    match rng.randrange(3):
        case 0:
            bit = rng.randrange(8 * len(data))
            changed[bit // 8] ^= 1 << bit % 8
        case 1:
            start = rng.randrange(len(data) // PAGE) * PAGE
            changed[start : start + PAGE] = bytes(PAGE)
        case 2:
            start = rng.randrange(len(data) - 100)
            changed[start : start + 100] = rng.randbytes(100)
    return bytes(changed)


@pytest.mark.slow
def test_no_damage_changes_what_is_told_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    run_ids = fill(path)
    with Journal(path) as journal:
        whole, in_list = [shown(each, journal) for each in run_ids], listed(journal)
    data, rng, seen = path.read_bytes(), random.Random(5), 0  # noqa: S311
    assert in_list is not None
    for _ in range(90):
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        path.write_bytes(damaged(data, rng))
        with Journal(path) as journal:
            runs = listed(journal)
            for run_id, before in zip(run_ids, whole, strict=True):
                after = shown(run_id, journal)
                assert after in (None, before)
                seen += after is None
                if runs is not None:
                    are_lost = any("damage" in run for run in runs.values())
                    run = runs.get(run_id)
                    assert run == in_list[run_id] or are_lost
    assert seen > 20


def test_rows_whose_ids_are_zeros_are_not_left_out_of_the_list(tmp_path: Path) -> None:
    """The index of ids may be whole: it must not answer for the table."""
    path = tmp_path / "runs.sqlite"
    run_ids = fill(path)
    data, n_lists = path.read_bytes(), 0
    for found in re.finditer("|".join(run_ids).encode(), data):
        start = found.start() - 20  # the header of the row stands before it
        path.write_bytes(data[:start] + bytes(80) + data[start + 80 :])
        with Journal(path) as journal:
            runs = listed(journal)
        if runs is not None:
            n_lists += 1
            assert run_ids == [*runs][::-1] or any("damage" in run for run in runs.values())
    assert n_lists > 5


def test_results_do_not_change_places(tmp_path: Path) -> None:
    """Which one is the last follows from the rounds it is of, which have a checksum."""
    path = tmp_path / "runs.sqlite"
    run_id = fill(path)[0]
    with Journal(path) as journal:
        journal.append(run_id, a_round(4))
        journal.finish(run_id, RESULT)
        before = shown(run_id, journal)
    change(path, "UPDATE result SET sequence = -sequence")
    with Journal(path) as journal:
        assert shown(run_id, journal) == before
        assert listed(journal)[run_id]["finished"]


def test_an_index_that_leads_to_other_rows_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    first, second, _ = fill(path)
    change(path, "DROP INDEX result_of_run")
    other = f"CASE run_id WHEN '{first}' THEN '{second}' ELSE run_id END"
    change(path, f"CREATE INDEX result_of_run ON result ({other})")
    change(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = 'CREATE INDEX result_of_run ON result (run_id)' "
        "WHERE name = 'result_of_run'",
    )
    with Journal(path) as journal:
        with pytest.raises(StoreFailed, match="0 of its 1 results are there"):
            journal.load(first)
        assert journal.load(second).run_id == second


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE round SET record = replace(record, '1', '2')", "round 0 of run {} is damaged"),
        ("UPDATE round SET floats = zeroblob(24)", "round 0 of run {} is damaged: its checksum"),
        ("UPDATE round SET round_index = 'x'", "round 'x' of run {} is damaged: it holds str"),
        ("UPDATE round SET round_index = 9", "round 9 of run {} is damaged"),
        ("UPDATE result SET rounds = 3", "the result of run {} is damaged"),
        ("UPDATE run SET name = 'other'", "run {} is damaged: its checksum differs"),
        ("DELETE FROM round", "run {} is damaged: 3 of its 4 rounds are there"),
        ("DELETE FROM result", "run {} is damaged: 0 of its 1 results are there"),
        ("DELETE FROM run", "run {} is damaged: its entry in the list of runs is lost"),
        ("DELETE FROM tally", "run {} is damaged: the count of its rounds is lost"),
        ("UPDATE tally SET rounds = 3", "run {} is damaged: the count of its rounds is wrong"),
    ],
)
def test_what_is_damaged_is_named_and_other_runs_stay_readable(
    tmp_path: Path, statement: str, message: str
) -> None:
    path = tmp_path / "runs.sqlite"
    first, second, _ = fill(path)
    is_of_round = statement.startswith(("UPDATE round", "DELETE FROM round"))
    at = " AND round_index = 0" if is_of_round else ""
    change(path, f"{statement} WHERE run_id = '{first}'{at}")
    with Journal(path) as journal:
        with pytest.raises(StoreFailed, match=message.format(first) + r".*Other runs stay"):
            journal.load(first)
        assert len(journal.load(second).rounds) == 4
        in_list = listed(journal)
    assert in_list is not None
    assert "damage" not in in_list[second]
    # A list does not read the readings.
    is_of_content = statement.startswith("UPDATE round")
    assert ("damage" in in_list[first]) is not is_of_content
    assert in_list[first]["finished"] is is_of_content


def test_a_run_with_a_damaged_count_takes_no_further_round(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    *_, unfinished = fill(path)
    change(path, "UPDATE tally SET rounds = 3")
    with Journal(path) as journal, pytest.raises(StoreFailed, match="the count of its rounds is"):
        journal.append(unfinished, a_round(4))


def test_runs_from_before_checksums_are_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    run_ids = fill(path)
    with Journal(path) as journal:
        whole = [shown(each, journal) for each in run_ids]
        in_list = journal.runs()
    as_of_schema_1(path)
    with Journal(path) as journal:
        assert [shown(each, journal) for each in run_ids] == whole
        assert journal.runs() == in_list
        journal.append(run_ids[-1], a_round(4))
        assert len(journal.load(run_ids[-1]).rounds) == 5
    change(path, "UPDATE round SET floats = zeroblob(24) WHERE round_index = 4")
    with Journal(path) as journal, pytest.raises(StoreFailed, match="round 4 of run"):
        journal.load(run_ids[-1])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE round SET round_index = 'text' WHERE round_index = 1",
        "UPDATE round SET floats = 'text' WHERE round_index = 1",
        "UPDATE round SET floats = x'00' WHERE round_index = 1",
        "UPDATE round SET record = 7 WHERE round_index = 1",
        "UPDATE round SET record = CAST(x'ff' AS TEXT) WHERE round_index = 1",
        "UPDATE result SET rounds = 'text'",
        'UPDATE run SET record = \'{"schema": 1, "seed": 1e999}\'',
        "UPDATE run SET record = printf('%.*c', 9000, '[')",
        "UPDATE run SET record = printf('{\"schema\": %.*c}', 5000, '9')",
    ],
)
def test_what_no_journal_has_written_is_an_error_also_without_checksums(
    tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "runs.sqlite"
    first, *_ = fill(path)
    as_of_schema_1(path)
    change(path, statement)
    with Journal(path) as journal:
        assert len(journal.runs()) == 3
        with pytest.raises(StoreFailed, match=first):
            journal.load(first)


def test_the_schema_of_a_file_in_use_is_the_latest(tmp_path: Path) -> None:
    fill(tmp_path / "runs.sqlite")
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(database.MIGRATIONS),)
