"""Files through which Linux tells of itself, and why one of them cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Unavailable", "cgroup_folders", "keep_open", "read_text"]


class Unavailable(Exception):
    """Something that the system does not tell; the message is the reason."""


def read_text(path: Path) -> str:
    """Return what a file holds, or say why it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror or error}") from error


def keep_open(path: Path) -> int:
    """Return a descriptor to read a file again and again by, or say why there is none."""
    if not hasattr(os, "pread"):
        raise Unavailable(f"{path}: this system has no pread")
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror or error}") from error


def cgroup_folders(root: Path) -> Iterator[Path]:
    """Yield the process's groups and the groups around them, innermost first.

    Those that govern its processors, of either version of control groups; the second is looked for
    beside the first as well.
    """
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for name in (controllers,) if controllers else ("", "unified"):
            mount = root / "sys/fs/cgroup" / name
            inner = mount / group.lstrip("/")
            yield inner
            yield from inner.parents[: len(inner.parts) - len(mount.parts)]
