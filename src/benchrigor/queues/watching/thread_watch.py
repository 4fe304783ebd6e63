"""Watches from a thread of the program itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchrigor.queues.watching.monitor_report import MonitorReport
from benchrigor.queues.watching.period_log import logged
from benchrigor.queues.watching.sampling import Sampler, Watching, keep_sampling
from benchrigor.queues.watching.stage import Stage

__all__ = ["ThreadWatch"]

_PATIENCE_S = 5.0


class ThreadWatch:
    """Samples in a thread, which ends with the program.

    Its lock keeps reports and samples apart; those who count know nothing of it.

    Parameters
    ----------
    stages, watching
        What is watched, and how.
    record
        Path of the recording; None for none.

    Attributes
    ----------
    failure
        Why it has ended although nobody told it to.
    """

    def __init__(self, stages: Sequence[Stage], watching: Watching, record: Path | None) -> None:
        self._watching, self._record = watching, record
        self._told, self._lock = threading.Event(), threading.Lock()
        self._sampler = Sampler(stages, watching)
        self._thread = threading.Thread(target=self._run, name="benchrigor-monitor", daemon=True)
        self._cost_s = 0.0
        self.failure: str | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, within a sample."""
        self._told.set()
        self._thread.join(_PATIENCE_S)

    def report(self) -> MonitorReport:
        """Return what is known so far."""
        with self._failing(), self._lock:
            self._sampler.work_off()
        with self._lock:
            report = self._sampler.report(cost_s=self._cost_s)
        return replace(report, failure=self.failure or report.failure)

    def _run(self) -> None:
        with self._failing(), logged(self._record, period_s=self._watching.period_s) as record:
            self._sampler.record = record
            try:
                keep_sampling(self._take, self._told.wait)
            finally:
                with self._lock:
                    self._sampler.work_off()
                    self._sampler.record = None
        self.failure = self.failure or self._sampler.failure
        self._sampler.close()

    def _take(self, now_ns: int) -> float | None:
        with self._lock:
            self._sampler.sample(now_ns)
        self._cost_s = time.thread_time()
        return self._sampler.period_s

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Keep what goes wrong from the program, and watch no more."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # nothing of this is the program's business
            self.failure = f"{type(error).__name__}: {error}"
            self._told.set()
