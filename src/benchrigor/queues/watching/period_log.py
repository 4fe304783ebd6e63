"""Writes the periods that count down, as `benchrigor rate` reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchrigor.queues.recording.recordings import RecordingWriter
from benchrigor.queues.watching.period_block import PeriodBlock

__all__ = ["PeriodLog", "logged"]

_COLUMNS = ("end", "servers", "period_s", "items", "blocked_s", "cpu_s", "delay_s")


class PeriodLog:
    """A recording of what stages did, period by period.

    A stage that others serve is another one, and has a name of its own: "hash", "hash (3 servers)".

    Parameters
    ----------
    path
        Of the file; one that is there is written over.
    period_s
        Sampling period wanted, in seconds; None where that is not known yet.

    Raises
    ------
    OSError
        When the file cannot be written, at any time.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("r") as file:
    ...     log = PeriodLog(file.name, period_s=0.05)
    ...     log.add("hash", PeriodBlock.of(period_s=0.05, items=12, blocked_s=0.01))
    ...     log.close()
    ...     print(file.readlines()[-1].strip())
    hash,1,0.05,12,0.01,nan,nan
    """

    def __init__(self, path: str | Path, *, period_s: float | None) -> None:
        facts = {"period_s": period_s}
        self._rows = RecordingWriter.create(path, columns=_COLUMNS, counters="delta", facts=facts)
        self._servers: dict[str, int] = {}

    def add(self, stage: str, block: PeriodBlock) -> None:
        """Add periods of a stage."""
        usual = self._servers.setdefault(stage, block.servers)
        name = stage if block.servers == usual else f"{stage} ({block.servers} servers)"
        columns = (block.period_s, block.items, block.blocked_s, block.cpu_s, block.delay_s)
        for period_s, items, *times in zip(*(each.tolist() for each in columns), strict=True):
            self._rows.add(name, block.servers, period_s, int(items), *times)

    def close(self) -> None:
        """Close the file."""
        self._rows.close()


@contextmanager
def logged(
    path: str | Path | None, *, period_s: float | None
) -> Iterator[Callable[[str, PeriodBlock], None] | None]:
    """Return what takes the periods for a file, which is closed in the end; None without a path.

    Raises
    ------
    OSError
        When the file cannot be written.
    """
    if path is None:
        yield None
        return
    log = PeriodLog(path, period_s=period_s)
    try:
        yield log.add
    finally:
        log.close()
