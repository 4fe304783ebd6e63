"""Watches from a thread of the program itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchrigor.queues.stages.monitor_report import MonitorReport
from benchrigor.queues.stages.stage import Stage
from benchrigor.queues.stages.stage_figures import Watching
from benchrigor.queues.watching.sampler import PATIENCE_S, Sampler, run_sampler
from benchrigor.secret_texts import hide_in_text


class ThreadWatch:
    """Samples in a thread, which ends with the program."""

    def __init__(self, stages: Sequence[Stage], watching: Watching, record: Path | None) -> None:
        self.sampler = Sampler(stages, watching)
        self.failure: str | None = None  # why it has ended although it was not stopped
        self._record = record
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="benchrigor-monitor", daemon=True)
        self._cost_s = 0.0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, within a sample."""
        self._stopped.set()
        self._thread.join(PATIENCE_S)

    def report(self) -> MonitorReport:
        """Return the results so far."""
        with self._failing():
            self.sampler.work_off()
        report = self.sampler.report(cost_s=self._cost_s)
        return replace(report, failure=self.failure or report.failure)

    def _run(self) -> None:
        with self._failing():
            run_sampler(self.sampler, self._take, self._stopped.wait, log=self._record)
        self.failure = self.failure or self.sampler.failure

    def _take(self, now_ns: int) -> float | None:
        self.sampler.sample(now_ns)
        self._cost_s = time.thread_time()
        return self.sampler.period_s

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Keep errors from the program, and watch no more."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # the program must not fail from it
            self.failure = f"{type(error).__name__}: {hide_in_text(str(error))}"
            self._stopped.set()
