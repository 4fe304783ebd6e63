"""The end of a verb that measures: it ends everything that it started, also after an error."""

from __future__ import annotations

import _thread
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchrigor.cli.output import remark
from benchrigor.units import first_few
from benchrigor.workloads.processes import kinship, own_signals
from benchrigor.workloads.processes.process_group import end_all

_spared: list[set[int]] = []  # earlier processes, per verb that killed descendants
_EXIT_S = 2.0
_MOST_NAMED = 10


@contextmanager
def left_clean() -> Iterator[None]:
    """End all processes that are started inside, and name those that escaped.

    A signal that ends programs raises `EndedBySignal` inside.
    """
    before = kinship.descendants()
    os.environ[kinship.MARK] = str(os.getpid())  # of what functions start, too
    kinship.adopt_orphans(True)
    with own_signals.ended_by_signals():
        try:
            yield
        finally:
            own_signals.too_late()
            end_all()
            if kinship.kill_descendants(spared=before):
                _spared.append(before)
            kinship.kill_orphans()
            if escaped := kinship.escapees():  # of any number: process numbers begin again
                remark(f"still running: {first_few(escaped, _MOST_NAMED)}")
            kinship.adopt_orphans(False)
            os.environ.pop(kinship.MARK, None)  # a function may have cleared them


def end_program(code: int) -> None:
    """End this program at once if it would wait for threads or killed processes; else soon."""
    main, running = threading.main_thread(), threading.enumerate()
    threads = [thread.name for thread in running if thread is not main and not thread.daemon]
    if threads:
        names = first_few(threads, _MOST_NAMED)
        remark(f"ended although the measured code left threads running: {names}")
    if own_signals.left_calls or _spared or threads:
        own_signals.refuse_forks()  # a pool replaces its killed processes
        kinship.kill_descendants(spared=set().union(*_spared))
        own_signals.end_at_once(code)
    try:
        _thread.start_new_thread(_end_later, (code,))
    except RuntimeError:  # the measured code left no memory, or no number, for another
        own_signals.end_at_once(code)


def _end_later(code: int) -> None:
    time.sleep(_EXIT_S)
    remark(f"ended without exit functions of the measured code: they took more than {_EXIT_S:g} s")
    own_signals.end_at_once(code)
