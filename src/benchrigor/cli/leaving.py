"""How a verb that measures is left: nothing that it started goes on, however it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from benchrigor.cli.output import remark
from benchrigor.workloads.processes import kinship, own_signals
from benchrigor.workloads.processes.process_group import end_all

_killed: list[int] = []


@contextmanager
def left_clean() -> Iterator[None]:
    """End all processes that are started inside, and name those that escaped.

    A signal that ends programs raises `EndedBySignal` inside.
    """
    before = kinship.descendants()
    os.environ[kinship.MARK] = str(os.getpid())  # of what functions start, too
    with own_signals.ended_by_signals():
        try:
            yield
        finally:
            own_signals.too_late()
            end_all()
            if kinship.kill_descendants(spared=before):
                _killed.append(1)
            for each in kinship.escapees(os.getpid()):
                remark(f"still running: {each}")
            os.environ.pop(kinship.MARK, None)  # a function may have cleared them


def must_end_at_once() -> bool:
    """Whether this process would wait for threads or killed processes at its end."""
    threads = [each for each in threading.enumerate() if not each.daemon]
    return bool(own_signals.left_calls or _killed or len(threads) > 1)
