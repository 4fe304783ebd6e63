"""The process that watches another one: ``python -m benchrigor.queues.watching.watcher``.

It reads its `Order` from its standard input, and watches until that is closed, or until whoever
counted is gone. It publishes what it knows once a second, or less often where that takes long, and
at the end: whoever dies, nothing that was published is lost.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from benchrigor.queues.stages.monitor_report import MonitorReport
from benchrigor.queues.watching.process_watch import Order, publish
from benchrigor.queues.watching.sampler import Sampler, run_sampler

_EACH_NS = 1_000_000_000
_LEAST_BETWEEN = 50
"""Publishing takes a 50th of the time at most, however much there is."""
_NICE = 5


def watch(order: Order, wait: Callable[[float], bool]) -> MonitorReport:
    """Watch until ``wait`` is told to stop, or nobody is left who could count; publish the end."""
    failure = None
    sampler = Sampler(order.stages, order.watching)
    due_ns = 0

    def take(now_ns: int) -> float | None:
        nonlocal due_ns
        sampler.sample(now_ns)
        if now_ns >= due_ns:
            began_ns = time.thread_time_ns()
            publish(order.state, _known(sampler))
            took_ns = time.thread_time_ns() - began_ns
            due_ns = now_ns + max(_EACH_NS, _LEAST_BETWEEN * took_ns)
        if sampler.nobody_left and order.launcher in sampler.owners.gone([order.launcher]):
            return None
        return sampler.period_s

    try:
        run_sampler(sampler, take, wait, log=order.record)
    except Exception as error:  # noqa: BLE001  # whoever reads the report is to know
        failure = f"{type(error).__name__}: {error}"
    report = _known(sampler)
    report = replace(report, failure=failure or report.failure)
    publish(order.state, report)
    return report


def main() -> None:
    """Watch as the standard input orders, until it is closed or holds anything more."""
    with suppress(OSError):
        os.nice(_NICE)
    told = threading.Event()
    # Without a buffer, which would be locked by who waits for more when the process ends.
    with open(0, "rb", buffering=0, closefd=False) as source:
        order = Order.from_line(source.readline())

        def listen() -> None:
            source.read(1)
            told.set()

        threading.Thread(target=listen, daemon=True).start()
        watch(order, told.wait)


def _known(sampler: Sampler) -> MonitorReport:
    sampler.work_off()
    return sampler.report(cost_s=time.process_time())


if __name__ == "__main__":
    main()
