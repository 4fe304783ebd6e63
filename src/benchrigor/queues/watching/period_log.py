"""Writes the periods that count to a recording, as `benchrigor rate` reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchrigor.queues.periods import Periods
from benchrigor.queues.recording.recordings import RecordingWriter

_COLUMNS = ("end", "servers", "period_s", "items", "blocked_s", "cpu_s", "delay_s")

Record = Callable[[str, Periods], None]
"""Takes the name of a stage, and periods of it that count."""


@contextmanager
def period_log(path: Path | None, *, period_s: float | None) -> Iterator[Record | None]:
    """Return what writes periods to a file, which is closed in the end; None without a path.

    A stage with another number of servers is another one: "hash", "hash (3 servers)".
    """
    if path is None:
        yield None
        return
    facts, usual = {"period_s": period_s}, dict[str, int]()
    with RecordingWriter.create(path, columns=_COLUMNS, counters="delta", facts=facts) as rows:

        def record(stage: str, periods: Periods) -> None:
            servers = periods.servers
            is_usual = servers == usual.setdefault(stage, servers)
            end = stage if is_usual else f"{stage} ({servers} servers)"
            columns = [getattr(periods, name).tolist() for name in _COLUMNS[2:]]
            for wall_s, items, *times in zip(*columns, strict=True):
                rows.add(end, servers, wall_s, int(items), *times)

        yield record
