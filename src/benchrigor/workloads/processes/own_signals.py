"""Signals and exits of this process alone, without the processes that it forks."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from benchrigor.workloads.processes import kinship

if TYPE_CHECKING:
    import socket

Handler = Callable[[int, FrameType | None], Any]
continued_ns: list[int] = []  # when this process went on after it was stopped, by WallClock
left_calls: list[str] = []  # functions with a hanging call that was left: it may still go on
_before: dict[int, Any] = {}  # by signal, what handled it before the first of our handlers
_ours: list[Handler] = []
_forks_refused: list[int] = []
_held = threading.local()  # the mask of the thread that forks

# All other signals end a program. These do not, cannot be caught, or report a crash.
_NOT_ENDING = {
    getattr(signal, f"SIG{name}", None)
    for name in (
        *("CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "WINCH", "INFO", "KILL"),
        *("ABRT", "BUS", "EMT", "FPE", "ILL", "SEGV"),
    )
}
_ENDING = signal.valid_signals() - _NOT_ENDING
# After a signal the error may be swallowed: it is raised again. The main thread may still wait for
# processes: they are killed. It may go on with its work: the program is ended.
_SWALLOWED_S, _WAITING_S, _LEAVING_S, _LOOK_S = 1.0, 3.0, 10.0, 0.05
_really_exit = os._exit
_ENDS = ("_exit", "execv", "execve")  # the other functions of their kind call these


class EndedBySignal(KeyboardInterrupt):
    """A signal asks this program to end; ``code`` is the exit code that shells give for it."""

    def __init__(self, number: int) -> None:
        with suppress(ValueError):  # some signals of real time have no name
            number = signal.Signals(number)
        is_interrupt = number == signal.SIGINT
        name = number.name if isinstance(number, signal.Signals) else f"signal {number}"
        super().__init__("interrupted" if is_interrupt else f"ended by {name}")
        self.number = number
        self.code = 128 + number


class ExitedAtOnce(SystemExit):
    """Measured code would have ended this process with no result: by ``os._exit`` or an exec."""


class _Ending:
    """Whether a signal asked this program to end, and when that was raised."""

    def __init__(self) -> None:
        self.error: EndedBySignal | None = None
        self.raised_s: float | None = None
        self.holds = 0

    def raise_once(self) -> None:
        if self.error is not None and self.raised_s is None and not self.holds:
            self.raised_s = time.monotonic()
            raise self.error

    def raise_again(self) -> None:
        """Have it raised in the main thread, unless it was and is leaving the measured code."""
        if self.error is not None and not self.holds:
            if _measuring and self.raised_s and time.monotonic() - self.raised_s > _SWALLOWED_S:
                self.raised_s = None
            if self.raised_s is None:
                # This interrupts its waiting, too.
                signal.pthread_kill(threading.main_thread().ident or 0, self.error.number)


_ending = _Ending()
_measuring: list[int] = []  # one per thread that runs measured code


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise `EndedBySignal` inside, once, when a signal asks this program to end.

    Later signals, as from a closing terminal, have no effect: they must not interrupt the cleanup.
    Signals that something else handles, or that this program was started to ignore, as by `nohup`,
    are left alone.
    """
    global _ending  # noqa: PLW0603  # handlers are of the process
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    foreign = kinship.caught_signals()  # also by code outside Python, such as `faulthandler`
    free = [number for number in _ENDING - foreign if signal.getsignal(number) == signal.SIG_DFL]
    interrupt = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    taken = [*free, *([signal.SIGINT] if interrupt else [])]
    if not taken:
        yield
        return
    _ending = _Ending()
    with handle(dict.fromkeys(taken, end)), _main_thread_woken():
        try:
            yield
        finally:
            _ending = _Ending()


@contextmanager
def _main_thread_woken() -> Iterator[None]:
    """Have signals interrupt the waiting main thread, also if another thread takes them.

    If two signals come together, as from `timeout`, the second may wake another thread, which takes
    both. Python calls handlers in the main thread only, which still waits. So Python writes to a
    socket for which the kernel signals the main thread. Only Linux can do that.
    """
    if not kinship.IS_LINUX or signal.getsignal(signal.SIGURG) != signal.SIG_DFL:
        yield
        return
    import socket  # noqa: PLC0415  # slow to load

    reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    _leave_room_for_one(reader, writer)
    kinship.signal_when_readable(reader.fileno(), signal.SIGURG, threading.get_native_id())

    def read_one(_number: int, _frame: FrameType | None) -> None:
        with suppress(OSError):  # the measured code may have closed it
            reader.recv(1)

    with handle({signal.SIGURG: read_one}):
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            for end_of_pair in (reader, writer):
                with suppress(OSError):
                    end_of_pair.close()


def _leave_room_for_one(reader: socket.socket, writer: socket.socket) -> None:
    """Fill a socket: the signal for a message writes another message, which must not fit."""
    for end_of_pair in (reader, writer):
        end_of_pair.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            writer.send(b" ")
    reader.recv(1)


def end(number: int, frame: FrameType | None) -> None:
    """Handle a signal that ends this program: raise in the main thread, now or when it may."""
    if _ending.error is None:
        _ending.error = EndedBySignal(number)
        with suppress(RuntimeError):  # no thread can be had; the error ends all but code that hangs
            _thread.start_new_thread(_see_to_the_end, (_ending, _ending.error))
    while frame is not None and frame.f_code not in _AROUND_FORKS:
        frame = frame.f_back
    if frame is None:  # otherwise it would be swallowed
        _ending.raise_once()


