"""Signal handlers of this process alone: what it forks meanwhile has those from before."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]
continued_ns: list[int] = []  # when this process went on after it was stopped, by WallClock
left_calls: list[str] = []  # functions of which a call was left that hung: it may still go on
_before: dict[int, Any] = {}  # by signal, what handled it before the first of our handlers
_held = threading.local()  # the mask of the thread that forks


@contextmanager
def handled(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Handle signals inside, in the main thread; forked processes do not inherit the handlers.

    A worker of a pool that got ours would not end at SIGTERM, and its pool would wait for it.
    """
    replaced = {number: signal.signal(number, ours) for number, ours in handlers.items()}
    first = replaced.keys() - _before.keys()
    _before.update({number: replaced[number] for number in first})
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for number in first:
            _before.pop(number, None)


@contextmanager
def stops_noted() -> Iterator[None]:
    """Note inside when this process goes on after a signal stopped it, as after Ctrl-Z.

    Not where something else handles that, nor outside of the main thread.
    """
    is_free = (
        hasattr(signal, "SIGCONT")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGCONT) == signal.SIG_DFL
    )
    with handled({signal.SIGCONT: _note} if is_free else {}):
        yield


def _note(_number: int, _frame: FrameType | None) -> None:
    continued_ns.append(time.perf_counter_ns())


def _hold() -> None:
    """Hold our signals back while a process is forked: the copy of a handler would lose them."""
    if _before:
        _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _before.keys())


def _release() -> None:
    mask, _held.mask = getattr(_held, "mask", None), None
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _give_back() -> None:
    """Restore in a forked process what was there before; it has no part in ours."""
    for number, handler in _before.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)
    _before.clear()
    _release()


def end_at_once(code: int) -> None:
    """End this process and its workers, without waiting for what they wait for."""
    if "multiprocessing" in sys.modules:
        for worker in sys.modules["multiprocessing"].active_children():
            worker.kill()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_give_back)
