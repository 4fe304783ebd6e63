"""Linux's files about the system, and why one of them cannot be read."""

from __future__ import annotations

import contextlib
import os
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