def end_if_asked(number: int, frame: FrameType | None) -> None:
    """Handle a signal that one of our handlers took, and that was not meant for it."""
    if end in _ours:
        end(number, frame)


def _see_to_the_end(ending: _Ending, error: EndedBySignal) -> None:
    """Have the signal raised, then end awaited processes, and at last this program."""
    awaited, began_s = kinship.descendants(), time.monotonic()
    while ending is _ending and (passed_s := time.monotonic() - began_s) < _LEAVING_S:
        time.sleep(_LOOK_S)
        ending.raise_again()
        if passed_s > _WAITING_S:
            kinship.kill(awaited & kinship.descendants())
            awaited = set()
    if ending is _ending:
        kinship.kill_descendants()
        end_at_once(error.code)


def too_late() -> None:
    """Ignore signals from here on: this program ends anyway."""
    _ending.holds += 1


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Let signals that end this program wait until the code inside is done."""
    ending = _ending
    ending.holds += 1
    try:
        yield
    finally:
        ending.holds -= 1
    if threading.current_thread() is threading.main_thread():
        ending.raise_once()


def go_on(pid: int) -> None:
    """End this process if it is a copy, forked by the measured code, or if a signal said so.

    ``pid`` belongs to the measuring process. The measured code may have swallowed the signal.
    """
    end_copy(pid)
    if _ending.error is not None:
        raise _ending.error


def end_copy(pid: int) -> None:
    """End this process at once unless it has this id: only the original measures and reports."""
    if os.getpid() != pid:
        _really_exit(1)


@contextmanager
def measuring() -> Iterator[None]:
    """Run code that is measured, which may try to end this process, or keep it from ending."""
    _measuring.append(1)
    limit = sys.getrecursionlimit()
    try:
        with _refuse_exit():
            yield
    finally:
        _measuring.pop()
        if sys.getrecursionlimit() < limit:  # too low for us
            sys.setrecursionlimit(limit)


@contextmanager
def _refuse_exit() -> Iterator[None]:
    """Have `_ENDS` of ``os`` raise `ExitedAtOnce` inside, in this process but not in its forks."""
    before = {name: getattr(os, name) for name in _ENDS}
    if hasattr(os._exit, "is_ours"):  # another thread measures, too
        yield
        return
    for name, really in before.items():
        setattr(os, name, _refusing(name, really, os.getpid()))
    try:
        yield
    finally:
        for name, really in before.items():
            setattr(os, name, really)


def _refusing(name: str, really: Callable[..., Any], pid: int) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> None:
        if os.getpid() == pid:
            first = next(iter((*args, *kwargs.values())), "")
            raise ExitedAtOnce(f"os.{name}({first!r}) in the process that measures")
        really(*args, **kwargs)

    refuse.is_ours = True  # type: ignore[attr-defined]
    return refuse


@contextmanager
def handle(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Handle signals inside, in the main thread; forked processes do not inherit the handlers.

    A worker of a pool that got ours would not end at SIGTERM, and its pool would wait for it.
    """
    replaced = {number: signal.signal(number, ours) for number, ours in handlers.items()}
    _ours.extend(handlers.values())
    first = replaced.keys() - _before.keys()
    _before.update({number: replaced[number] for number in first})
    try:
        yield
    finally:
        for number, handler in replaced.items():
            if _is_ours(number):
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
        del _ours[len(_ours) - len(replaced) :]
        for number in first:
            _before.pop(number, None)


def _is_ours(number: int) -> bool:
    """Whether a handler of ours is in place: the measured code may have put its own there."""
    return signal.getsignal(number) in (end, *_ours)


@contextmanager
def note_stops() -> Iterator[None]:
    """Note inside when this process goes on after a signal stopped it, as after Ctrl-Z.

    Not if something else handles that signal, nor outside of the main thread.
    """
    is_free = (
        hasattr(signal, "SIGCONT")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGCONT) == signal.SIG_DFL
    )
    with handle({signal.SIGCONT: _note} if is_free else {}):
        yield


def _note(_number: int, _frame: FrameType | None) -> None:
    continued_ns.append(time.perf_counter_ns())


def _hold() -> None:
    """Hold our signals back while a process is forked: the copy of a handler would lose them."""
    if _forks_refused:
        threading.Event().wait()
    if _before:
        _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _before.keys())


def _release() -> None:
    mask, _held.mask = getattr(_held, "mask", None), None
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _give_back() -> None:
    """Restore the earlier handlers in a forked process, which does not take part in ours."""
    global _ending  # noqa: PLW0603  # of the process
    for number, handler in _before.items():
        if _is_ours(number):
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if _before:
        signal.set_wakeup_fd(-1)
    _before.clear()
    _ending = _Ending()
    _release()


def refuse_forks() -> None:
    """Let all further forks wait for the end of this program."""
    _forks_refused.append(1)


def end_at_once(code: int) -> None:
    """End this process without waiting for threads or exit handlers."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    _really_exit(code)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_give_back)
_AROUND_FORKS = (_hold.__code__, _release.__code__)
