"""Runs pytest as if on another system: benchrigor lacks what Linux has and that system has not.

    python tests/e2e/other_system.py win32 FILE...

Only benchrigor is deceived. The standard library and other packages go on as they are, since each
of them has its own way on each system. The names are those that typeshed knows of Linux only.
"""

import builtins
import os
import pathlib
import re
import signal
import sys
import traceback
from types import ModuleType

import pytest

# What a system lacks, by module: names, as a regular expression; the whole module for ".*".
LACKING = {
    "darwin": {
        "os": r"eventfd\w*|fdatasync|getrandom|\w*xattr|memfd_create|pidfd_open|pipe2|posix_fadvise"
        r"|posix_fallocate|sched_[gs]et\w+|splice|waitid|EFD_\w+|O_(DIRECT|PATH|TMPFILE)|P_PIDFD",
        "signal": r"SIG(CLD|POLL|PWR|RTM..|STKFLT)|pidfd_send_signal|sigtimedwait|sigwaitinfo",
        "select": r"epoll|EPOLL\w+|POLL(MSG|RDHUP)",
        "time": r"CLOCK_(BOOTTIME|TAI)|pthread_getcpuclockid",
        "socket": r"SOCK_(CLOEXEC|NONBLOCK)|AF_(NETLINK|PACKET|VSOCK)|MSG_(MORE|CMSG_CLOEXEC)",
        "fcntl": r"F_\w+PIPE_SZ|F_\w*SEAL\w*|F_NOTIFY",
        "resource": r"RUSAGE_THREAD|prlimit|RLIMIT_(MSGQUEUE|NICE|RTPRIO|RTTIME|SIGPENDING)",
        "mmap": r"MADV_\w+|MAP_(POPULATE|STACK|EXECUTABLE|DENYWRITE)",
    },
    "win32": {
        "os": r"chown|chroot|confstr\w*|copy_file_range|ctermid|environb|eventfd\w*|f(chdir|chmod"
        r"|chown|datasync|ork|orkpty|pathconf|statvfs|walk)|get(_blocking|[er]\w*[gu]id|[gu]id"
        r"|grouplist|groups|loadavg|pgid|pgrp|priority|random|sid)|initgroups|killpg|lchown|lockf"
        r"|login_tty|makedev|memfd_create|mk(fifo|nod)|nice|openpty|pathconf\w*|pidfd_open|pipe2"
        r"|posix_\w+|pread\w*|pwrite\w*|readv|register_at_fork|sched_\w+|sendfile|set(_blocking"
        r"|[er]\w*[gu]id|[gu]id|groups|pgid|pgrp|priority|sid)|splice|statvfs|sync|sysconf\w*"
        r"|tc[gs]etpgrp|ttyname|uname|wait|wait[34]|waitid|writev|\w+xattr"
        r"|(CLD|EFD|GRND|MFD|POSIX|PRIO|RTLD|RWF|SCHED|SPLICE|ST|XATTR)_\w+|F_\w*LOCK|F_TEST"
        r"|O_(?!APPEND|CREAT|EXCL|RDONLY|RDWR|TRUNC|WRONLY)\w+|P_(ALL|PGID|PID|PIDFD)|W[A-Z]+",
        "signal": r"SIG(?!ABRT|FPE|ILL|INT|SEGV|TERM|_DFL|_IGN)\w+|ITIMER_\w+|alarm|[gs]etitimer"
        r"|pause|pidfd_send_signal|pthread_\w+|sig(interrupt|pending|timedwait|wait\w*)",
        "select": r"e?poll|E?POLL\w+|PIPE_BUF",
        "time": r"clock_\w+|CLOCK_\w+|pthread_getcpuclockid|tzset",
        "socket": r"AF_(UNIX|NETLINK|PACKET|VSOCK)|SOCK_(CLOEXEC|NONBLOCK)|MSG_(DONTWAIT|NOSIGNAL"
        r"|MORE|CMSG_CLOEXEC)|SCM_\w+|SO_REUSEPORT|CMSG_\w+|send_fds|recv_fds",
        "mmap": r"MAP_\w+|PROT_\w+|MADV_\w+",
        **dict.fromkeys(("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"), ".*"),
    },
}
OF_LINUX = ("/proc/", "/sys/", "/dev/shm/")  # noqa: S108  # no file is made there
READING = {"open", "stat", "os.listdir", "os.scandir", "glob.glob"}  # audit events, and `os.stat`
NAMES = {"darwin": "Darwin", "win32": "Windows"}


class Lacking(ModuleType):
    """A module without some of its names, and with others instead."""

    def __init__(self, whole, lacking, instead):
        super().__init__(whole.__name__)
        self._whole, self._lacking = whole, re.compile(lacking)
        self.__dict__.update(instead)

    def __getattr__(self, name):
        if not name.startswith("__") and self._lacking.fullmatch(name):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self._whole, name)


def deceive(system):
    """Hide what the system lacks from benchrigor, and the files of Linux from all but psutil."""
    instead = {
        "sys": {"platform": system},
        "platform": {"system": lambda: NAMES[system]},
    }
    lacking = LACKING[system]
    signals = {each for each in signal.Signals if not re.fullmatch(lacking["signal"], each.name)}
    instead["signal"] = {"valid_signals": lambda: signals}
    hidden = {name for name, names in lacking.items() if names == ".*"}
    known = {
        name: Lacking(__import__(name), lacking.get(name, ""), instead.get(name, {}))
        for name in (lacking.keys() | instead) - hidden
    }
    whole_import = builtins.__import__

    def lacking_import(name, its_globals=None, its_locals=None, fromlist=(), level=0):
        importer = (its_globals or {}).get("__name__", "")
        if level == 0 and importer.partition(".")[0] == "benchrigor":
            if name in hidden:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            top = name if fromlist else name.partition(".")[0]
            if top in known:
                return known[top]
        return whole_import(name, its_globals, its_locals, fromlist, level)

    builtins.__import__ = lacking_import
    sys.addaudithook(refuse_kernel_files)
    whole_stat = os.stat

    def stat(path, *args, **kwargs):
        refuse_kernel_files("stat", (path,))
        return whole_stat(path, *args, **kwargs)

    os.stat = stat


def refuse_kernel_files(event, args):
    """Let no file of Linux be found, as an audit hook; psutil has other ways elsewhere."""
    if event not in READING or not args or not isinstance(args[0], str | pathlib.PurePath):
        return
    path = os.fspath(args[0])
    names = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_stack(None))
    if f"{path}/".startswith(OF_LINUX) and not any(name.startswith("psutil") for name in names):
        raise FileNotFoundError(2, "No such file or directory", path)


if __name__ == "__main__":
    deceive(sys.argv[1])
    raise SystemExit(pytest.main(["--noconftest", "-p", "no:cacheprovider", *sys.argv[2:]]))
