"""Writes the periods that count down, as `benchrigor rate` reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchrigor.queues.recordings import RecordingWriter
from benchrigor.queues.stage_reader import Period

__all__ = ["PeriodLog", "logged"]

_COLUMNS = ("end", "period_s", "items", "blocked_s", "servers", "cpu_s", "delay_s")


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
    ...     log.add("hash", Period(start_s=0.0, period_s=0.05, items=12, blocked_s=0.01))
    ...     log.close()
    ...     print(file.readlines()[-1].strip())
    hash,0.05,12,0.01,1,nan,nan
    """

    def __init__(self, path: str | Path, *, period_s: float | None) -> None:
        facts = {"period_s": period_s}
        self._rows = RecordingWriter.create(path, columns=_COLUMNS, counters="delta", facts=facts)
        self._servers: dict[str, int] = {}

    def add(self, stage: str, period: Period) -> None:
        """Add a period of a stage."""
        usual = self._servers.setdefault(stage, period.servers)
        name = stage if period.servers == usual else f"{stage} ({period.servers} servers)"
        self._rows.add(
            name,
            period.period_s,
            period.items,
            period.blocked_s,
            period.servers,
            period.cpu_s,
            period.delay_s,
        )

    def close(self) -> None:
        """Close the file."""
        self._rows.close()


@contextmanager
def logged(
    path: str | Path | None, *, period_s: float | None
) -> Iterator[Callable[[str, Period], None] | None]:
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
