"""How long it takes to store 50 rows durably in an SQLite file, once it has warmed up.

Each step of the generator writes 50 rows to a table of 5000 slots and commits. For the first 100
steps the table still grows; after that every step replaces old rows. Each round starts with a
fresh file (``rounds="restarted"``): benchrigor finds in every round where the warm-up ends, leaves
it out, and runs rounds until the interval is within 5 % of the value.

    python examples/sqlite_insert.py
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import benchrigor as br
from benchrigor.report import explain, render

ROWS, SLOTS = 50, 5000


def inserts() -> Iterator[None]:
    """Write and commit 50 rows per step."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "readings.sqlite")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(
            "CREATE TABLE readings (slot INTEGER PRIMARY KEY, sensor TEXT, value REAL, note TEXT)"
        )
        connection.execute("CREATE INDEX by_sensor ON readings (sensor)")
        try:
            for first in count(0, ROWS):
                rows = [
                    ((first + i) % SLOTS, f"sensor-{(first + i) * 7919 % 97}", 21.5, "x" * 100)
                    for i in range(ROWS)
                ]
                connection.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?, ?, ?)", rows)
                connection.commit()
                yield
        finally:
            connection.close()


def main(budget_s: float = 20.0) -> br.RunRecord:
    """Measure the inserts and return the record."""
    options = br.Options(target=0.05, budget_s=budget_s, rounds="restarted")
    return br.Session(options, name="sqlite, 50 rows").run(inserts)


if __name__ == "__main__":
    record = main(*map(float, sys.argv[1:]))
    print(record)
    print()
    print(render(record))
    print()
    print(explain(record))
