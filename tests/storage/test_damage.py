"""Damage to the file of a journal is seen: what is loaded or listed is never silently different."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.storage.made_journals import DAMAGES, RESULT, a_round, as_of_schema_1, change, fill

from benchrigor.errors import StoreFailed
from benchrigor.storage import Journal

PAGE = 16384


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
        with pytest.raises(StoreFailed, match="results"):
            journal.load(first)
        assert journal.load(second).run_id == second


@pytest.mark.parametrize(("statement", "is_listed"), DAMAGES.items())
def test_what_is_damaged_is_refused_and_other_runs_stay_readable(
    tmp_path: Path, statement: str, is_listed: bool
) -> None:
    path = tmp_path / "runs.sqlite"
    first, second, _ = fill(path)
    change(path, statement.format(first))
    with Journal(path) as journal:
        with pytest.raises(StoreFailed, match=first):
            journal.load(first)
        assert len(journal.load(second).rounds) == 4
        in_list = listed(journal)
    assert in_list is not None
    assert "damage" not in in_list[second]
    # A list does not read the readings.
    assert ("damage" in in_list[first]) is is_listed
    assert in_list[first]["finished"] is not is_listed


def test_a_run_with_a_damaged_count_takes_no_further_round(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    *_, unfinished = fill(path)
    change(path, "UPDATE tally SET rounds = 3")
    with Journal(path) as journal, pytest.raises(StoreFailed):
        journal.append(unfinished, a_round(4))


def test_runs_from_before_checksums_are_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    run_ids = fill(path)
    with Journal(path) as journal:
        whole = [shown(each, journal) for each in run_ids]
        in_list = journal.runs()
    as_of_schema_1(path)
    before = path.read_bytes()
    with Journal(path) as journal:
        assert [shown(each, journal) for each in run_ids] == whole
        assert journal.runs() == in_list
        assert path.read_bytes() == before  # who only reads changes nothing
        journal.append(run_ids[-1], a_round(4))
        assert len(journal.load(run_ids[-1]).rounds) == 5
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    change(path, "UPDATE round SET floats = zeroblob(24) WHERE round_index = 4")
    with Journal(path) as journal, pytest.raises(StoreFailed, match="round 4"):
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
