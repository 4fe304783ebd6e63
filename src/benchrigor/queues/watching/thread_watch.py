"""Watches from a thread of the program itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchrigor.queues.stages.monitor_report import MonitorReport
from benchrigor.queues.stages.stage import Stage
from benchrigor.queues.stages.stage_figures import Watching
from benchrigor.queues.watching.sampler import PATIENCE_S, Sampler, describe, run_sampler


class WatchThread:
    """A thread that ends with the program, which its errors do not reach."""

    def __init__(self, name: str, run: Callable[[Callable[[float], bool]], None]) -> None:
        self.failure: str | None = None  # why it has ended although it was not stopped
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=lambda: self.attempt(lambda: run(self._stopped.wait)), name=name, daemon=True
        )
        self.start, self.is_alive = self._thread.start, self._thread.is_alive

    def stop(self) -> None:
        """End, within a sample."""
        self._stopped.set()
        self._thread.join(PATIENCE_S)

    def attempt(self, call: Callable[[], None]) -> None:
        """Call something; if it fails, keep why, and end."""
        try:
            call()
        except Exception as error:  # noqa: BLE001  # the program must not fail from it
            self.failure = describe(error)
            self._stopped.set()


class ThreadWatch:
    """Samples in a thread."""

    def __init__(self, stages: Sequence[Stage], watching: Watching, record: Path | None) -> None:
        self.sampler = Sampler(stages, watching)
        self._record, self._cost_s = record, 0.0
        self._thread = WatchThread("benchrigor-monitor", self._watch)
        self.start, self.stop = self._thread.start, self._thread.stop

    @property
    def is_over(self) -> bool:
        """Whether it watches no more."""
        return not self._thread.is_alive()

    def report(self, *, cost_s: float | None = None) -> MonitorReport:
        """Return the results so far, by default with the processor time of the thread."""
        self._thread.attempt(self.sampler.work_off)
        report = self.sampler.report(cost_s=self._cost_s if cost_s is None else cost_s)
        return replace(report, failure=self._thread.failure or report.failure)

    def _watch(self, wait: Callable[[float], bool]) -> None:
        run_sampler(self.sampler, self._take, wait, log=self._record)

    def _take(self, now_ns: int) -> float | None:
        self.sampler.sample(now_ns)
        self._cost_s = time.thread_time()
        return self.sampler.period_s
