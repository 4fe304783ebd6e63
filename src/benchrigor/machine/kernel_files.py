"""Linux's files about the system, its counters of the processor, and why one cannot be read."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")  # folder that holds ``proc`` and ``sys``; tests make up another


class Unavailable(Exception):
    """A value that the system does not provide; the message is the reason."""


class KernelFile:
    """An open file that is read again and again; closed with its object.

    A program may close any descriptor, as one does that becomes a daemon, and its number may be
    another file's by now: that one stays open.
    """

    __slots__ = ("_inode", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._inode = _inode(descriptor)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            if _inode(self.descriptor) == self._inode:
                os.close(self.descriptor)

    def read(self) -> bytes:
        """Return the first kilobyte of its present content."""
        return os.pread(self.descriptor, 1024, 0)


def _inode(descriptor: int) -> tuple[int, int]:
    """Return which file a descriptor is of."""
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def open_file(path: Path) -> KernelFile:
    """Open a file to be read again and again, or raise `Unavailable`."""
    if not hasattr(os, "pread"):
        raise Unavailable(f"{path}: this system has no pread")
    try:
        return KernelFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror or error}") from error


def read_text(path: Path) -> str:
    """Return the text of a file, or raise `Unavailable`."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror or error}") from error


def cgroup_folders(root: Path, controller: str = "cpu") -> Iterator[Path]:
    """Yield the process's control groups of a controller and those around them, innermost first.

    Both versions of control groups count; the second is also looked for next to the first.
    """
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for name in (controllers,) if controllers else ("", "unified"):
            mount = root / "sys/fs/cgroup" / name
            inner = mount / group.lstrip("/")
            yield inner
            yield from inner.parents[: len(inner.parts) - len(mount.parts)]


_HARDWARE, _INSTRUCTIONS = 0, 1  # ``type`` and ``config`` in ``linux/perf_event.h``
_SYSCALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_ATTR_SIZE = 64
_NO_KERNEL, _NO_HYPERVISOR = 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8
# Raw events of all floating-point operations: FP_ARITH_INST_RETIRED of Intel (from Broadwell on)
# and FpRetSseAvxOps of AMD (from Zen on). Elsewhere these numbers mean something else.
_RAW, _FLOATING_POINT = 4, (0xFFC7, 0xFF03)
_TRIED = 1_000  # multiplications that show the meaning of an event's count


def open_counter(kind: int = _HARDWARE, event: int = _INSTRUCTIONS) -> KernelFile:
    """Begin to count one event of the calling thread in user mode, or raise `Unavailable`."""
    number = _SYSCALLS.get(platform.machine()) if sys.platform == "linux" else None
    if number is None:
        raise Unavailable(f"no perf_event_open known for {sys.platform} on {platform.machine()}")
    attributes = struct.pack(
        "=IIQQQQQ", kind, _ATTR_SIZE, event, 0, 0, 0, _NO_KERNEL | _NO_HYPERVISOR
    )
    system = ctypes.CDLL(None, use_errno=True)
    this_thread, any_processor, no_group = map(ctypes.c_int, (0, -1, -1))
    descriptor = system.syscall(
        ctypes.c_long(number),
        ctypes.create_string_buffer(attributes, _ATTR_SIZE),
        this_thread,
        any_processor,
        no_group,
        ctypes.c_ulong(_CLOSE_ON_EXEC),
    )
    if descriptor < 0:
        raise Unavailable(f"perf_event_open: {os.strerror(ctypes.get_errno())}")
    return KernelFile(int(descriptor))


def open_floating_point() -> KernelFile:
    """Begin to count floating-point operations, or raise `Unavailable`."""
    reasons = []
    for event in _FLOATING_POINT:
        try:
            counter = open_counter(_RAW, event)
        except Unavailable as error:
            reasons.append(str(error))
            continue
        before, product = read_counter(counter), 1.0
        for _ in range(_TRIED):
            product *= 0.9
        counted = read_counter(counter) - before
        if _TRIED <= counted <= 2 * _TRIED:
            return counter
        reasons.append(f"{event:#x} counts {counted} of {_TRIED} multiplications")
    raise Unavailable("; ".join(dict.fromkeys(reasons)))


def read_counter(counter: KernelFile) -> int:
    """Return the count so far."""
    return int.from_bytes(os.read(counter.descriptor, 8), sys.byteorder)
