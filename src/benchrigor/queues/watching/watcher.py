"""The process that watches another one: ``python -m benchrigor.queues.watching.watcher``.

It reads its `Order`, a line of JSON, from its standard input, and watches until that is closed, or
until whoever counted is gone. What is known stands in the order's state file, which is replaced
once a second, or less often where telling takes long, and at the end: whoever dies, nothing is lost
of what was told.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from benchrigor.errors import InvalidInput
from benchrigor.model.codec import decode, encode
from benchrigor.queues.watching.monitor_report import MonitorReport
from benchrigor.queues.watching.orders import Order
from benchrigor.queues.watching.owners import Owners
from benchrigor.queues.watching.period_log import logged
from benchrigor.queues.watching.sampling import Sampler, keep_sampling

__all__ = ["beside", "main", "published", "watch"]

_EACH_NS = 1_000_000_000
_LEAST_BETWEEN = 50
"""Telling takes a 50th of the time at most, however much there is to tell."""
_NICE = 5


class _Notebook:
    """The file that tells what is known; always one whole report."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._due_ns = 0

    def write(self, report: MonitorReport) -> None:
        made = beside(self._path)
        made.write_text(json.dumps(encode(report)), encoding="utf-8")
        made.replace(self._path)

    def write_if_due(self, report: Callable[[], MonitorReport], now_ns: int) -> None:
        if now_ns >= self._due_ns:
            began_ns = time.thread_time_ns()
            self.write(report())
            took_ns = time.thread_time_ns() - began_ns
            self._due_ns = now_ns + max(_EACH_NS, _LEAST_BETWEEN * took_ns)


def beside(path: Path) -> Path:
    """Return where a state file is made, before it takes the place of the last one."""
    return path.with_suffix(".new")


def published(path: str | Path) -> MonitorReport | None:
    """Return what a watching process has told so far; None where it has not told anything.

    Parameters
    ----------
    path
        Of the state file.
    """
    try:
        return decode(MonitorReport, json.loads(Path(path).read_bytes()), where=str(path))
    except (OSError, ValueError, InvalidInput):
        return None


def watch(order: Order, wait: Callable[[float], bool]) -> MonitorReport:
    """Watch until told to stop, or until nobody is left who could count.

    Parameters
    ----------
    order
        What to watch.
    wait
        As of `keep_sampling`.

    Returns
    -------
    MonitorReport
        What is known at the end; it has been written as well.
    """
    book, sampler, failure = _Notebook(order.state), None, None
    try:
        with logged(order.record, period_s=order.watching.period_s) as record:
            sampler = Sampler(order.open_stages(), order.watching)
            sampler.record = record
            try:
                _keep_watching(sampler, order, book, wait)
            finally:
                sampler.work_off()
                sampler.record = None
    except Exception as error:  # noqa: BLE001  # whoever reads the report is to know
        failure = f"{type(error).__name__}: {error}"
    report = MonitorReport() if sampler is None else _known(sampler)
    report = replace(report, failure=failure or report.failure)
    book.write(report)
    return report


def main() -> None:
    """Watch as the standard input says, until it is closed or says anything more."""
    with suppress(OSError):
        os.nice(_NICE)
    told = threading.Event()
    # Without a buffer, which would be locked by who waits for more when the process ends.
    with open(0, "rb", buffering=0, closefd=False) as source:
        order = Order.from_json(source.readline())

        def listen() -> None:
            source.read(1)
            told.set()

        threading.Thread(target=listen, daemon=True).start()
        watch(order, told.wait)


def _keep_watching(
    sampler: Sampler, order: Order, book: _Notebook, wait: Callable[[float], bool]
) -> None:
    owners = Owners()

    def take(now_ns: int) -> float | None:
        sampler.sample(now_ns)
        book.write_if_due(lambda: _known(sampler), now_ns)
        if sampler.nobody_left and owners.gone([order.launcher]):
            return None
        return sampler.period_s

    try:
        keep_sampling(take, wait)
    finally:
        owners.close()
        sampler.close()


def _known(sampler: Sampler) -> MonitorReport:
    sampler.work_off()
    return sampler.report(cost_s=time.process_time())


if __name__ == "__main__":
    main()
