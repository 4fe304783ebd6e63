"""What people read where a journal cannot be read or written, and of settings of projects."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.storage.made_journals import DAMAGES, HEADER, a_round, change, fill
from tests.texts.rendering import run, tried

from benchrigor.model import Round, RoundPlan
from benchrigor.storage import Journal

PATH = Path("runs.sqlite")


def damaged() -> Iterator[object]:
    for statement in DAMAGES:
        first, *_ = fill(PATH)
        change(PATH, statement.format(first))
        with Journal(PATH) as journal:
            yield from (str(text).replace(first, "RUN") for text in tried(journal.load, (first,)))
        PATH.unlink()


def changed(*statements: str) -> object:
    """Return the errors of a journal after changes by others."""
    fill(PATH)
    change(PATH, *statements)
    with Journal(PATH, timeout_s=0.01) as journal:
        return journal.load("bad")


def refused() -> Iterator[object]:
    run_id = fill(PATH)[0]
    with Journal(PATH, timeout_s=0.01) as journal:
        yield from tried(journal.load, (3,), ("nonsense",))
        yield from tried(journal.runs, (b"x",))
        yield from tried(journal.append, (run_id, Round(plan=RoundPlan(index=2**70), elapsed_ns=1)))
        with closing(sqlite3.connect(PATH, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield from tried(journal.append, (run_id, a_round(4)))


def open_misplaced() -> Iterator[object]:
    """Where a journal is missing and impossible."""
    Path("text.sqlite").write_text("time\n1.0\n" * 1000, encoding="utf-8")
    with closing(sqlite3.connect("theirs.sqlite")) as other:
        other.execute("CREATE TABLE theirs (x)")
    for name in ("text.sqlite", "theirs.sqlite", "text.sqlite/below", "."):
        yield from tried(Journal(Path(name)).begin, (HEADER,))


def load_malformed() -> None:
    run_id = fill(PATH)[0]
    content = PATH.read_bytes()
    PATH.write_bytes(content[:16384] + b"\xff" * (len(content) - 16384))
    Journal(PATH).load(run_id)


def projects(*texts: str) -> Iterator[object]:
    for text in texts:
        yield run("run", "true", files={"pyproject.toml": text})


CAUSES = {
    "runs that are damaged": damaged,
    "a file that is damaged": load_malformed,
    "a row that is not a record": lambda: changed(
        "INSERT INTO run (run_id, name, started_at, record, floats) "
        "VALUES ('bad', 'name', 'when', '{', x'')"
    ),
    "a newer schema": lambda: changed("PRAGMA user_version = 99"),
    "refusals of a journal": refused,
    "places without a journal": open_misplaced,
    "settings of a project": lambda: projects(
        '[tool.benchrigor.metrics]\ntime = "ms"\n',
        "[tool.benchrigor.metrics]\ntime = 3\n",
        "[tool]\nbenchrigor = 5\n",
    ),
}
