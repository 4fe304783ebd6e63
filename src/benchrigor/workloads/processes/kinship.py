"""Which processes are there because of this one: its descendants, a session, and escapees.

Read from Linux's ``/proc``; on other systems none are found. psutil looks at every process of the
host: with 2,000 of them it takes 127 ms to list a tree, and this 10 µs.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import struct
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress

from benchrigor.safe_text import escaped, hide_secrets

# In the environment of all that is started: who left our session still has it, with our number.
MARK = "BENCHRIGOR_STARTED_BY"
_LONGEST_NAME = 60
_DYING_S = 1.0  # for the kernel to end killed processes
IS_LINUX = sys.platform.startswith("linux")
# F_SETOWN_EX and F_OWNER_TID of Linux, which `fcntl` does not name.
_SET_OWNER, _OF_A_THREAD = 15, 0
_SET_CHILD_SUBREAPER = 36  # of `prctl`
# Helpers of `multiprocessing` that end by themselves when this process does, and clean up then.
_HELPERS = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")


_gone_their_way: set[int] = set()  # processes that commands left in sessions of their own


def running(after: int = 0) -> dict[int, int]:
    """Return the sessions of processes with a greater number than ``after`` that have not ended."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208  # a third of the time
    except OSError:
        return {}
    pids = (int(name) for name in names if name.isdecimal())
    found = ((pid, session_of(pid)) for pid in pids if pid > after)
    return {pid: session for pid, session in found if session is not None}


def session_of(pid: int) -> int | None:
    """Return the session of a process; None if it has ended, or its parent has not noticed yet."""
    # The name, in brackets, may hold anything.
    fields = _content(pid, "stat").rpartition(b")")[2].split(None, 4)
    return int(fields[3]) if len(fields) == 5 and fields[0] not in b"ZX" else None


def adopt_orphans(adopts: bool) -> None:
    """Have the kernel make this process the parent of orphaned descendants, or not."""
    with suppress(ImportError, AttributeError, OSError):
        import ctypes  # noqa: PLC0415  # only if it is needed

        if IS_LINUX:
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, int(adopts), 0, 0, 0)


def let_go(adopted: Collection[int], *, sessions: Collection[int]) -> None:
    """Spare adopted children that left these sessions, and wait for those that have ended."""
    for pid in adopted:
        session = session_of(pid)
        if session is None:
            with suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
        elif session not in sessions:
            _gone_their_way.add(pid)


def kill_descendants(spared: Collection[int] = ()) -> bool:
    """Kill all descendants of this process that are not spared; return whether there were any."""
    some = False
    while pids := descendants().difference(spared):
        some = True
        kill(pids)
        for pid in pids:
            with suppress(OSError):  # a child of a child
                os.waitpid(pid, 0)
    return some


def kill_orphans() -> None:
    """Kill descendants of this process that are in its session, even without their parent.

    The background jobs of a shell lose their parent when the shell ends.
    """
    orphans = {pid for pid, session in _started_by_us() if session == os.getsid(0)}
    kill(orphans)
    deadline = time.monotonic() + _DYING_S
    while orphans and time.monotonic() < deadline and orphans & running().keys():
        time.sleep(0.01)


def kill(pids: Collection[int], number: int | None = None) -> None:
    """Send a signal to processes, SIGKILL if none is named; some may have ended."""
    for pid in pids:
        with suppress(OSError):  # Windows, which has no SIGKILL, has no such processes either
            os.kill(pid, signal.SIGKILL if number is None else number)


def descendants() -> set[int]:
    """Return the numbers of all descendants of this process but helpers of multiprocessing."""
    own, found = os.getpid(), set[int]()
    queue = [own]
    for pid in queue:
        queue += [child for child in children(pid) if child not in _gone_their_way]
        # It has no words if it has ended, and its parent has not noticed.
        if pid != own and _content(pid, "cmdline") and not _is_helper(pid):
            found.add(pid)
    return found


def children(pid: int) -> list[int]:
    """Return the numbers of the children of a process, of the dead ones too."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  # a third of the time
    except OSError:
        return []
    return [int(child) for t in threads for child in _content(pid, f"task/{t}/children").split()]


def escapees(after: int = 0, *, sessions: Collection[int] = ()) -> list[str]:
    """Name processes that this one started and that left their session; they go on.

    ``sessions`` are those that they may be in.
    """
    pids = {pid for pid, session in _started_by_us(after) if session not in sessions}
    pids |= {pid for pid in _gone_their_way if pid > after and session_of(pid) is not None}
    return [f"{_name(pid)} (process {pid})" for pid in sorted(pids)]


def _started_by_us(after: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the processes that this one started, with their sessions; no helpers of pools."""
    mark = f"{MARK}={os.getpid()}".encode()
    for pid, session in running(after).items():
        is_marked = mark in _content(pid, "environ").split(b"\0")
        if is_marked and pid != os.getpid() and not _is_helper(pid):
            yield pid, session


def _is_helper(pid: int) -> bool:
    words = _content(pid, "cmdline")
    return any(helper in words for helper in _HELPERS)


def _name(pid: int) -> str:
    words = _content(pid, "cmdline").rstrip(b"\0").decode(errors="replace").split("\0")
    name = escaped(shlex.join(hide_secrets(words)))
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _content(pid: int, name: str) -> bytes:
    """Return a file of a process; b"" if it has ended or belongs to another user."""
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123  # each round
            return file.read()
    except OSError:
        return b""


def caught_signals() -> set[int]:
    """Return the signals that something in this process handles, Python or not."""
    lines = _content(os.getpid(), "status").splitlines()
    mask = next((int(line.split()[1], 16) for line in lines if line.startswith(b"SigCgt:")), 0)
    return {number for number in range(1, mask.bit_length() + 1) if mask >> (number - 1) & 1}


def kill_when_closed(pipe: int, pid: int) -> None:
    """Have the kernel kill a process, or a group by minus its number, once a pipe is closed.

    ``pipe`` is the end to read from; a surviving process must have it open, too. So processes that
    this one started die with it, even if SIGKILL ends it, unless that happens between their start
    and this call. Only Linux can do that; a thread that watches the pipe would disturb the measured
    code.
    """
    with suppress(ImportError, AttributeError, OSError):
        import fcntl  # noqa: PLC0415  # not on every system

        fcntl.fcntl(pipe, fcntl.F_SETOWN, pid)
        fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC)
        poll = select.poll()
        poll.register(pipe, 0)
        if poll.poll(0):  # it was closed before, which sends no signal
            os.kill(pid, signal.SIGKILL)


def signal_when_readable(file: int, number: int, thread: int) -> None:
    """Have the kernel signal a thread when there is something to read."""
    import fcntl  # noqa: PLC0415  # not on every system

    fcntl.fcntl(file, _SET_OWNER, struct.pack("ii", _OF_A_THREAD, thread))
    fcntl.fcntl(file, fcntl.F_SETSIG, number)
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_ASYNC)
