"""Runs a command, and writes its peak memory, the least that shows, and its exit code.

On Linux a process starts with the peak of the process that forked it. So a shell of 1 MB forks the
command and ends, and this interpreter, which is larger, adopts the command and waits for it. Only
the standard library is needed.
"""

import os
import signal
import sys

_ADOPT = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
# The command begins once the shell, its parent, has ended and this interpreter has noticed.
_FORK = '(kill -KILL $$; while kill -0 $$ 2>/dev/null; do :; done; exec "$@"); :'
_IGNORED = ("SIGPIPE", "SIGXFSZ")  # by Python, if the system has them
_DEFAULT = [getattr(signal, name) for name in _IGNORED if hasattr(signal, name)]


def _start(argv: list[str]) -> tuple[int, int]:
    """Start a command, and return its identity and the peak in bytes that it starts with."""
    children = f"/proc/self/task/{os.getpid()}/children"
    if not (os.path.exists(children) and os.path.exists("/bin/sh") and _adopts()):
        command = os.posix_spawnp(argv[0], argv, os.environ, setsigdef=_DEFAULT)
        return command, _peak_of("self")
    words = ["sh", "-c", _FORK, "sh", *argv]
    shell = os.posix_spawn("/bin/sh", words, os.environ, setsigdef=_DEFAULT)
    os.waitid(os.P_PID, shell, os.WEXITED | os.WNOWAIT)
    with open(children) as file:
        (command,) = {int(pid) for pid in file.read().split()} - {shell}
    floor = _peak_of(command)
    os.waitpid(shell, 0)
    return command, floor


def _adopts() -> bool:
    """Ask for the children of children that end; return whether the system allows it."""
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def _peak_of(process: int | str) -> int:
    """Return the peak memory of a process in bytes; 0 on systems that pass none on."""
    try:
        with open(f"/proc/{process}/status") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    except OSError:
        return 0


if __name__ == "__main__":
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    command, floor = _start(sys.argv[2:])
    _, status, usage = os.wait4(command, 0)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    os.write(descriptor, f"{max(peak, floor)} {floor} {os.waitstatus_to_exitcode(status)}".encode())
