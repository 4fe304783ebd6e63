"""Journals with known runs, and changes behind their back."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchrigor.model import Decision, Options, Round, RoundPlan, RunRecord, StopReason
from benchrigor.storage import Journal

HEADER = RunRecord(
    name="sort", options=Options(), metrics=(), seed=1, rounds=(), analyses=(), subject={"a": 1}
)
RESULT = replace(HEADER, decision=Decision(stop=True, reason=StopReason.SATISFIED))


# What other processes run first.
PRELUDE = """
import os, sqlite3, sys
from benchrigor.errors import StoreFailed
from benchrigor.storage import Journal
from tests.storage.made_journals import HEADER, a_round
store, run_id = Journal(sys.argv[1]), sys.argv[2]
"""


def other_process(
    script: str, *arguments: object, through: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """Run a script in another process, which a command may start."""
    command = [*through, sys.executable, "-c", PRELUDE + script, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, cwd=Path(__file__).parents[2]
    )


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


DAMAGES = {  # by statement, whether a list of runs sees it too
    "UPDATE round SET record = replace(record, '1', '2') WHERE run_id = '{}'": False,
    "UPDATE round SET floats = zeroblob(24) WHERE run_id = '{}' AND round_index = 0": False,
    "UPDATE round SET round_index = 'x' WHERE run_id = '{}' AND round_index = 0": False,
    "UPDATE round SET round_index = 9 WHERE run_id = '{}' AND round_index = 0": False,
    "UPDATE result SET rounds = 3 WHERE run_id = '{}'": True,
    "UPDATE run SET name = 'other' WHERE run_id = '{}'": True,
    "DELETE FROM round WHERE run_id = '{}' AND round_index = 0": True,
    "DELETE FROM result WHERE run_id = '{}'": True,
    "DELETE FROM run WHERE run_id = '{}'": True,
    "DELETE FROM tally WHERE run_id = '{}'": True,
    "UPDATE tally SET rounds = 3 WHERE run_id = '{}'": True,
}
